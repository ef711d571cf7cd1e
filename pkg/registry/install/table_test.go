// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTableOfAList(t *testing.T) {
	s := newServer(t)
	revision := s.put(t, servicesResource, "default/web", service("web"))
	for query, want := range map[string]string{
		"":                        "PartialObjectMetadata",
		"?includeObject=Metadata": "PartialObjectMetadata",
		"?includeObject=Object":   "Service",
		"?includeObject=None":     "",
	} {
		t.Run(query, func(t *testing.T) {
			table := get[metav1.Table](t, s, "/api/v1/namespaces/default/services"+query, asTable)
			if table.Kind != "Table" || table.ResourceVersion != strconv.FormatUint(revision, 10) {
				t.Errorf("got %s at %s", table.Kind, table.ResourceVersion)
			}
			if len(table.ColumnDefinitions) != 7 || len(table.Rows) != 1 {
				t.Fatalf("got %d columns, %d rows", len(table.ColumnDefinitions), len(table.Rows))
			}
			cells := table.Rows[0].Cells
			cells = append(cells[:5:5], cells[6])
			if diff := cmp.Diff([]any{"web", "ClusterIP", "10.96.0.10", "<none>", "80/TCP", "app=web"}, cells); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
			var object metav1.TypeMeta
			if raw := table.Rows[0].Object.Raw; raw != nil {
				if err := json.Unmarshal(raw, &object); err != nil {
					t.Fatal(err)
				}
			}
			if object.Kind != want {
				t.Errorf("got the object kind %q, want %q", object.Kind, want)
			}
		})
	}
}

func TestTableOfAWatch(t *testing.T) {
	s := newServer(t)
	s.put(t, servicesResource, "default/a", service("a"))
	w := s.watch(t, "/api/v1/services", asTable)
	for i, name := range []string{"a", "b", "c"} {
		if i > 0 {
			s.put(t, servicesResource, "default/"+name, service(name))
		}
		e := w.next()
		var table metav1.Table
		if err := json.Unmarshal(e.Object, &table); err != nil {
			t.Fatal(err)
		}
		if e.Type != "ADDED" || table.Kind != "Table" || len(table.Rows) != 1 || table.Rows[0].Cells[0] != name {
			t.Errorf("got %s %s, want a Table with one row for %s", e.Type, e.Object, name)
		}
		// The headers are sent with the first event only.
		if (len(table.ColumnDefinitions) > 0) != (i == 0) {
			t.Errorf("event %d has %d columns", i, len(table.ColumnDefinitions))
		}
	}
}

func TestMetadataOnly(t *testing.T) {
	s := newServer(t)
	s.put(t, servicesResource, "default/a", service("a"))
	want := service("a").ObjectMeta
	want.ResourceVersion = strconv.FormatUint(initialRevision+1, 10)

	check := func(t *testing.T, raw []byte) {
		t.Helper()
		var object struct {
			metav1.PartialObjectMetadata
			Spec any
		}
		if err := json.Unmarshal(raw, &object); err != nil {
			t.Fatal(err)
		}
		// A JSON time has the local zone after decoding.
		object.CreationTimestamp = metav1.NewTime(object.CreationTimestamp.UTC())
		if diff := cmp.Diff(want, object.ObjectMeta); diff != "" {
			t.Errorf("metadata (-want +got):\n%s", diff)
		}
		if object.Kind != "PartialObjectMetadata" || object.APIVersion != "meta.k8s.io/v1" || object.Spec != nil {
			t.Errorf("got %s", raw)
		}
	}
	t.Run("get", func(t *testing.T) {
		check(t, get[json.RawMessage](t, s, "/api/v1/namespaces/default/services/a", asPartial))
	})
	t.Run("list", func(t *testing.T) {
		list := get[struct{ Items []json.RawMessage }](t, s, "/api/v1/services", asPartials)
		if len(list.Items) != 1 {
			t.Fatalf("got %d items", len(list.Items))
		}
		check(t, list.Items[0])
	})
	t.Run("watch", func(t *testing.T) {
		check(t, s.watch(t, "/api/v1/services", asPartial).next().Object)
	})
}

func TestTableOfOtherResources(t *testing.T) {
	s := newServer(t)
	s.put(t, corev1.Resource("nodes"), "n1", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	for resource, path := range collections {
		table := get[metav1.Table](t, s, path, asTable)
		if len(table.ColumnDefinitions) < 3 || table.ColumnDefinitions[0].Name != "Name" {
			t.Errorf("%s: got columns %v", resource, table.ColumnDefinitions)
		}
	}
}
