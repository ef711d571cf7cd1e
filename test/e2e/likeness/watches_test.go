// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"net/http"
	"strings"
	"testing"
)

// watched is what is watched of one resource, and how objects in it change.
type watched struct {
	name string
	// given are made before. collection is watched, with the parameters of selector.
	given                []string
	collection, selector string
	// object is changed, and other created and deleted.
	object, other, otherBody string
}

var watchedResources = []watched{
	{
		"services", []string{"service", "headless"}, inNS + "/services", "", inNS + "/services/web",
		inNS + "/services/other", `{"metadata":{"name":"other","labels":{"app":"web"}},"spec":{"ports":[{"port":80}]}}`,
	},
	{
		"endpoints", []string{"endpoints"}, inNS + "/endpoints", "", inNS + "/endpoints/web",
		inNS + "/endpoints/other", `{"metadata":{"name":"other","labels":{"app":"web"}}}`,
	},
	{
		"endpointslices", []string{"slice"}, discovery + "/namespaces/{ns}/endpointslices", "", discovery + "/namespaces/{ns}/endpointslices/web-1",
		discovery + "/namespaces/{ns}/endpointslices/other", `{"metadata":{"name":"other","labels":{"app":"web"}},"addressType":"IPv4","endpoints":[]}`,
	},
	{
		"configmaps", []string{"configmap"}, inNS + "/configmaps", "", inNS + "/configmaps/settings",
		inNS + "/configmaps/other", `{"metadata":{"name":"other","labels":{"app":"web"}}}`,
	},
	{
		"widgets", []string{"widget"}, widgets, "", widgets + "/first",
		widgets + "/other", `{"apiVersion":"likeness.example.com/v1","kind":"Widget","metadata":{"name":"other","labels":{"app":"web"}}}`,
	},
}

// theEnd is the name of the object that is made last, after which no event is waited for.
const theEnd = "the-end"

// changes are made while watches are open: an object changes twice, leaves and enters selectors, another comes and goes.
func (w watched) changes() []step {
	merge := []string{"Content-Type: application/merge-patch+json"}
	patch := func(body string) step {
		return step{method: http.MethodPatch, path: w.object, headers: merge, body: body}
	}
	return []step{
		patch(`{"metadata":{"annotations":{"note":"one"}}}`),
		patch(`{"metadata":{"labels":{"app":"away"}}}`),
		{method: http.MethodPost, path: w.collection, body: w.otherBody},
		patch(`{"metadata":{"labels":{"app":"web"}}}`),
		{method: http.MethodDelete, path: w.other},
		{method: http.MethodPost, path: w.collection, body: strings.Replace(w.otherBody, `"other"`, `"`+theEnd+`"`, 1)},
	}
}

// watchForms are the ways to watch from now on or from a revision on, with changes under way.
var watchForms = []form{
	{name: "from a revision on", query: "resourceVersion={list.rv}"},
	{name: "from a revision on, with bookmarks", query: "resourceVersion={list.rv}&allowWatchBookmarks=true"},
	{name: "from now on", query: ""},
	{name: "from any revision on", query: "resourceVersion=0"},
	{name: "by label", query: "resourceVersion={list.rv}&labelSelector=app%3Dweb"},
	{name: "by label from now on", query: "labelSelector=app%3Dweb"},
	{name: "by not this name", query: "resourceVersion={list.rv}&fieldSelector=metadata.name%21%3Dother"},
	{name: "as a table", query: "resourceVersion={list.rv}", headers: []string{acceptTable}},
	{name: "as kubectl does, by label", query: "resourceVersion={list.rv}&labelSelector=app%3Dweb", headers: []string{acceptKubectl}},
	{name: "as a table with whole objects", query: "includeObject=Object&resourceVersion={list.rv}", headers: []string{acceptTable}},
	{name: "as a table without objects", query: "includeObject=None&resourceVersion={list.rv}", headers: []string{acceptTable}},
	{name: "as a table from now on", query: "", headers: []string{acceptTable}},
	{name: "metadata", query: "resourceVersion={list.rv}", headers: []string{acceptMetadata}},
	{name: "metadata by label", query: "resourceVersion={list.rv}&labelSelector=app%3Dweb", headers: []string{acceptMetadata}},
	{name: "initial events", query: "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"},
	{name: "initial events of any revision", query: "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0"},
	{name: "initial events from a revision on", query: "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion={list.rv}"},
	{name: "initial events by label", query: "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=app%3Dweb"},
	{name: "initial events as a table", query: "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", headers: []string{acceptTable}},
	{name: "initial events of metadata", query: "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", headers: []string{acceptMetadata}},
	{name: "initial events without bookmarks", query: "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"},
	{name: "no initial events", query: "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion={list.rv}"},
}

