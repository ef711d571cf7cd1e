// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"strings"
	"testing"

	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

func TestLocalEndpointFollowsTheAnnotations(t *testing.T) {
	annotated := func(address, port string) object {
		e := endpoints("kubernetes", "-")
		e.Annotations = map[string]string{topology.LocalEndpointAnnotation: address, topology.LocalPortAnnotation: port}
		return e
	}
	relabelled := annotated("here", "6443")
	relabelled.SetLabels(map[string]string{"changed": "yes"})
	u := startUpstream(t, fixture(service("kubernetes", noPolicy), slice("kubernetes", "kubernetes", "-"), annotated("10.0.0.7", "6443"))...)
	l := withLog(t)
	client := readyGrid(l, u).client(t)
	for _, step := range []struct {
		name     string
		upstream object // if not nil
		want     string
		logged   int // lines so far that name the annotation
	}{
		{"from the start", nil, "kubernetes[n7]", 0},
		{"bad address", annotated("here", "6443"), "kubernetes[-]", 1},
		{"bad address, another change", relabelled, "kubernetes[-]", 1},
		{"good again", annotated("10.0.0.8", "6443"), "kubernetes[n8]", 1},
		{"bad port", annotated("10.0.0.8", "0"), "kubernetes[-]", 2},
		{"good once more", annotated("10.0.0.9", "6443"), "kubernetes[n9]", 2},
		{"removed", endpoints("kubernetes", "-"), "kubernetes[-]", 2},
	} {
		if step.upstream != nil {
			u.put(t, step.upstream)
		}
		becomes(t, patience, slicesOf, client, step.want)
		becomes(t, patience, endpointsOf, client, step.want)
		if got := strings.Count(l.log.String(), "annotation superedge.io/local-"); got != step.logged {
			t.Errorf("%s: %d lines name an annotation, want %d", step.name, got, step.logged)
		}
	}
}
