// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"net/http"
	"strings"
	"testing"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// TestRefusedRequests are those that change nothing on either side.
func TestRefusedRequests(t *testing.T) {
	for _, r := range append(localResources[:len(localResources):len(localResources)], proxiedResources[:3]...) {
		collection, _, _ := strings.Cut(r.collection, "?")
		readShared(t, r.name, []step{
			{name: "get without rights", path: r.object, token: lab.NobodyToken, status: http.StatusForbidden},
			{name: "list without rights", path: collection + "?" + r.selector, token: lab.NobodyToken, status: http.StatusForbidden},
			{name: "list as a table without rights", path: collection + "?" + r.selector, token: lab.NobodyToken, headers: []string{acceptTable}, status: http.StatusForbidden},
			{name: "list as protobuf without rights", path: collection + "?" + r.selector, token: lab.NobodyToken, headers: []string{acceptProtobuf}, status: http.StatusForbidden},
			{name: "list as YAML without rights", path: collection + "?" + r.selector, token: lab.NobodyToken, headers: []string{acceptYAML}, status: http.StatusForbidden},
			{name: "list as nonsense without rights", path: collection + "?" + r.selector, token: lab.NobodyToken, headers: []string{"Accept: nonsense"}, status: http.StatusForbidden},
			{name: "watch without rights", path: collection + "?watch=true&" + r.selector, token: lab.NobodyToken, status: http.StatusForbidden},
			{name: "list with a bad token", path: collection + "?" + r.selector, token: "nonsense", status: http.StatusUnauthorized},
			{name: "watch with a bad token", path: collection + "?watch=true&" + r.selector, token: "nonsense", status: http.StatusUnauthorized},
			{name: "list as protobuf with a bad token", path: collection + "?" + r.selector, token: "nonsense", headers: []string{acceptProtobuf}, status: http.StatusUnauthorized},
			{name: "list as YAML with a bad token", path: collection + "?" + r.selector, token: "nonsense", headers: []string{acceptYAML}, status: http.StatusUnauthorized},
			{name: "list without credentials", path: collection + "?" + r.selector, token: noToken, status: http.StatusForbidden},
			{name: "list with an empty authorization", path: collection + "?" + r.selector, token: noToken, headers: []string{"Authorization: Bearer"}, status: http.StatusForbidden},
			{name: "list with another kind of authorization", path: collection + "?" + r.selector, token: noToken, headers: []string{"Authorization: Basic YTpi"}, status: http.StatusForbidden},
			{name: "as another without rights", path: r.object, token: lab.NobodyToken, headers: []string{"Impersonate-User: lab-admin"}, status: http.StatusForbidden},
			{name: "as another", path: r.object, headers: []string{"Impersonate-User: lab-nobody"}, status: http.StatusForbidden},
			{name: "as a group without a user", path: r.object, headers: []string{"Impersonate-Group: system:masters"}, status: http.StatusBadRequest},
			{name: "post to an object", method: http.MethodPost, path: r.object, body: "{}", status: http.StatusMethodNotAllowed},
			{name: "put to a collection", method: http.MethodPut, path: collection, body: "{}", status: http.StatusMethodNotAllowed},
			{name: "patch of a collection", method: http.MethodPatch, path: collection, body: "{}", headers: []string{"Content-Type: application/merge-patch+json"}, status: http.StatusMethodNotAllowed},
			{name: "unknown method", method: "NONSENSE", path: r.object, status: http.StatusMethodNotAllowed},
			{name: "trace", method: http.MethodTrace, path: r.object, status: http.StatusMethodNotAllowed},
			{name: "post of nothing", method: http.MethodPost, path: collection, status: http.StatusBadRequest},
			{name: "post of nonsense", method: http.MethodPost, path: collection, body: "nonsense", status: http.StatusBadRequest},
			{name: "post of another kind", method: http.MethodPost, path: collection, body: `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"a"}}`, status: http.StatusBadRequest},
			{name: "post of an unknown kind", method: http.MethodPost, path: collection, body: `{"apiVersion":"v9","kind":"Nothing","metadata":{"name":"a"}}`, status: http.StatusBadRequest},
			{name: "post of an unknown type", method: http.MethodPost, path: collection, body: "{}", headers: []string{"Content-Type: text/plain"}, status: http.StatusUnsupportedMediaType},
			{name: "post without a type", method: http.MethodPost, path: collection, body: "{}", headers: []string{"Content-Type:"}, status: http.StatusUnprocessableEntity},
			{name: "post of an invalid name", method: http.MethodPost, path: collection, body: `{"metadata":{"name":"a b"}}`, status: http.StatusUnprocessableEntity},
			{name: "post for another dry run", method: http.MethodPost, path: collection + "?dryRun=Some", body: `{"metadata":{"name":"a"}}`, status: http.StatusUnprocessableEntity},
			{name: "put of another name", method: http.MethodPut, path: r.object, body: `{"metadata":{"name":"other"}}`, status: http.StatusBadRequest},
			{name: "put of nonsense", method: http.MethodPut, path: r.object, body: `{"metadata":`, status: http.StatusBadRequest},
			{name: "patch of an unknown type", method: http.MethodPatch, path: r.object, body: "{}", status: http.StatusUnsupportedMediaType},
			{name: "patch of nonsense", method: http.MethodPatch, path: r.object, body: "nonsense", headers: []string{"Content-Type: application/merge-patch+json"}, status: http.StatusBadRequest},
			{name: "JSON patch of nonsense", method: http.MethodPatch, path: r.object, body: `{"a":1}`, headers: []string{"Content-Type: application/json-patch+json"}, status: http.StatusBadRequest},
			{name: "apply without a manager", method: http.MethodPatch, path: r.object, body: "{}", headers: []string{"Content-Type: application/apply-patch+yaml"}, status: http.StatusUnprocessableEntity},
			{name: "apply of nonsense", method: http.MethodPatch, path: r.object + "?fieldManager=one", body: "a: [", headers: []string{"Content-Type: application/apply-patch+yaml"}, status: http.StatusBadRequest},
			{name: "patch of a missing object", method: http.MethodPatch, path: r.object + "-missing", body: "{}", headers: []string{"Content-Type: application/merge-patch+json"}, status: http.StatusNotFound},
			{name: "delete of a missing object", method: http.MethodDelete, path: r.object + "-missing", status: http.StatusNotFound},
			{name: "delete with nonsense", method: http.MethodDelete, path: r.object, body: "nonsense", status: http.StatusBadRequest},
			{name: "delete without rights", method: http.MethodDelete, path: r.object, token: lab.NobodyToken, status: http.StatusForbidden},
			{name: "post without rights", method: http.MethodPost, path: collection, body: "{}", token: lab.NobodyToken, status: http.StatusForbidden},
			{name: "post with a bad token", method: http.MethodPost, path: collection, body: "{}", token: "nonsense", status: http.StatusUnauthorized},
			{name: "expecting to continue", method: http.MethodPost, path: collection, body: "{", headers: []string{"Expect: 100-continue"}, http1: true, status: http.StatusBadRequest},
		})
	}
}

