// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// localPaths are one collection of each resource that is served locally.
var localPaths = []string{
	"/api/v1/services", "/api/v1/endpoints", "/apis/discovery.k8s.io/v1/endpointslices",
	"/api/v1/nodes?fieldSelector=metadata.name%3Dn1", "/api/v1/namespaces", "/apis/networking.k8s.io/v1/servicecidrs",
}

// with adds a query to a path that may have one.
func with(path, query string) string {
	if strings.Contains(path, "?") {
		return path + "&" + query
	}
	return path + "?" + query
}

// rawEvent is an event of a watch in JSON.
type rawEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

func (e rawEvent) metadata(t testing.TB) metav1.ObjectMeta {
	t.Helper()
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(e.Object, &o); err != nil {
		t.Fatal(err)
	}
	return o.ObjectMeta
}

// rawWatch opens a watch and returns its events; the channel is closed at its
// end. A refusal is returned as an ERROR event: a client treats them alike.
func (g *grid) rawWatch(t testing.TB, config *rest.Config, path string) <-chan rawEvent {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+g.address+with(path, "watch=1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", asJSON)
	response, err := newHTTPClient(t, config).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	events := make(chan rawEvent, 1000)
	go func() {
		defer close(events)
		decoder := json.NewDecoder(response.Body)
		if response.StatusCode != http.StatusOK {
			refusal := rawEvent{Type: "ERROR"}
			if decoder.Decode(&refusal.Object) == nil {
				events <- refusal
			}
			return
		}
		for {
			var e rawEvent
			if decoder.Decode(&e) != nil {
				return
			}
			events <- e
		}
	}()
	return events
}

func nextRaw(t testing.TB, events <-chan rawEvent, limit time.Duration) rawEvent {
	t.Helper()
	select {
	case e, ok := <-events:
		if !ok {
			t.Fatal("the watch has ended")
		}
		return e
	case <-time.After(limit):
		t.Fatalf("no event within %s", limit)
	}
	return rawEvent{}
}

func TestInitialEventsEndWithABookmark(t *testing.T) {
	u := startUpstream(t, fixture(service("t", zoneKeys), slice("s-1", "s", "n1"), endpoints("s", "n1"))...)
	g := readyGrid(t, u)
	g.get(t, g.local, "/api/v1/endpoints", asJSON) // from now on they are followed
	const initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	admin := g.bearer(adminToken)
	for _, c := range []struct {
		name, path string
		config     *rest.Config
		added      int
	}{
		{"services", "/api/v1/services", g.local, 2},
		{"slices", "/apis/discovery.k8s.io/v1/endpointslices", g.local, 1},
		{"Endpoints", "/api/v1/endpoints", g.local, 1},
		{"own node", "/api/v1/nodes?fieldSelector=metadata.name%3Dn1", g.local, 1},
		{"empty namespace", "/api/v1/namespaces/empty/services", g.local, 0},
		{"empty slices", "/apis/discovery.k8s.io/v1/namespaces/empty/endpointslices", g.local, 0},
		{"empty namespaces", "/api/v1/namespaces", g.local, 0},
		{"empty servicecidrs", "/apis/networking.k8s.io/v1/servicecidrs", g.local, 0},
		{"label selector", "/api/v1/services?labelSelector=no%3Dsuch", g.local, 0},
		{"with a token", "/api/v1/services", admin, 2},
		{"proxied", "/api/v1/nodes", admin, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			events := g.rawWatch(t, c.config, with(c.path, initial))
			for range c.added {
				if e := nextRaw(t, events, soon); e.Type != "ADDED" {
					t.Fatalf("%s %s, want ADDED", e.Type, e.Object)
				}
			}
			e := nextRaw(t, events, soon)
			if took := time.Since(start); took > soon {
				t.Errorf("the bookmark took %s", took)
			}
			m := e.metadata(t)
			if e.Type != "BOOKMARK" || m.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
				t.Fatalf("%s %s, want the bookmark at the end of the initial events", e.Type, e.Object)
			}
			if revision, err := strconv.ParseUint(m.ResourceVersion, 10, 64); err != nil || revision == 0 {
				t.Errorf("the bookmark has the resourceVersion %q", m.ResourceVersion)
			}
		})
	}
}

