// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// finalStatesUnknown names what the handler was told of by
// DeletedFinalStateUnknown.
func (m *mirror) finalStatesUnknown() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.unknown)
}

// wantsDeleted waits until the handler was told that name is deleted.
func (m *mirror) wantsDeleted(t testing.TB, name string) {
	t.Helper()
	eventually(t, patience, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return slices.Contains(m.deleted, name)
	}, func() any { return "no handler was told that " + name + " is deleted" })
}

func TestWhatWasDeletedWhileUpstreamWasCutOffGoes(t *testing.T) {
	for _, c := range []struct {
		name   string
		relist bool
	}{
		{"upstream remembers", false},
		{"upstream answers 410", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := startUpstream(t, fixture(slice("s-1", "s", "n1", "n2", "n3"), endpoints("s", "n1", "n2"), namespace("gone"),
				service("t", zoneKeys), slice("t-1", "t", "n1", "n2", "n3"), endpoints("t", "n1", "n2"))...)
			g := readyGrid(t, u)
			client := g.client(t)
			w := watched{endpoints: followEndpoints(t, client)}
			w.services, w.slices = followServices(t, client), followSlices(t, client)
			list, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			namespaces := follow(t, client.CoreV1().Namespaces(), list.ResourceVersion)
			handlers := [2]*mirror{newMirror(), newMirror()}
			runInformer(t, sliceSource(newClient(t, g.as(asProtobuf))), &discoveryv1.EndpointSlice{}, handlers[0], handlers[1])
			for _, h := range handlers {
				h.becomes(t, patience, "before", "s-1[n1 n2]", "t-1[n1 n2]")
			}

			u.cut()
			u.remove(t, service("s", ""), slice("s-1", ""), endpoints("s"), node("n2", ""), namespace("gone"))
			if c.relist {
				u.put(t, node("n9", "")) // the resources are behind it
				u.forget()
			}
			// What was served goes on meanwhile.
			if got := slicesOf(t, client); !slices.Equal(got, []string{"s-1[n1 n2]", "t-1[n1 n2]"}) {
				t.Errorf("while upstream is away: %v", got)
			}
			u.heal()
			w.services.want(patience, "DELETED s")
			namespaces.want(patience, "DELETED gone")
			// The Service may go before its slice or the Node.
			untilEvents(t, w.slices, "DELETED s-1[", "MODIFIED t-1[n1]")
			untilEvents(t, w.endpoints, "DELETED s[", "MODIFIED t[n1]")
			for _, h := range handlers {
				h.becomes(t, patience, "after", "t-1[n1]")
				h.wantsDeleted(t, "s-1")
			}
		})
	}
}

// untilEvents reads events until one has come with each of the prefixes.
func untilEvents(t testing.TB, e *events, prefixes ...string) {
	t.Helper()
	for len(prefixes) > 0 {
		got := e.next(patience)
		if got == "nothing" || got == "the watch has ended" {
			t.Fatalf("%s, want %v", got, prefixes)
		}
		prefixes = slices.DeleteFunc(prefixes, func(p string) bool { return strings.HasPrefix(got, p) })
	}
}

