// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
)

func TestNewStorage(t *testing.T) {
	storages, err := NewStorage(&testGetter{t: t}, Config{ClusterIPRanges: []netip.Prefix{netip.MustParsePrefix(range4)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"services", "services/status"} {
		if storages[name] == nil {
			t.Errorf("there is no %s", name)
			continue
		}
		storages[name].Destroy()
	}
	if len(storages) != 2 {
		t.Errorf("got %v", storages)
	}
	if _, err := NewStorage(&testGetter{t: t}, Config{}); err == nil {
		t.Error("a cluster without addresses is not refused")
	}
	if _, err := NewStorage(noStore{}, Config{ClusterIPRanges: []netip.Prefix{netip.MustParsePrefix(range4)}}); err == nil {
		t.Error("the error of the getter is lost")
	}
}

type noStore struct{}

func (noStore) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{}, errDisk
}

func TestNames(t *testing.T) {
	c := newCluster(t, range4)
	if diff := cmp.Diff([]string{"svc"}, c.rest.ShortNames()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"all"}, c.rest.Categories()); diff != "" {
		t.Error(diff)
	}
	if got := c.rest.GetSingularName(); got != "service" {
		t.Errorf("got %s", got)
	}
}

func TestFieldSelectors(t *testing.T) {
	c := newCluster(t, range4)
	c.create(named("headless", corev1.ServiceSpec{ClusterIP: "None"}))
	c.create(named("node", corev1.ServiceSpec{Type: "NodePort", Ports: web()}))
	for selector, want := range map[string]string{
		"spec.clusterIP=None":       "headless",
		"spec.clusterIP=" + first4:  "node",
		"spec.type=NodePort":        "node",
		"metadata.name=headless":    "headless",
		"spec.type!=NodePort":       "headless",
		"metadata.namespace=nobody": "",
	} {
		parsed, err := fields.ParseSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		list, err := c.rest.List(c.context(), &metainternalversion.ListOptions{FieldSelector: parsed})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, service := range list.(*corev1.ServiceList).Items {
			got += service.Name
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", selector, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	c := newCluster(t, range4)
	created := c.create(named("web", corev1.ServiceSpec{Type: "NodePort", Ports: web(), Selector: map[string]string{"app": "web"}}))
	table, err := c.rest.ConvertToTable(c.context(), created, nil)
	if err != nil {
		t.Fatal(err)
	}
	ofStatus, err := c.status.ConvertToTable(c.context(), created, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []*metav1.Table{table, ofStatus} {
		cells := table.Rows[0].Cells
		cells[5] = "age"
		want := []any{"web", "NodePort", first4, "<none>", "80:30086/TCP", "age", "app=web"}
		if diff := cmp.Diff(want, cells); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestExternalNameHasNoInternalTrafficPolicy(t *testing.T) {
	c := newCluster(t, range4)
	policy := corev1.ServiceInternalTrafficPolicyLocal
	got := c.create(named("web", corev1.ServiceSpec{Type: "ExternalName", ExternalName: "a", InternalTrafficPolicy: &policy}))
	if got.Spec.InternalTrafficPolicy != nil {
		t.Errorf("got %s", *got.Spec.InternalTrafficPolicy)
	}
}
