// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	restclient "k8s.io/client-go/rest"
)

func tableOf(t *testing.T, e event) metav1.Table {
	t.Helper()
	var table metav1.Table
	if err := json.Unmarshal(e.Object, &table); err != nil {
		t.Fatalf("%v in %s", err, e.Object)
	}
	if table.Kind != "Table" || len(table.Rows) != 1 {
		t.Fatalf("%s %s, want a Table with one row", e.Type, e.Object)
	}
	return table
}

func TestTableOfAWatchShowsEveryEvent(t *testing.T) {
	for include, kinds := range map[string][2]string{ // of the objects of events and of bookmarks
		"":         {"PartialObjectMetadata", "PartialObjectMetadata"},
		"Metadata": {"PartialObjectMetadata", "PartialObjectMetadata"},
		"Object":   {"Service", "Service"},
		// The bookmark is told by its annotation, so it has metadata even here.
		"None": {"", "PartialObjectMetadata"},
	} {
		t.Run(include, func(t *testing.T) {
			s := newServer(t)
			s.put(t, servicesResource, "default/a", service("a"))
			w := s.watch(t, "/api/v1/services?"+watchList+"&includeObject="+include, asTable)
			check := func(eventType, name string, columns int, kind string) metav1.PartialObjectMetadata {
				t.Helper()
				e := w.next()
				table := tableOf(t, e)
				if e.Type != eventType || table.Rows[0].Cells[0] != name || len(table.ColumnDefinitions) != columns {
					t.Errorf("%s %s, want %s of %q with %d columns", e.Type, e.Object, eventType, name, columns)
				}
				var object metav1.PartialObjectMetadata
				if raw := table.Rows[0].Object.Raw; raw != nil {
					if err := json.Unmarshal(raw, &object); err != nil {
						t.Fatal(err)
					}
				}
				if object.Kind != kind {
					t.Errorf("%s of %q holds a %q, want %q", eventType, name, object.Kind, kind)
				}
				return object
			}
			check("ADDED", "a", 7, kinds[0])
			bookmark := check("BOOKMARK", "", 0, kinds[1])
			if bookmark.Annotations[metav1.InitialEventsAnnotationKey] != "true" || bookmark.ResourceVersion != strconv.FormatUint(initialRevision+1, 10) {
				t.Errorf("the bookmark has %v at %s", bookmark.Annotations, bookmark.ResourceVersion)
			}
			s.put(t, servicesResource, "default/a", service("a", labelled("new", "yes")))
			check("MODIFIED", "a", 0, kinds[0])
			left := s.put(t, servicesResource, "default/a", nil)
			if gone := check("DELETED", "a", 0, kinds[0]); kinds[0] != "" && gone.ResourceVersion != strconv.FormatUint(left, 10) {
				t.Errorf("DELETED at %s, want %d", gone.ResourceVersion, left)
			}
		})
	}
}

func TestColumnsOfAWatchComeOnce(t *testing.T) {
	s := newServer(t)
	s.put(t, servicesResource, "default/a", service("a"))
	// Encoded events are shared between watches: each must have columns of its own.
	for i, c := range []struct {
		query   string
		columns []int
	}{{"", []int{7, 0}}, {"", []int{7, 0}}, {"?noHeaders=true", []int{7, 0}}, {"?includeObject=None", []int{7, 0}}} {
		w := s.watch(t, "/api/v1/services"+c.query, asTable)
		got := []int{len(tableOf(t, w.next()).ColumnDefinitions)}
		s.put(t, servicesResource, "default/a", service("a", labelled("n", strconv.Itoa(i))))
		got = append(got, len(tableOf(t, w.next()).ColumnDefinitions))
		if diff := cmp.Diff(c.columns, got); diff != "" {
			t.Errorf("columns of a watch%s (-want +got):\n%s", c.query, diff)
		}
	}
}

// TestMetadataClient uses the client that garbage collectors and informers of metadata use; it speaks protobuf.
func TestMetadataClient(t *testing.T) {
	s := newServer(t)
	s.put(t, servicesResource, "default/a", service("a"))
	client, err := metadata.NewForConfig(&restclient.Config{Host: s.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	services := client.Resource(corev1.SchemeGroupVersion.WithResource("services"))
	want := service("a").ObjectMeta
	want.ResourceVersion = strconv.FormatUint(initialRevision+1, 10)
	check := func(how string, got *metav1.PartialObjectMetadata) {
		t.Helper()
		meta := got.ObjectMeta
		meta.CreationTimestamp = metav1.NewTime(meta.CreationTimestamp.UTC())
		if diff := cmp.Diff(want, meta); diff != "" {
			t.Errorf("%s (-want +got):\n%s", how, diff)
		}
	}
	one, err := services.Namespace("default").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	check("GET", one)
	list, err := services.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("LIST: %v, %v", list, err)
	}
	if list.ResourceVersion != want.ResourceVersion {
		t.Errorf("LIST at %s, want %s", list.ResourceVersion, want.ResourceVersion)
	}
	check("LIST", &list.Items[0])

	w, err := services.Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: new(bool), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true, ResourceVersion: "0",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	s.put(t, servicesResource, "default/b", service("b"))
	if e := <-w.ResultChan(); e.Type != watch.Added || e.Object.(*metav1.PartialObjectMetadata).Name != "b" {
		t.Errorf("WATCH: %v, want b", e)
	}
	// The answers must have been protobuf, or the client would hide what it is about.
	response, body := s.request(t, http.MethodGet, "/api/v1/services", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
	if got := response.Header.Get("Content-Type"); got != asProtobuf || !slices.Equal(body[:4], []byte("k8s\x00")) {
		t.Errorf("metadata in protobuf comes as %s", got)
	}
}

// TestErrorEventsAreStatuses: a watch that cannot go on says so in the encoding and the
// transformation that was asked for.
func TestErrorEventsAreStatuses(t *testing.T) {
	s := newServer(t)
	s.put(t, servicesResource, "default/a", service("a"))
	for _, accept := range []string{asJSON, asTable, asPartial} {
		for query, want := range map[string]metav1.StatusReason{
			"resourceVersion=1":                metav1.StatusReasonExpired,
			"resourceVersion=9000000000000000": metav1.StatusReasonTimeout,
		} {
			if status := errorStatus(t, s.watch(t, "/api/v1/services?"+query, accept).next()); status.Reason != want || status.Kind != "Status" {
				t.Errorf("%s as %s: %+v", query, accept, status)
			}
		}
	}
	for revision, want := range map[string]metav1.StatusReason{"1": metav1.StatusReasonExpired, "9000000000000000": metav1.StatusReasonTimeout} {
		w, err := s.client(t, asProtobuf).CoreV1().Services("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		e := <-w.ResultChan()
		if status, ok := e.Object.(*metav1.Status); e.Type != watch.Error || !ok || status.Reason != want {
			t.Errorf("from %s in protobuf: %v", revision, e)
		}
		w.Stop()
	}
}
