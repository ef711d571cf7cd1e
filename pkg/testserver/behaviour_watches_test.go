// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

// next is the next event of a watch, in short. It checks that revisions grow.
func next(t *testing.T, watching watch.Interface, last *uint64) string {
	t.Helper()
	select {
	case event, ok := <-watching.ResultChan():
		if !ok {
			t.Fatal("the watch has ended")
		}
		object, err := meta.Accessor(event.Object)
		if err != nil {
			t.Fatalf("%s: %v", event.Type, event.Object)
		}
		revision, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
		if err != nil || revision <= *last {
			t.Errorf("revision %s follows %d", object.GetResourceVersion(), *last)
		}
		*last = revision
		return fmt.Sprintf("%s %s", event.Type, object.GetName())
	case <-time.After(patience):
		t.Fatal("no event")
	}
	return ""
}

// changes makes one of each kind, of objects that differ in label and name.
func changes(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	configMaps := client.CoreV1().ConfigMaps("default")
	labelled := func(name, value, data string) *corev1.ConfigMap {
		made := newConfigMap(name, map[string]string{"n": data})
		made.Labels = map[string]string{"color": value}
		return made
	}
	for _, change := range []func() error{
		func() (err error) {
			_, err = configMaps.Create(t.Context(), labelled("a", "red", "1"), metav1.CreateOptions{})
			return
		},
		func() (err error) {
			_, err = configMaps.Create(t.Context(), labelled("b", "blue", "1"), metav1.CreateOptions{})
			return
		},
		func() (err error) {
			_, err = configMaps.Update(t.Context(), labelled("a", "red", "2"), metav1.UpdateOptions{})
			return
		},
		func() (err error) {
			_, err = configMaps.Update(t.Context(), labelled("a", "blue", "2"), metav1.UpdateOptions{})
			return
		},
		func() (err error) {
			_, err = configMaps.Update(t.Context(), labelled("b", "red", "1"), metav1.UpdateOptions{})
			return
		},
		func() error { return configMaps.Delete(t.Context(), "a", metav1.DeleteOptions{}) },
		func() (err error) {
			_, err = configMaps.Create(t.Context(), labelled("a", "red", "3"), metav1.CreateOptions{})
			return
		},
		func() error { return configMaps.Delete(t.Context(), "b", metav1.DeleteOptions{}) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWatchReplaysWhatHappenedSinceTheList(t *testing.T) {
	t.Parallel()
	server, client := start(t, testserver.Options{Objects: []runtime.Object{newConfigMap("before", nil)}})
	list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 {
		t.Fatalf("%d objects", len(list.Items))
	}
	revision, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	metadataClient, err := metadata.NewForConfig(server.Upstream)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"ADDED a", "ADDED b", "MODIFIED a", "MODIFIED a", "MODIFIED b", "DELETED a", "ADDED a", "DELETED b"}
	red := []string{"ADDED a", "MODIFIED a", "DELETED a", "ADDED b", "ADDED a", "DELETED b"}
	named := []string{"ADDED b", "MODIFIED b", "DELETED b"}
	selections := map[string]struct {
		options metav1.ListOptions
		want    []string
	}{
		"all": {metav1.ListOptions{}, all}, "label": {metav1.ListOptions{LabelSelector: "color=red"}, red},
		"field": {metav1.ListOptions{FieldSelector: "metadata.name=b"}, named},
		"both":  {metav1.ListOptions{FieldSelector: "metadata.name=b", LabelSelector: "color=red"}, []string{"ADDED b", "DELETED b"}},
	}
	open := func(options metav1.ListOptions, asMetadata bool) watch.Interface {
		options.ResourceVersion = list.ResourceVersion
		var watching watch.Interface
		if asMetadata {
			watching, err = metadataClient.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default").Watch(t.Context(), options)
		} else {
			watching, err = client.CoreV1().ConfigMaps("default").Watch(t.Context(), options)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(watching.Stop)
		return watching
	}
	type opened struct {
		name     string
		watching watch.Interface
		want     []string
	}
	var watches []opened
	openAll := func(when string) {
		for name, selection := range selections {
			for _, asMetadata := range []bool{false, true} {
				watches = append(watches, opened{fmt.Sprint(when, ", ", name, ", metadata ", asMetadata), open(selection.options, asMetadata), selection.want})
			}
		}
	}
	openAll("opened before")
	changes(t, client)
	openAll("opened after")
	for _, one := range watches {
		last := revision
		var got []string
		for range one.want {
			got = append(got, next(t, one.watching, &last))
		}
		if diff := cmp.Diff(one.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", one.name, diff)
		}
	}
}

func TestFieldSelectorsOfPods(t *testing.T) {
	t.Parallel()
	_, client := start(t, testserver.Options{Objects: []runtime.Object{
		newPod("a", "n1", "10.0.0.1", nil), newPod("b", "n2", "10.0.0.2", nil), newPod("c", "", "10.0.0.3", nil),
	}})
	for selector, want := range map[string]string{
		"spec.nodeName=n1": "a", "spec.nodeName!=n1": "b c", "spec.nodeName=": "c", "status.phase=Running": "a b c",
		"status.phase=Pending": "", "metadata.namespace=default,metadata.name=b": "b", "status.podIP=10.0.0.3": "c",
	} {
		list, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			t.Errorf("%s: %v", selector, err)
			continue
		}
		var got []string
		for _, pod := range list.Items {
			got = append(got, pod.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s gives %v, want %s", selector, got, want)
		}
	}
	if _, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=red"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a field that cannot be selected by: %v", err)
	}
}

func TestRevisionsThatAreGone(t *testing.T) {
	t.Parallel()
	_, client := start(t, testserver.Options{Objects: []runtime.Object{newConfigMap("a", nil)}})
	configMaps := client.CoreV1().ConfigMaps("default")
	watching, err := configMaps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err == nil {
		event := <-watching.ResultChan()
		watching.Stop()
		err = apierrors.FromObject(event.Object)
		if event.Type != watch.Error {
			t.Errorf("the first event is %s", event.Type)
		}
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a watch from long ago: %v", err)
	}
	exact := metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	if _, err := configMaps.List(t.Context(), exact); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a LIST of long ago: %v", err)
	}
	list, err := configMaps.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	revision, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	// The client would ask again ten times.
	err = client.CoreV1().RESTClient().Get().Namespace("default").Resource("configmaps").
		Param("resourceVersion", strconv.FormatUint(revision+1000, 10)).MaxRetries(0).Do(t.Context()).Error()
	if !apierrors.IsTimeout(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		t.Errorf("a LIST of the future: %v", err)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	const count = 23
	var objects []runtime.Object
	for i := range count {
		objects = append(objects, newConfigMap(fmt.Sprintf("c%02d", i), nil))
	}
	_, client := start(t, testserver.Options{Objects: objects})
	configMaps := client.CoreV1().ConfigMaps("default")
	var got []string
	options := metav1.ListOptions{Limit: 5}
	revision := ""
	for page := 0; ; page++ {
		list, err := configMaps.List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			got = append(got, item.Name)
		}
		if revision == "" {
			revision = list.ResourceVersion
		}
		if list.ResourceVersion != revision {
			t.Errorf("page %d is of revision %s, the first of %s", page, list.ResourceVersion, revision)
		}
		if remaining := list.RemainingItemCount; list.Continue != "" && (remaining == nil || int(*remaining) != count-len(got)) {
			t.Errorf("page %d says that %v remain", page, remaining)
		}
		if list.Continue == "" {
			break
		}
		options.Continue = list.Continue
		// Neither of them belongs to the list that was begun.
		if err := configMaps.Delete(t.Context(), fmt.Sprintf("c%02d", 22-page), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := configMaps.Create(t.Context(), newConfigMap(fmt.Sprintf("c%02dx", page*5+7), nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != count || got[0] != "c00" || got[count-1] != "c22" {
		t.Errorf("got %d objects: %v", len(got), got)
	}
	options.Continue = "nonsense"
	if _, err := configMaps.List(t.Context(), options); !apierrors.IsBadRequest(err) {
		t.Errorf("a bad continue token: %v", err)
	}
}

func TestTablesAndMetadata(t *testing.T) {
	t.Parallel()
	_, client := start(t, testserver.Options{Objects: []runtime.Object{newPod("p", "n1", "10.0.0.1", nil), newService("s", nil)}})
	for resource, want := range map[string]string{"pods": "p", "services": "kubernetes", "namespaces": "default", "serviceaccounts": ""} {
		request := client.CoreV1().RESTClient().Get().Resource(resource).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		content, err := request.Do(t.Context()).Raw()
		if err != nil {
			t.Fatal(err)
		}
		var table metav1.Table
		if err := json.Unmarshal(content, &table); err != nil {
			t.Fatal(err)
		}
		if table.Kind != "Table" || table.ResourceVersion == "" || len(table.ColumnDefinitions) < 2 || table.ColumnDefinitions[0].Name != "Name" {
			t.Errorf("%s: %s", resource, content)
		}
		first := ""
		if len(table.Rows) > 0 {
			first, _ = table.Rows[0].Cells[0].(string)
		}
		if first != want {
			t.Errorf("the first row of %s is of %q, want %q", resource, first, want)
		}
		content, err = client.CoreV1().RESTClient().Get().Resource(resource).
			SetHeader("Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
		if err != nil {
			t.Fatal(err)
		}
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal(content, &list); err != nil {
			t.Fatal(err)
		}
		if list.Kind != "PartialObjectMetadataList" || len(list.Items) != len(table.Rows) || strings.Contains(string(content), `"spec"`) {
			t.Errorf("metadata of %s: %s", resource, content)
		}
	}
}