func TestWhatWasDeletedOverARestartGoes(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, fixture(slice("s-1", "s", "n1"), namespace("gone"), namespace("stays"))...)
	g := readyGrid(t, u)
	client := newClient(t, g.as(asProtobuf))
	handlers := map[string][2]*mirror{}
	for resource, lw := range map[string]*listWatch{
		"services":   {serviceSource(client), &corev1.Service{}},
		"slices":     {sliceSource(client), &discoveryv1.EndpointSlice{}},
		"namespaces": {namespaceSource(client), &corev1.Namespace{}},
	} {
		handlers[resource] = [2]*mirror{newMirror(), newMirror()}
		runInformer(t, lw.source, lw.example, handlers[resource][0], handlers[resource][1])
	}
	for i := range 2 {
		handlers["services"][i].becomes(t, patience, "before", "s")
		handlers["slices"][i].becomes(t, patience, "before", "s-1[n1]")
		handlers["namespaces"][i].becomes(t, patience, "before", "gone", "stays")
	}
	// Namespaces keep upstream's revisions, so this one is in the new server's
	// range, too.
	list := decode[metav1.PartialObjectMetadataList](t, g.get(t, g.local, "/api/v1/namespaces", asJSON))
	g.stop(t)
	u.remove(t, service("s", ""), slice("s-1", ""), namespace("gone"))
	g = startGridIn(t, u, g.dir, g.address)
	for i := range 2 {
		handlers["services"][i].becomes(t, patience, "after")
		handlers["slices"][i].becomes(t, patience, "after")
		handlers["namespaces"][i].becomes(t, patience, "after", "stays")
		for resource, name := range map[string]string{"services": "s", "slices": "s-1", "namespaces": "gone"} {
			if unknown := handlers[resource][i].finalStatesUnknown(); !slices.Contains(unknown, name) {
				t.Errorf("handler %d of %s was not told of %s by DeletedFinalStateUnknown: %v", i, resource, name, unknown)
			}
		}
	}
	// A client that was not told to list again while the server started.
	g.waitReady(t)
	status := errorOf(t, g.rawWatch(t, g.local, "/api/v1/namespaces?resourceVersion="+list.ResourceVersion))
	if status.Code != http.StatusGone {
		t.Errorf("WATCH of namespaces from before the restart: %+v, want 410", status)
	}
}

func TestBootWhileUpstreamIsAway(t *testing.T) {
	for _, c := range []struct {
		name     string
		away     func(*upstream)
		comeBack func(testing.TB, *upstream)
	}{
		{"refuses connections", (*upstream).stop, func(t testing.TB, u *upstream) { u.start(t) }},
		{"never answers", (*upstream).hold, func(_ testing.TB, u *upstream) { u.release() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := startUpstream(t, fixture(slice("s-1", "s", "n1", "n3"), endpoints("s", "n1"))...)
			c.away(u)
			g := startGrid(t, u)
			for name, config := range map[string]*rest.Config{"local": g.local, "token": g.bearer(adminToken)} {
				for _, err := range manyLists(t, g, config) {
					t.Errorf("%s: %v", name, err)
				}
			}
			a := g.get(t, rest.AnonymousClientConfig(g.local), "/readyz?verbose", asJSON)
			if a.code == http.StatusOK {
				t.Errorf("/readyz is %d", a.code)
			}
			for _, want := range []string{"[-]own-node-n1 failed", "[-]upstream-services failed", "[-]upstream-endpointslices failed"} {
				if !strings.Contains(string(a.body), want) {
					t.Errorf("/readyz does not say %q:\n%s", want, a.body)
				}
			}
			c.comeBack(t, u)
			g.waitReady(t)
			if got := slicesOf(t, g.client(t)); !slices.Equal(got, []string{"s-1[n1]"}) {
				t.Errorf("after that: %v", got)
			}
		})
	}
}

// manyLists sends 200 LISTs, as many at a time as the local identity may have in
// flight, less those of others, and returns what is wrong with the answers.
func manyLists(t *testing.T, g *grid, config *rest.Config) []error {
	t.Helper()
	client := newHTTPClient(t, config)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// The answers are timed, not 200 TLS handshakes of a client on the same
	// two cores.
	if _, err := tryFetch(ctx, client, "https://"+g.address+"/livez", asJSON); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var failures []error
	var wg sync.WaitGroup
	slots := make(chan struct{}, 40)
	for i := range 200 {
		path := localPaths[i%len(localPaths)]
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			a, err := tryFetch(ctx, client, "https://"+g.address+path, asJSON)
			if err == nil {
				err = checkNotReady(a)
			}
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, fmt.Errorf("GET %s: %w", path, err))
			}
		})
	}
	wg.Wait()
	return failures
}

func checkNotReady(a answer) error {
	if a.code != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || !strings.Contains(string(a.body), `"kind":"Status"`) {
		return fmt.Errorf("%d %v %s, want 503 with Retry-After and a Status", a.code, a.header, a.body)
	}
	if a.took > 5*time.Second {
		return fmt.Errorf("the answer took %s", a.took)
	}
	return nil
}
