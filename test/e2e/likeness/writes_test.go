// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"net/http"
	"strings"
	"testing"
)

const (
	jsonPatch      = "Content-Type: application/json-patch+json"
	mergePatch     = "Content-Type: application/merge-patch+json"
	strategicPatch = "Content-Type: application/strategic-merge-patch+json"
	applyPatch     = "Content-Type: application/apply-patch+yaml"
)

// written is what is written of one resource.
type written struct {
	fixture string
	// change is a change in the form of a merge patch, and field the path of a JSON patch to what it sets.
	change, field, value string
	// custom resources have no strategic patches; some resources have no status.
	noStrategic, status bool
	// statusChange is a merge patch of the status.
	statusChange string
}

var writtenResources = []written{
	{fixture: "service", change: `{"spec":{"sessionAffinity":"ClientIP"}}`, field: "/spec/sessionAffinity", value: `"None"`, status: true, statusChange: `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`},
	{fixture: "endpoints", change: `{"subsets":[{"addresses":[{"ip":"10.1.0.9"}],"ports":[{"port":80}]}]}`, field: "/subsets/0/ports/0/port", value: `81`},
	{fixture: "slice", change: `{"endpoints":[{"addresses":["10.1.0.9"]}]}`, field: "/ports/0/port", value: `81`},
	{fixture: "cidr", change: `{"metadata":{"annotations":{"a":"b"}}}`, field: "/metadata/labels/app", value: `"other"`, status: true,
		statusChange: `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`},
	{fixture: "node", change: `{"spec":{"unschedulable":true}}`, field: "/metadata/labels/app", value: `"other"`, status: true, statusChange: `{"status":{"nodeInfo":{"kubeletVersion":"v1"}}}`},
	{fixture: "configmap", change: `{"data":{"color":"red"}}`, field: "/data/color", value: `"green"`},
	{fixture: "secret", change: `{"stringData":{"more":"secret"}}`, field: "/metadata/labels/app", value: `"other"`},
	{fixture: "pod", change: `{"metadata":{"annotations":{"a":"b"}}}`, field: "/spec/containers/0/image", value: `"registry.invalid/web:2"`, status: true, statusChange: `{"status":{"phase":"Running"}}`},
	{fixture: "account", change: `{"automountServiceAccountToken":false}`, field: "/metadata/labels/app", value: `"other"`},
	{fixture: "lease", change: `{"spec":{"holderIdentity":"two"}}`, field: "/spec/holderIdentity", value: `"three"`},
	{fixture: "event", change: `{"count":4}`, field: "/count", value: `5`},
	{fixture: "deployment", change: `{"spec":{"replicas":3}}`, field: "/spec/replicas", value: `4`, status: true, statusChange: `{"status":{"replicas":2}}`},
	{fixture: "widget", change: `{"spec":{"size":4}}`, field: "/spec/size", value: `5`, status: true, statusChange: `{"status":{"size":2}}`, noStrategic: true},
	{fixture: "ingress", change: `{"spec":{"ingressClassName":"other"}}`, field: "/metadata/labels/app", value: `"other"`, status: true, statusChange: `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`},
	{fixture: "role", change: `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}]}`, field: "/metadata/labels/app", value: `"other"`},
}

