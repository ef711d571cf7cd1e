// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"
)

// asksForThePast reports whether a request needs to know what a resource was
// like at a revision before since, where the history of its mirror begins.
// Mirrors have upstream's revisions, so clients come with those of an earlier
// process; the watch cache, which began empty at revision 1, would take them for
// a time when there was nothing, and never tell of what was deleted since.
//
// A LIST that is content with anything newer, and a WATCH that begins with a
// state, do not ask for the past.
func asksForThePast(verb string, query url.Values, since uint64) bool {
	revision, err := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
	past := err == nil && revision > 0 && revision < since
	match := metav1.ResourceVersionMatch(query.Get("resourceVersionMatch"))
	switch verb {
	case "watch":
		initial, _ := strconv.ParseBool(query.Get("sendInitialEvents"))
		return past && !initial
	case "list":
		if token := query.Get("continue"); token != "" {
			// A token that cannot be read is refused where it is used.
			_, at, err := storage.DecodeContinue(token, "/")
			return err == nil && at > 0 && uint64(at) < since
		}
		// A limit makes a revision an exact one.
		return past && (match == metav1.ResourceVersionMatchExact || match == "" && query.Get("limit") != "")
	}
	return false
}
