// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPagesAreConsistent(t *testing.T) {
	s := newServer(t)
	for i := range 5 {
		s.put(t, servicesResource, fmt.Sprintf("default/s%d", i), service(fmt.Sprintf("s%d", i)))
	}
	for _, accept := range []string{asJSON, asPartials} {
		var names, revisions []string
		for token, page := "", 0; page == 0 || token != ""; page++ {
			list := get[metav1.PartialObjectMetadataList](t, s, "/api/v1/services?limit=2&continue="+token, accept)
			for _, item := range list.Items {
				names = append(names, item.Name)
			}
			revisions = append(revisions, list.ResourceVersion)
			token = list.Continue
			// A page after this change must still show the state of the first page.
			s.put(t, servicesResource, "default/s4", service("s4", labelled("page", strconv.Itoa(page))))
			if page == 0 && (list.RemainingItemCount == nil || *list.RemainingItemCount != 3) {
				t.Errorf("got remainingItemCount %v, want 3", list.RemainingItemCount)
			}
		}
		if diff := cmp.Diff([]string{"s0", "s1", "s2", "s3", "s4"}, names); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
		if len(revisions) != 3 || revisions[0] != revisions[1] || revisions[1] != revisions[2] {
			t.Errorf("pages have revisions %v, want three times the same", revisions)
		}
	}
}

func TestResourceVersionMatch(t *testing.T) {
	s := newServer(t)
	first := s.put(t, servicesResource, "default/a", service("a"))
	second := s.put(t, servicesResource, "default/b", service("b"))
	tests := []struct {
		query    string
		items    int
		revision uint64
	}{
		{fmt.Sprintf("resourceVersion=%d&resourceVersionMatch=Exact", first), 1, first},
		{fmt.Sprintf("resourceVersion=%d&resourceVersionMatch=Exact&limit=1", second), 1, second},
		{fmt.Sprintf("resourceVersion=%d&resourceVersionMatch=NotOlderThan", first), 2, second},
		{"resourceVersion=0&resourceVersionMatch=NotOlderThan", 2, second},
		{fmt.Sprintf("resourceVersion=%d&limit=5", first), 1, first},
	}
	for _, test := range tests {
		t.Run(test.query, func(t *testing.T) {
			got := get[corev1.ServiceList](t, s, "/api/v1/services?"+test.query, asJSON)
			if len(got.Items) != test.items || got.ResourceVersion != strconv.FormatUint(test.revision, 10) {
				t.Errorf("got %d items at %s, want %d at %d", len(got.Items), got.ResourceVersion, test.items, test.revision)
			}
		})
	}
}

func TestListFromTheFutureIsTooLarge(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	start := time.Now()
	status, header := getStatus(t, s, fmt.Sprintf("/api/v1/services?resourceVersion=%d", initialRevision+1000), http.StatusGatewayTimeout)
	checkTooLarge(t, status)
	if header.Get("Retry-After") == "" {
		t.Error("there is no Retry-After header")
	}
	if waited := time.Since(start); waited < 2*time.Second {
		t.Errorf("answered after %v, want at least 3 s", waited)
	}
}

func TestWatchFromTheFutureIsTooLarge(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.put(t, servicesResource, "default/a", service("a"))
	for _, query := range []string{
		"resourceVersion=%d",
		"resourceVersion=%d&allowWatchBookmarks=true",
		"resourceVersion=%d&sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
		"resourceVersion=%d&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		"resourceVersion=%d&fieldSelector=metadata.name%%3Da",
	} {
		t.Run(query, func(t *testing.T) {
			w := s.watch(t, "/api/v1/services?"+fmt.Sprintf(query, initialRevision+2), asJSON)
			checkTooLarge(t, errorStatus(t, w.next()))
			if e, ok := <-w.events; ok {
				t.Errorf("the watch goes on with %v", e)
			}
		})
	}
	// The newest revision is not the future.
	w := s.watch(t, fmt.Sprintf("/api/v1/services?resourceVersion=%d", initialRevision+1), asJSON)
	s.put(t, servicesResource, "default/b", service("b"))
	if e := w.next(); e.Type != "ADDED" || e.metadata(t).Name != "b" {
		t.Errorf("got %s %s, want b", e.Type, e.Object)
	}
}

func TestWatchFromAnOldRevisionIsExpired(t *testing.T) {
	s := newServer(t)
	s.put(t, servicesResource, "default/a", service("a"))
	for _, accept := range []string{asJSON, asTable} {
		status := errorStatus(t, s.watch(t, "/api/v1/services?resourceVersion=1", accept).next())
		if status.Code != http.StatusGone || status.Reason != metav1.StatusReasonExpired {
			t.Errorf("got %+v, want 410 Expired", status)
		}
	}
}

func TestBadResourceVersionIsRefused(t *testing.T) {
	s := newServer(t)
	getStatus(t, s, "/api/v1/services?resourceVersion=x", http.StatusBadRequest)
	getStatus(t, s, "/api/v1/services?watch=1&resourceVersion=x", http.StatusInternalServerError) // as by kube-apiserver
}

func errorStatus(t *testing.T, e event) metav1.Status {
	t.Helper()
	if e.Type != "ERROR" {
		t.Fatalf("got the event %s %s, want an ERROR", e.Type, e.Object)
	}
	var status metav1.Status
	if err := json.Unmarshal(e.Object, &status); err != nil {
		t.Fatal(err)
	}
	return status
}

func checkTooLarge(t *testing.T, status metav1.Status) {
	t.Helper()
	err := apierrors.FromObject(&status)
	if status.Code != http.StatusGatewayTimeout || !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		t.Errorf("got %+v, want 504 with the cause ResourceVersionTooLarge", status)
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); !ok || seconds < 1 {
		t.Errorf("got the delay %d, %v", seconds, ok)
	}
}
