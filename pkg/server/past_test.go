// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/url"
	"testing"

	"k8s.io/apiserver/pkg/storage"
)

func TestAsksForThePast(t *testing.T) {
	token := func(revision int64) string {
		token, err := storage.EncodeContinue("/namespaces/a", "/namespaces/", revision)
		if err != nil {
			t.Fatal(err)
		}
		return "limit=1&continue=" + token
	}
	const since = 100
	for _, c := range []struct {
		name, verb, query string
		want              bool
	}{
		{"watch from before", "watch", "resourceVersion=99", true},
		{"watch from then on", "watch", "resourceVersion=100", false},
		{"watch from any", "watch", "resourceVersion=0", false},
		{"watch from now", "watch", "", false},
		{"watch from nonsense", "watch", "resourceVersion=x", false},
		{"watch that begins with a state", "watch", "resourceVersion=99&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", false},
		{"watch without initial events", "watch", "resourceVersion=99&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", true},
		{"list of anything newer", "list", "resourceVersion=99&resourceVersionMatch=NotOlderThan", false},
		{"page of anything newer", "list", "resourceVersion=99&resourceVersionMatch=NotOlderThan&limit=5", false},
		{"list without a match", "list", "resourceVersion=99", false},
		{"page without a match", "list", "resourceVersion=99&limit=5", true},
		{"page from then on", "list", "resourceVersion=100&limit=5", false},
		{"exact list of before", "list", "resourceVersion=99&resourceVersionMatch=Exact", true},
		{"exact list of now", "list", "resourceVersion=100&resourceVersionMatch=Exact", false},
		{"second page of before", "list", token(99), true},
		{"second page of now", "list", token(100), false},
		{"second page of the present", "list", token(-1), false},
		{"token that cannot be read", "list", "continue=x", false},
		{"get", "get", "resourceVersion=99", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			query, err := url.ParseQuery(c.query)
			if err != nil {
				t.Fatal(err)
			}
			if got := asksForThePast(c.verb, query, since); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}
