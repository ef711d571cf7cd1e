// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/pkg/server"
	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

func TestNotReadyUntilTheOwnNodeIsThere(t *testing.T) {
	u := startUpstream(t, node("n2", "a"), service("s", zoneKeys), slice("s-1", "s", "n1", "n2"))
	g := startGrid(t, u)
	var a answer
	eventually(t, patience, func() bool {
		a = g.get(t, rest.AnonymousClientConfig(g.local), "/readyz?verbose", asJSON)
		// All else has been read.
		return strings.Contains(string(a.body), "[+]upstream-services ok") && strings.Contains(string(a.body), "[+]upstream-namespaces ok")
	}, func() any { return string(a.body) })
	if a.code == http.StatusOK || !strings.Contains(string(a.body), "[-]own-node-n1 failed") {
		t.Errorf("/readyz does not name the Node: %d %s", a.code, a.body)
	}
	a = g.get(t, g.local, "/apis/discovery.k8s.io/v1/endpointslices", asJSON)
	if err := checkNotReady(a); err != nil || !strings.Contains(string(a.body), `Node \"n1\"`) {
		t.Errorf("LIST of slices: %v: %s", err, a.body)
	}
	u.put(t, node("n1", "a"))
	g.waitReady(t)
	if got := slicesOf(t, g.client(t)); !slices.Equal(got, []string{"s-1[n1 n2]"}) {
		t.Errorf("then: %v", got)
	}
}

func TestLabelsOfADeletedOwnNodeGoOn(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, fixture(slice("s-1", "s", "n1", "n2", "n3"))...)
	g := readyGrid(t, u)
	client := g.client(t)
	open := followSlices(t, client)
	u.remove(t, node("n1", ""))
	eventually(t, patience, func() bool {
		_, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		return err != nil
	}, func() any { return "the deleted Node is still shown" })
	u.put(t, slice("s-2", "s", "n1", "n3"))
	// The first event since: the deletion changed nothing.
	open.want(soon, "ADDED s-2[n1]")

	g = g.restart(t, u)
	g.waitReady(t)
	client = g.client(t)
	becomes(t, soon, slicesOf, client, "s-1[n1 n2]", "s-2[n1]")
	// It comes back with another label.
	u.put(t, node("n1", "b"))
	becomes(t, soon, slicesOf, client, "s-1[n1 n3]", "s-2[n1 n3]")
}

func TestEndpointsAreWatchedFromTheirFirstRequestOn(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, fixture(endpoints("s", "n1", "n3"))...)
	all := func(s seen) bool { return s.path == "/api/v1/endpoints" }
	g := readyGrid(t, u)
	if n := u.count(all); n != 0 {
		t.Errorf("%d requests for Endpoints before the first one of a client", n)
	}
	client := g.client(t)
	if got := endpointsOf(t, client); !slices.Equal(got, []string{"s[n1]"}) {
		t.Errorf("the first LIST is %v", got)
	}
	endpointsOf(t, client)
	relists := func(s seen) bool { return all(s) && s.relist() }
	if n := u.count(relists); n != 1 {
		t.Errorf("%d relists of Endpoints upstream, want one", n)
	}
	g = g.restart(t, u)
	g.waitReady(t)
	if n := u.count(relists); n != 2 {
		t.Errorf("%d relists of Endpoints upstream after a restart, want two", n)
	}
	// Ready means that they are there.
	a := g.get(t, g.local, "/api/v1/namespaces/default/endpoints/s", asJSON)
	if a.code != http.StatusOK {
		t.Errorf("Endpoints after a restart: %d %s", a.code, a.body)
	}
}

func TestResourceThatUpstreamLacksIsProxied(t *testing.T) {
	const path = "/apis/networking.k8s.io/v1/servicecidrs"
	u := newUpstream(t, fixture()...)
	u.lacks["servicecidrs"] = true
	u.start(t)
	g := readyGrid(t, u)
	a := g.get(t, g.bearer(adminToken), path, asJSON)
	proxied := func(s seen) bool { return s.path == path && s.token == adminToken }
	if a.code != http.StatusNotFound || u.count(proxied) != 1 {
		t.Errorf("%d %s, %d requests upstream, want its 404", a.code, a.body, u.count(proxied))
	}
	// Upstream is upgraded. A running server asks again in some minutes.
	u.mu.Lock()
	delete(u.lacks, "servicecidrs")
	u.mu.Unlock()
	g = g.restart(t, u)
	g.waitReady(t)
	before := u.count(proxied)
	if a = g.get(t, g.bearer(adminToken), path, asJSON); a.code != http.StatusOK || u.count(proxied) != before {
		t.Errorf("after the upgrade: %d %s, %d requests upstream", a.code, a.body, u.count(proxied)-before)
	}
}

func TestRevisionsGrowOverARestart(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, fixture(slice("s-1", "s", "n1"), endpoints("s", "n1"))...)
	g := readyGrid(t, u)
	viewPaths := localPaths[:3]
	read := func() map[string][2]uint64 {
		revisions := map[string][2]uint64{}
		for _, path := range viewPaths {
			list := decode[metav1.PartialObjectMetadataList](t, g.get(t, g.local, path, asJSON))
			var r [2]uint64
			for i, text := range []string{list.ResourceVersion, list.Items[0].ResourceVersion} {
				revision, err := strconv.ParseUint(text, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				r[i] = revision
			}
			revisions[path] = r
		}
		return revisions
	}
	before := read()
	g = g.restart(t, u)
	g.waitReady(t)
	after := read()
	for _, path := range viewPaths {
		if after[path][0] <= before[path][0] || after[path][1] <= before[path][0] {
			t.Errorf("%s: the revisions of list and object went from %v to %v", path, before[path], after[path])
		}
	}
}

func TestLocalEndpointReplacesThoseOfKubernetes(t *testing.T) {
	kubernetes := []object{service("kubernetes", noPolicy), slice("kubernetes", "kubernetes", "-"), endpoints("kubernetes", "-")}
	u := startUpstream(t, fixture(kubernetes...)...)
	local, err := topology.ParseHostPort("10.0.0.7:6443")
	if err != nil {
		t.Fatal(err)
	}
	g := startConfig(t, &server.Config{NodeName: "n1", Upstream: u.config(serverToken), DataDir: t.TempDir(), LocalEndpoint: local}, "127.0.0.1:0")
	g.waitReady(t)
	client := g.client(t)
	if got := slicesOf(t, client); !slices.Equal(got, []string{"kubernetes[n7]"}) {
		t.Errorf("slices: %v", got)
	}
	if got := endpointsOf(t, client); !slices.Equal(got, []string{"kubernetes[n7]"}) {
		t.Errorf("Endpoints: %v", got)
	}
}