func TestEveryListCarriesAResourceVersion(t *testing.T) {
	for _, c := range []struct {
		name    string
		objects []object
	}{
		{"filled", fixture(slice("s-1", "s", "n1"), endpoints("s", "n1"), namespace("default"))},
		{"empty", []object{node("n1", "a")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := readyGrid(t, startUpstream(t, c.objects...))
			for _, path := range localPaths {
				for _, accept := range []string{asJSON, asTable} {
					a := g.get(t, g.local, path, accept)
					list := decode[metav1.PartialObjectMetadataList](t, a)
					revision, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
					if a.code != http.StatusOK || err != nil || revision == 0 {
						t.Errorf("GET %s as %s: %d with resourceVersion %q", path, accept, a.code, list.ResourceVersion)
					}
				}
			}
		})
	}
}

func TestChangeBetweenListAndWatchArrivesOnce(t *testing.T) {
	u := startUpstream(t, fixture(slice("s-1", "s", "n1"), endpoints("s", "n1"))...)
	g := readyGrid(t, u)
	client := g.client(t)
	slices, err := client.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eps, err := client.CoreV1().Endpoints("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	u.put(t, slice("s-1", "s", "n1", "n2"), endpoints("s", "n1", "n2"))
	becomes(t, soon, slicesOf, client, "s-1[n1 n2]")
	becomes(t, soon, endpointsOf, client, "s[n1 n2]")

	followedSlices := follow(t, client.DiscoveryV1().EndpointSlices(""), slices.ResourceVersion)
	followedEndpoints := follow(t, client.CoreV1().Endpoints(""), eps.ResourceVersion)
	u.put(t, slice("marker", ""), endpoints("marker"))
	for _, c := range []struct {
		events       *events
		first, after string
	}{
		{followedSlices, "MODIFIED s-1[n1 n2]", "ADDED marker[]"}, {followedEndpoints, "MODIFIED s[n1 n2]", "ADDED marker[]"},
	} {
		for _, want := range []string{c.first, c.after} {
			if got := c.events.next(soon); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}

func TestListFromTheFutureWaitsAndIsTooLarge(t *testing.T) {
	t.Parallel()
	g := readyGrid(t, startUpstream(t, fixture(endpoints("s", "n1"))...))
	g.get(t, g.local, "/api/v1/endpoints", asJSON)
	for _, path := range localPaths {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			list := decode[metav1.PartialObjectMetadataList](t, g.get(t, g.local, path, asJSON))
			current, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			a := g.get(t, g.local, with(path, fmt.Sprint("resourceVersion=", current+1000)), asJSON)
			status := decode[metav1.Status](t, a)
			if a.code != http.StatusGatewayTimeout || status.Code != http.StatusGatewayTimeout {
				t.Fatalf("%d %s, want 504", a.code, a.body)
			}
			if a.took < 2*time.Second {
				t.Errorf("took %s, want at least 3 s", a.took)
			}
			if !apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: status}, metav1.CauseTypeResourceVersionTooLarge) {
				t.Errorf("no cause ResourceVersionTooLarge: %s", a.body)
			}
			if status.Details == nil || status.Details.RetryAfterSeconds == 0 || a.header.Get("Retry-After") == "" {
				t.Errorf("no hint to retry: %s %v", a.body, a.header)
			}
		})
	}
}

func TestWatchOutsideOfTheHistoryIsAnError(t *testing.T) {
	u := startUpstream(t, fixture(endpoints("s", "n1"))...)
	g := readyGrid(t, u)
	g.get(t, g.local, "/api/v1/endpoints", asJSON)
	u.put(t, node("n1", "b")) // history for the mirror
	for _, path := range localPaths {
		list := decode[metav1.PartialObjectMetadataList](t, g.get(t, g.local, path, asJSON))
		current, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		status := errorOf(t, g.rawWatch(t, g.local, with(path, fmt.Sprint("resourceVersion=", current+1_000_000))))
		if !apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: status}, metav1.CauseTypeResourceVersionTooLarge) {
			t.Errorf("WATCH %s from the future: %+v, want ResourceVersionTooLarge", path, status)
		}
		status = errorOf(t, g.rawWatch(t, g.local, with(path, "resourceVersion=1")))
		if status.Code != http.StatusGone || status.Reason != metav1.StatusReasonExpired {
			t.Errorf("WATCH %s from 1: %+v, want 410 Expired", path, status)
		}
	}
}

// errorOf returns the Status of the ERROR event that a watch begins with.
func errorOf(t testing.TB, events <-chan rawEvent) metav1.Status {
	t.Helper()
	var status metav1.Status
	e := nextRaw(t, events, patience)
	if e.Type != "ERROR" {
		t.Fatalf("%s %s, want ERROR", e.Type, e.Object)
	}
	if err := json.Unmarshal(e.Object, &status); err != nil {
		t.Fatal(err)
	}
	return status
}
