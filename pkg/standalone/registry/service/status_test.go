// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func (c *cluster) tryPatchStatus(name string, change func(*corev1.Service)) (*corev1.Service, error) {
	obj, _, err := c.status.Update(c.context(), name, patchOf(change), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc,
		true, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Service), nil
}

func withIngress(ingress ...corev1.LoadBalancerIngress) func(*corev1.Service) {
	return func(service *corev1.Service) { service.Status.LoadBalancer.Ingress = ingress }
}

func TestStatusAndSpecAreWrittenApart(t *testing.T) {
	c := newCluster(t, range4)
	service := named("web", corev1.ServiceSpec{Type: "LoadBalancer", Ports: web()})
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "made-by-create"}}
	created := c.create(service)
	if len(created.Status.LoadBalancer.Ingress) > 0 {
		t.Error("create has set the status")
	}
	updated, err := c.tryPatchStatus("web", func(service *corev1.Service) {
		withIngress(corev1.LoadBalancerIngress{IP: "192.0.2.1"})(service)
		service.Spec.Ports[0].NodePort = 30001
		service.Labels = map[string]string{"a": "b"}
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(created.Spec, updated.Spec); diff != "" {
		t.Errorf("a write to the status changed the spec (-before +after):\n%s", diff)
	}
	want := []corev1.LoadBalancerIngress{{IP: "192.0.2.1", IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)}}
	if diff := cmp.Diff(want, updated.Status.LoadBalancer.Ingress); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	patched, err := c.tryPatch("web", withIngress(), false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, patched.Status.LoadBalancer.Ingress); diff != "" {
		t.Errorf("an update changed the status (-want +got):\n%s", diff)
	}
	// The status of a load balancer goes with it.
	patched, err = c.tryPatch("web", func(service *corev1.Service) { service.Spec.Type = "ClusterIP" }, false)
	if err != nil {
		t.Fatal(err)
	}
	if ingress := patched.Status.LoadBalancer.Ingress; len(ingress) > 0 {
		t.Errorf("no load balancer, but its status: %v", ingress)
	}
	c.checkPools()
}

func TestStatusNeverCreates(t *testing.T) {
	c := newCluster(t, range4)
	if _, err := c.tryPatchStatus("web", func(*corev1.Service) {}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	c.checkPools()
}

func TestStatusValidation(t *testing.T) {
	vip := ptr.To(corev1.LoadBalancerIPModeVIP)
	for _, test := range []struct {
		name string
		typ  corev1.ServiceType
		in   corev1.LoadBalancerIngress
		want string
	}{
		{"address", "LoadBalancer", corev1.LoadBalancerIngress{IP: "192.0.2.1", IPMode: ptr.To(corev1.LoadBalancerIPModeProxy)}, ""},
		{"name", "LoadBalancer", corev1.LoadBalancerIngress{Hostname: "lb.example.com"}, ""},
		{"no load balancer", "ClusterIP", corev1.LoadBalancerIngress{IP: "192.0.2.1"}, "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"},
		{"no address", "LoadBalancer", corev1.LoadBalancerIngress{IP: "192.0.2", IPMode: vip},
			`status.loadBalancer.ingress[0].ip: Invalid value: "192.0.2": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		{"mode without an address", "LoadBalancer", corev1.LoadBalancerIngress{Hostname: "lb", IPMode: vip}, "status.loadBalancer.ingress[0].ipMode: Forbidden: may not be specified when `ip` is not set"},
		{"unknown mode", "LoadBalancer", corev1.LoadBalancerIngress{IP: "192.0.2.1", IPMode: ptr.To(corev1.LoadBalancerIPMode("DSR"))},
			`status.loadBalancer.ingress[0].ipMode: Unsupported value: "DSR": supported values: "Proxy", "VIP"`},
		{"address as a name", "LoadBalancer", corev1.LoadBalancerIngress{Hostname: "192.0.2.1"}, `status.loadBalancer.ingress[0].hostname: Invalid value: "192.0.2.1": must be a DNS name, not an IP address`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, range4)
			c.create(named("web", corev1.ServiceSpec{Type: test.typ, Ports: web()}))
			_, err := c.tryPatchStatus("web", withIngress(test.in))
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if got := result(nil, orNone(err)); got != test.want {
				t.Errorf("\n got %s\nwant %s", got, test.want)
			}
		})
	}
	t.Run("address without a mode", func(t *testing.T) {
		service := named("web", corev1.ServiceSpec{Type: "LoadBalancer"})
		old := service.DeepCopy()
		service.ResourceVersion, old.ResourceVersion = "1", "1"
		withIngress(corev1.LoadBalancerIngress{IP: "192.0.2.1"})(service)
		want := "status.loadBalancer.ingress[0].ipMode: Required value: must be specified when `ip` is set"
		if got := validateStatusUpdate(service, old).ToAggregate().Error(); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	})
}

func TestResetFields(t *testing.T) {
	c := newCluster(t, range4)
	for name, fields := range map[string]map[fieldpath.APIVersion]*fieldpath.Set{
		"status": c.rest.GetResetFields(), "spec": c.status.GetResetFields(),
	} {
		want := fieldpath.NewSet(fieldpath.MakePathOrDie(name))
		if len(fields) != 1 || !fields["v1"].Equals(want) {
			t.Errorf("got %v, want v1 %v", fields, want)
		}
	}
}
