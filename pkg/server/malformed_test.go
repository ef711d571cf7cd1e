// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// logged is a test whose servers write to log.
type logged struct {
	testing.TB
	ctx context.Context
	log ktesting.Buffer
}

func withLog(t testing.TB) logged {
	t.Helper()
	logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true)))
	underlier, ok := logger.GetSink().(ktesting.Underlier)
	if !ok {
		t.Fatalf("the sink is a %T", logger.GetSink())
	}
	return logged{TB: t, ctx: klog.NewContext(t.Context(), logger), log: underlier.GetBuffer()}
}

// Context is what a server takes its logger from.
func (l logged) Context() context.Context { return l.ctx }

// wantLines asserts how often each Service is named in the log, in lines of a bounded length.
func (l logged) wantLines(step string, want map[string]int) {
	l.Helper()
	got := map[string]int{}
	for line := range strings.Lines(l.log.String()) {
		for name := range want {
			if !strings.Contains(line, `"default/`+name+`"`) {
				continue
			}
			got[name]++
			if len(line) > 2000 {
				l.Errorf("%s: a line of %d bytes for %s", step, len(line), name)
			}
		}
	}
	for name, n := range want {
		if got[name] != n {
			l.Errorf("%s: %d lines name %s, want %d", step, got[name], name, n)
		}
	}
}

// wantMalformed asserts what /metrics says.
func (g *grid) wantMalformed(t testing.TB, step string, want int) {
	t.Helper()
	a := g.get(t, g.bearer(adminToken), "/metrics", "text/plain")
	if line := fmt.Sprintf("\ngrid_apiserver_malformed_topology_services %d\n", want); !strings.Contains(string(a.body), line) {
		t.Errorf("%s: /metrics lacks %q", step, line)
	}
}

// wantUnfiltered asserts that every read of the Services, and of their slices and Endpoints, is answered, with all
// endpoints.
func (g *grid) wantUnfiltered(t testing.TB, step string, services map[string]string) {
	t.Helper()
	client := newHTTPClient(t, g.local)
	for name := range services {
		all := []string{`"10.0.0.1"`, `"10.0.0.3"`}
		for path, want := range map[string][]string{
			"/api/v1/namespaces/default/services/" + name:                                                                  {`"` + name + `"`},
			"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/" + name + "-1":                                   all,
			"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=" + name: all,
			"/api/v1/namespaces/default/endpoints/" + name:                                                                 all,
			"/api/v1/namespaces/default/endpoints?fieldSelector=metadata.name=" + name:                                     all,
		} {
			a := fetch(t, client, "https://"+g.address+path, asJSON)
			if a.code != http.StatusOK {
				t.Errorf("%s: %s: %d %.500s", step, path, a.code, a.body)
			}
			for _, w := range want {
				if !strings.Contains(string(a.body), w) {
					t.Errorf("%s: %s lacks %s: %.500s", step, path, w, a.body)
				}
			}
		}
	}
}

func TestMalformedAnnotationIsLoggedOncePerChangeAndDoesNotFilter(t *testing.T) {
	// Servers of one process share the metric, but no other test has malformed annotations.
	t.Parallel()
	annotations := map[string]string{
		"bare-word": `zone1`, "not-closed": `["zone1"`, "string": `"zone1"`, "number": `[1]`, "empty-key": `[""]`,
		"space": `["zone 1"]`, "17-keys": `["k` + strings.Repeat(`","k`, 16) + `"]`, "200-kb": strings.Repeat("x", 200_000),
		"policy": zoneKeys,
		// These are no annotation at all.
		"empty-string": ``, "empty-array": `[]`, "null": `null`,
	}
	objects := fourNodes()
	lines, malformed := map[string]int{}, 0
	annotated := func(name, keys string) object {
		s := service(name, noPolicy)
		s.Annotations = map[string]string{topology.TopologyKeysAnnotation: keys}
		if name == "policy" {
			s.Annotations[topology.TopologyPolicyAnnotation] = "nearest"
		}
		return s
	}
	for name, keys := range annotations {
		objects = append(objects, annotated(name, keys), slice(name+"-1", name, "n1", "n3"), endpoints(name, "n1", "n3"))
		lines[name] = 1
		if slices.Contains([]string{"empty-string", "empty-array", "null"}, name) {
			lines[name] = 0
		}
		malformed += lines[name]
	}
	u := startUpstream(t, objects...)
	first := withLog(t)
	g := readyGrid(first, u)
	g.wantUnfiltered(t, "start", annotations)
	first.wantLines("start", lines)
	g.wantMalformed(t, "start", malformed)

	client := g.client(t)
	w := watched{endpoints: followEndpoints(t, client)}
	w.services, w.slices = followServices(t, client), followSlices(t, client)
	const name = "space"
	// change puts the Service and waits until the view has it.
	change := func(step string, o object, events ...string) {
		t.Helper()
		u.put(t, o)
		w.services.want(patience, "MODIFIED "+name)
		for _, event := range events {
			w.slices.want(patience, "MODIFIED "+name+"-1"+event)
			w.endpoints.want(patience, "MODIFIED "+name+event)
		}
		w.nothingElse(t, u, step)
		first.wantLines(step, lines)
		g.wantMalformed(t, step, malformed)
	}

	other := annotated(name, annotations[name])
	other.SetLabels(map[string]string{"changed": "yes"})
	change("other-change", other)

	malformed--
	change("repaired", annotated(name, zoneKeys), "[n1]")

	malformed++
	lines[name]++
	change("malformed-again", annotated(name, `["zone1"`), "[n1 n3]")

	lines[name]++
	change("malformed-otherwise", annotated(name, `{}`))

	// A relist is not a change.
	relists := func() int {
		return u.count(func(s seen) bool { return s.path == "/api/v1/services" && s.relist() })
	}
	before := relists()
	u.cut()
	u.put(t, node("n9", "")) // the resources are behind it
	u.forget()
	u.heal()
	eventually(t, patience, func() bool { return relists() > before }, func() any { return "the Services are not listed again" })
	u.put(t, service("relisted", noPolicy))
	w.services.want(patience, "ADDED relisted")
	first.wantLines("relist", lines)

	malformed--
	u.remove(t, service("17-keys", noPolicy))
	w.services.want(patience, "DELETED 17-keys")
	g.wantMalformed(t, "deleted", malformed)
	delete(annotations, "17-keys")
	delete(lines, "17-keys")
	first.wantLines("deleted", lines)

	second := withLog(t)
	g = g.restart(second, u)
	g.waitReady(t)
	lines[name] = 1
	g.wantUnfiltered(t, "restart", annotations)
	second.wantLines("restart", lines)
	g.wantMalformed(t, "restart", malformed)
}