// TestBodiesThatAreTooLarge sends one at a time: a node does not hold many of them.
func TestBodiesThatAreTooLarge(t *testing.T) {
	var steps []step
	for _, r := range append(localResources[:len(localResources):len(localResources)], proxiedResources[0]) {
		steps = append(steps,
			step{name: "post to " + r.name, method: http.MethodPost, path: r.collection, body: tooLarge, status: http.StatusRequestEntityTooLarge},
			step{name: "put to " + r.name, method: http.MethodPut, path: r.object, body: tooLarge, status: http.StatusRequestEntityTooLarge},
		)
	}
	steps = append(steps,
		step{name: "merge patch", method: http.MethodPatch, path: localResources[0].object, headers: []string{mergePatch}, body: tooLarge, status: http.StatusRequestEntityTooLarge},
		step{name: "apply", method: http.MethodPatch, path: localResources[0].object + "?fieldManager=one", headers: []string{applyPatch}, body: tooLarge, status: http.StatusRequestEntityTooLarge},
		step{name: "over HTTP/1.1", method: http.MethodPut, path: localResources[0].object, body: tooLarge, http1: true, status: http.StatusRequestEntityTooLarge},
	)
	readShared(t, "too large", steps)
}

// tooLarge is one byte more than kube-apiserver reads.
var tooLarge = `{"metadata":{"name":"a","annotations":{"a":"` + strings.Repeat("a", 3<<20+1-48) + `"}}}`