// lifeOf is the life of one object: each verb, with and against preconditions.
func lifeOf(w written) []step {
	f := fixtures[w.fixture]
	collection, path, name := f.collection, f.path(), f.name
	change := func(s step) step {
		s.effect = path
		return s
	}
	withRevision := func(revision string) string { // a merge patch
		return `{"metadata":{"resourceVersion":"` + revision + `","annotations":{"revision":"matters"}}}`
	}
	steps := []step{
		change(step{name: "create for a dry run", method: http.MethodPost, path: collection + "?dryRun=All", body: f.body, status: http.StatusCreated}),
		change(step{name: "create", method: http.MethodPost, path: collection + "?fieldManager=maker", body: f.body, status: http.StatusCreated, save: "made"}),
		{name: "read what was created", path: path, save: "read"},
		{name: "create again", method: http.MethodPost, path: collection, body: f.body, status: http.StatusConflict},
		{name: "create with a revision", method: http.MethodPost, path: collection, body: strings.Replace(f.body, `"metadata":{`, `"metadata":{"resourceVersion":"{read.rv}",`, 1), status: http.StatusInternalServerError},
		change(step{name: "replace with what the answer to create was", method: http.MethodPut, path: path, body: "{made.body}", save: "put"}),
		change(step{name: "merge patch", method: http.MethodPatch, path: path, headers: []string{mergePatch}, body: w.change, save: "patched"}),
		{name: "read what was patched", path: path, save: "now"},
		{name: "list what was patched", path: collection + "?labelSelector=app%3Dweb&fieldSelector=metadata.name%3D" + name},
		change(step{name: "replace with an old revision", method: http.MethodPut, path: path, body: "{read.body}", status: http.StatusConflict}),
		change(step{name: "replace for a dry run", method: http.MethodPut, path: path + "?dryRun=All&fieldManager=other", body: "{now.body}"}),
		change(step{name: "replace with the revision just read", method: http.MethodPut, path: path + "?fieldManager=other", body: "{now.body}", save: "replaced"}),
		change(step{name: "JSON patch that tests the revision", method: http.MethodPatch, path: path, headers: []string{jsonPatch}, save: "tested",
			body: `[{"op":"test","path":"/metadata/resourceVersion","value":"{replaced.rv}"},{"op":"replace","path":"` + w.field + `","value":` + w.value + `}]`}),
		change(step{name: "JSON patch that tests an old revision", method: http.MethodPatch, path: path, headers: []string{jsonPatch}, status: http.StatusUnprocessableEntity,
			body: `[{"op":"test","path":"/metadata/resourceVersion","value":"{read.rv}"},{"op":"replace","path":"` + w.field + `","value":` + w.value + `}]`}),
		change(step{name: "JSON patch of nothing", method: http.MethodPatch, path: path, headers: []string{jsonPatch}, status: http.StatusUnprocessableEntity,
			body: `[{"op":"remove","path":"/metadata/nothing"}]`}),
		change(step{name: "merge patch under the revision", method: http.MethodPatch, path: path, headers: []string{mergePatch}, body: withRevision("{tested.rv}"), save: "merged"}),
		change(step{name: "merge patch under an old revision", method: http.MethodPatch, path: path, headers: []string{mergePatch}, body: withRevision("{read.rv}"), status: http.StatusConflict}),
		change(step{name: "merge patch under another uid", method: http.MethodPatch, path: path, headers: []string{mergePatch}, body: `{"metadata":{"uid":"no"}}`, status: http.StatusUnprocessableEntity}),
		change(step{name: "strategic patch under the revision", method: http.MethodPatch, path: path, headers: []string{strategicPatch},
			body: `{"metadata":{"resourceVersion":"{merged.rv}","annotations":{"revision":null},"finalizers":[]}}`, status: strategic(w)}),
		change(step{name: "apply", method: http.MethodPatch, path: path + "?fieldManager=one", headers: []string{applyPatch},
			body: `{"apiVersion":` + field(f.body, "apiVersion") + `,"kind":` + field(f.body, "kind") + `,"metadata":{"name":"` + name + `","annotations":{"applied":"one"}}}`}),
		change(step{name: "apply in conflict", method: http.MethodPatch, path: path + "?fieldManager=two", headers: []string{applyPatch},
			body:   "apiVersion: " + field(f.body, "apiVersion") + "\nkind: " + field(f.body, "kind") + "\nmetadata:\n  name: \"" + name + "\"\n  annotations:\n    applied: two\n",
			status: http.StatusConflict}),
		change(step{name: "apply by force", method: http.MethodPatch, path: path + "?fieldManager=two&force=true", headers: []string{applyPatch},
			body: "apiVersion: " + field(f.body, "apiVersion") + "\nkind: " + field(f.body, "kind") + "\nmetadata:\n  name: \"" + name + "\"\n  annotations: {applied: two}\n", save: "applied"}),
		change(step{name: "apply under the revision", method: http.MethodPatch, path: path + "?fieldManager=two", headers: []string{applyPatch},
			body: "apiVersion: " + field(f.body, "apiVersion") + "\nkind: " + field(f.body, "kind") + "\nmetadata:\n  name: \"" + name + "\"\n  resourceVersion: \"{applied.rv}\"\n  annotations: {applied: three}\n"}),
		change(step{name: "apply under an old revision", method: http.MethodPatch, path: path + "?fieldManager=two", headers: []string{applyPatch}, status: http.StatusConflict,
			body: "apiVersion: " + field(f.body, "apiVersion") + "\nkind: " + field(f.body, "kind") + "\nmetadata:\n  name: \"" + name + "\"\n  resourceVersion: \"{read.rv}\"\n  annotations: {applied: four}\n"}),
		change(step{name: "as a table", method: http.MethodPatch, path: path, headers: []string{mergePatch, acceptTable}, body: `{"metadata":{"annotations":{"table":"yes"}}}`}),
		change(step{name: "as metadata", method: http.MethodPatch, path: path, headers: []string{mergePatch, acceptMetadata}, body: `{"metadata":{"annotations":{"metadata":"yes"}}}`}),
		change(step{name: "as YAML", method: http.MethodPatch, path: path, headers: []string{mergePatch, acceptYAML}, body: `{"metadata":{"annotations":{"yaml":"yes"}}}`}),
		{name: "read at last", path: path, save: "last"},
		change(step{name: "a field that is unknown, and one twice, in a strict replace", method: http.MethodPut, path: path + "?fieldValidation=Strict", status: http.StatusBadRequest, body: `{"nothing":{"a":1},"kind":"Twice",{last.inner}`}),
		change(step{name: "a field that is unknown, and one twice, in a replace that warns", method: http.MethodPut, path: path + "?fieldValidation=Warn", body: `{"nothing":{"a":1},"kind":"Twice",{last.inner}`}),
		change(step{name: "a field that is unknown in a strict patch", method: http.MethodPatch, path: path + "?fieldValidation=Strict", headers: []string{mergePatch}, status: http.StatusUnprocessableEntity, body: `{"metadata":{"nothing":1}}`}),
		change(step{name: "a field that is unknown in a patch that warns", method: http.MethodPatch, path: path + "?fieldValidation=Warn", headers: []string{mergePatch}, body: `{"metadata":{"nothing":1},"nothing":2}`}),
		change(step{name: "a field that is unknown in a patch that ignores it", method: http.MethodPatch, path: path + "?fieldValidation=Ignore", headers: []string{mergePatch}, body: `{"metadata":{"nothing":1},"nothing":2}`}),
		change(step{name: "unknown field validation", method: http.MethodPatch, path: path + "?fieldValidation=Nothing", headers: []string{mergePatch}, body: `{}`, status: http.StatusUnprocessableEntity}),
	}
	if w.status {
		steps = append(steps,
			step{name: "read the status", path: path + "/status", save: "status"},
			change(step{name: "replace the status", method: http.MethodPut, path: path + "/status", body: "{status.body}"}),
			change(step{name: "patch the status", method: http.MethodPatch, path: path + "/status", headers: []string{mergePatch}, body: w.statusChange}),
			change(step{name: "replace the status with an old revision", method: http.MethodPut, path: path + "/status", body: "{read.body}", status: http.StatusConflict}),
		)
	}
	steps = append(steps,
		step{name: "read before the end", path: path, save: "end"},
		change(step{name: "delete under another uid", method: http.MethodDelete, path: path, status: http.StatusConflict,
			body: `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"00000000-0000-0000-0000-000000000000"}}`}),
		change(step{name: "delete under an old revision", method: http.MethodDelete, path: path, status: http.StatusConflict,
			body: `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"resourceVersion":"{read.rv}"}}`}),
		change(step{name: "delete for a dry run", method: http.MethodDelete, path: path, body: `{"dryRun":["All"]}`}),
		change(step{name: "delete for a dry run by parameter", method: http.MethodDelete, path: path + "?dryRun=All&gracePeriodSeconds=0"}),
		change(step{name: "delete with a bad policy", method: http.MethodDelete, path: path, body: `{"propagationPolicy":"Nonsense"}`, status: http.StatusUnprocessableEntity}),
		change(step{name: "delete under uid and revision", method: http.MethodDelete, path: path,
			body: `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"{end.uid}","resourceVersion":"{end.rv}"}}`}),
		step{name: "read what was deleted", path: path, status: http.StatusNotFound},
		step{name: "delete again", method: http.MethodDelete, path: path, status: http.StatusNotFound},
		change(step{name: "apply what is not there", method: http.MethodPatch, path: path + "?fieldManager=one", headers: []string{applyPatch}, body: f.body, status: http.StatusCreated}),
		change(step{name: "delete the collection by label", method: http.MethodDelete, path: collection + "?labelSelector=no%3Dsuch"}),
		change(step{name: "delete the collection for a dry run", method: http.MethodDelete, path: collection + "?dryRun=All&labelSelector=app%3Dweb&fieldSelector=metadata.name%3D" + name}),
		change(step{name: "delete the collection", method: http.MethodDelete, path: collection + "?labelSelector=app%3Dweb&fieldSelector=metadata.name%3D" + name}),
	)
	return steps
}

func strategic(w written) int {
	if w.noStrategic {
		return http.StatusUnsupportedMediaType
	}
	return http.StatusOK
}

// field returns a field of a fixture, as JSON.
func field(body, name string) string {
	_, rest, _ := strings.Cut(body, `"`+name+`":`)
	value, _, _ := strings.Cut(rest, ",")
	return value
}

func TestWrites(t *testing.T) {
	for _, w := range writtenResources {
		t.Run(w.fixture, func(t *testing.T) { run(t, exchange{name: w.fixture, steps: lifeOf(w)}) })
	}
}