// protobufWatchForms are for resources that have a form in protobuf.
var protobufWatchForms = []form{
	{name: "as protobuf", query: "resourceVersion={list.rv}", headers: []string{acceptProtobuf}},
	{name: "as protobuf or JSON, by label", query: "labelSelector=app%3Dweb", headers: []string{acceptProtobuf + ", application/json"}},
	{name: "metadata as protobuf", query: "resourceVersion={list.rv}", headers: []string{acceptMetadataPB}},
	{name: "initial events as protobuf", query: "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", headers: []string{acceptProtobuf}},
}

// settled is what shows that the changes may begin: they might come before or after the end of the initial events.
func (f form) settled() string {
	if strings.Contains(f.query, "sendInitialEvents=true") && strings.Contains(f.query, "allowWatchBookmarks") {
		return initialEnd
	}
	return ""
}

// TestWatchesWithoutChanges are those that end at once or see what is there. It comes before TestWatches, which leaves
// hundreds of namespaces: too many for a watch of one second.
func TestWatchesWithoutChanges(t *testing.T) {
	const initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	for _, r := range localResources {
		steps := []step{{name: "list", path: r.collection + "?" + r.selector, save: "list"}}
		for _, f := range []form{
			{name: "everything", query: ""},
			{name: "everything and bookmarks", query: initial},
			{name: "everything as a table", query: initial, headers: []string{acceptTable}},
			{name: "from a revision on", query: "resourceVersion={list.rv}"},
			{name: "nothing with the label", query: initial + "&labelSelector=no%3Dsuch"},
			{name: "too old revision", query: "resourceVersion=1"},
			{name: "too old revision as a table", query: "resourceVersion=1", headers: []string{acceptTable}},
			{name: "too old revision as protobuf", query: "resourceVersion=1", headers: []string{acceptProtobuf}},
			{name: "bad revision", query: "resourceVersion=x", status: http.StatusInternalServerError},
			{name: "future revision", query: "resourceVersion=9000000000000000000"},
			{name: "initial events without a match", query: "sendInitialEvents=true", status: http.StatusUnprocessableEntity},
			{name: "initial events with an exact match", query: "sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1", status: http.StatusUnprocessableEntity},
			{name: "match without initial events", query: "resourceVersionMatch=NotOlderThan&resourceVersion=1", status: http.StatusUnprocessableEntity},
			{name: "bad label", query: "labelSelector=a%3D%3D%3Db", status: http.StatusBadRequest},
			{name: "with a limit", query: "limit=1&resourceVersion={list.rv}"},
			{name: "as YAML", query: "resourceVersion={list.rv}", headers: []string{acceptYAML}, status: http.StatusNotAcceptable},
			{name: "as nonsense", query: "resourceVersion={list.rv}", headers: []string{"Accept: nonsense"}, status: http.StatusNotAcceptable},
			{name: "as a list of metadata", query: "resourceVersion={list.rv}", headers: []string{acceptMetadataList}},
			{name: "compressed", query: initial, headers: []string{gzipped}},
		} {
			query := "?watch=1&timeoutSeconds=1&" + f.query
			if r.selector != "" {
				query += "&" + r.selector
			}
			s := step{name: f.name, path: r.collection + query, headers: f.headers, status: f.status}
			if strings.HasPrefix(f.name, "too old") {
				// A young kube-apiserver still has the history of some resources from the start.
				s.onlyIf = "too old resource version"
			}
			steps = append(steps, s)
		}
		steps = append(steps,
			step{name: "old form of the path", path: strings.Replace(r.collection, "/v1/", "/v1/watch/", 1) + "?timeoutSeconds=1"},
			step{name: "old form of the path of an object", path: strings.Replace(r.object, "/v1/", "/v1/watch/", 1) + "?timeoutSeconds=1"},
			step{name: "of one object", path: r.object + "?watch=true&timeoutSeconds=1"},
			step{name: "bad timeout", path: r.collection + "?watch=true&timeoutSeconds=x&labelSelector=a%3D%3D%3Db", status: http.StatusBadRequest},
			step{name: "over HTTP/1.1", path: r.collection + "?watch=true&timeoutSeconds=1&" + r.selector, http1: true},
		)
		for _, s := range steps[1:] {
			readShared(t, r.name+"/"+s.name, []step{steps[0], s})
		}
	}
}

func TestWatches(t *testing.T) {
	for _, w := range watchedResources {
		forms := watchForms
		if w.name != "widgets" {
			forms = append(forms[:len(forms):len(forms)], protobufWatchForms...)
		}
		for _, f := range forms {
			t.Run(w.name+"/"+f.name, func(t *testing.T) {
				path := w.collection + "?watch=true&timeoutSeconds=20&" + f.query
				run(t, exchange{name: w.name + "/" + f.name, given: w.given, steps: []step{
					{name: "list", path: w.collection, save: "list"},
					{name: "watch", path: path, headers: f.headers, status: f.status, during: w.changes(), after: f.settled(), until: theEnd},
				}})
			})
		}
	}
}