func TestPaths(t *testing.T) {
	readShared(t, "paths", []step{
		{name: "encoded name", path: inNS + "/services/w%65b"},
		{name: "encoded resource", path: inNS + "/s%65rvices/web"},
		{name: "encoded slash in a name", path: inNS + "/services/web%2Fstatus"},
		{name: "encoded space in a name", path: inNS + "/services/w%20b", status: http.StatusNotFound},
		{name: "encoded zero in a name", path: inNS + "/services/web%00", status: http.StatusNotFound},
		{name: "encoded percent in a name", path: inNS + "/services/%25", status: http.StatusBadRequest},
		{name: "upper case", path: inNS + "/Services/web", status: http.StatusNotFound},
		{name: "singular", path: inNS + "/service/web", status: http.StatusNotFound},
		{name: "no such resource", path: inNS + "/nothings", status: http.StatusNotFound},
		{name: "no such version", path: "/apis/discovery.k8s.io/v9/endpointslices", status: http.StatusNotFound},
		{name: "no such group", path: "/apis/nothing.k8s.io/v1/endpointslices", status: http.StatusNotFound},
		{name: "no such namespace", path: core + "/namespaces/nothing/services"},
		{name: "namespaced object without a namespace", path: core + "/services/web", status: http.StatusNotFound},
		{name: "cluster-scoped object in a namespace", path: inNS + "/nodes/" + ownNode, status: http.StatusNotFound},
		{name: "dot segments", path: core + "/namespaces/other/../{ns}/services/web", status: http.StatusNotFound},
		{name: "double slash at the start", path: "//api/v1/services", status: http.StatusNotFound},
		{name: "double slash before a name", path: inNS + "/services//web", status: http.StatusNotFound},
		{name: "question mark alone", path: inNS + "/services/web?"},
		{name: "bad escape in a parameter", path: inNS + "/services?limit=%zz"},
		{name: "semicolon in a parameter", path: inNS + "/services?limit=1;watch=true"},
		{name: "service status", path: inNS + "/services/web/status"},
		{name: "namespace status", path: core + "/namespaces/{ns}/status"},
		{name: "node status", path: core + "/nodes/{node}/status"},
		{name: "watch of a subresource", path: inNS + "/services/web/status?watch=true&timeoutSeconds=1"},
		{name: "service proxy without endpoints", path: inNS + "/services/headless/proxy/", status: http.StatusServiceUnavailable},
		{name: "pod log without a node", path: inNS + "/pods/web-0/log", status: http.StatusNoContent},
		{name: "deployment scale", path: "/apis/apps/v1/namespaces/{ns}/deployments/web/scale"},
		{name: "widget scale", path: widgets + "/first/scale"},
		{name: "component statuses", path: core + "/componentstatuses/nothing", status: http.StatusNotFound},
		{name: "events of another version", path: "/apis/events.k8s.io/v1/namespaces/{ns}/events"},
		{name: "all services with a selector for a namespace", path: core + "/services?fieldSelector=metadata.namespace%3D{ns}"},
		{name: "services by type", path: core + "/services?fieldSelector=spec.type%3DNodePort"},
		{name: "services by cluster address", path: core + "/services?fieldSelector=spec.clusterIP%3DNone"},
		{name: "namespaces by phase", path: core + "/namespaces?fieldSelector=status.phase%3DActive"},
		{name: "nodes by schedulability", path: core + "/nodes?fieldSelector=spec.unschedulable%3Dfalse"},
		{name: "own node and label", path: core + "/nodes?fieldSelector=metadata.name%3D{node}&labelSelector=no%3Dsuch"},
		{name: "own node by two selectors", path: core + "/nodes?fieldSelector=metadata.name%3D{node},spec.unschedulable%3Dfalse"},
		{name: "every node", path: core + "/nodes"},
		{name: "every node as a table", path: core + "/nodes", headers: []string{acceptTable}},
	})
}
