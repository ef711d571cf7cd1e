// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"net/http"
	"testing"
)

const (
	nodePath = core + "/nodes/{node}"
	newSpace = core + "/namespaces/{ns}-new"
)

// special are writes that only some resources know.
var special = []exchange{
	{
		name: "own node",
		reset: []step{
			{method: http.MethodPatch, path: nodePath, headers: []string{mergePatch}, body: `{"metadata":{"labels":{"likeness":null},"annotations":null},"spec":{"unschedulable":null,"taints":null}}`},
			{method: http.MethodPatch, path: nodePath + "/status", headers: []string{mergePatch}, body: `{"status":{"nodeInfo":{"kubeletVersion":"v1.98.0"}}}`},
		},
		steps: []step{
			{name: "read", path: nodePath, save: "read"},
			{name: "patch", method: http.MethodPatch, path: nodePath, headers: []string{mergePatch}, body: `{"metadata":{"labels":{"likeness":"yes"}}}`, effect: nodePath},
			{name: "read what was patched", path: nodePath, save: "now"},
			{name: "list what was patched", path: core + "/nodes?fieldSelector=metadata.name%3D{node}&labelSelector=likeness%3Dyes"},
			{name: "replace with an old revision", method: http.MethodPut, path: nodePath, body: "{read.body}", status: http.StatusConflict, effect: nodePath},
			{name: "replace", method: http.MethodPut, path: nodePath, body: "{now.body}", effect: nodePath},
			{name: "patch of the status", method: http.MethodPatch, path: nodePath + "/status", headers: []string{strategicPatch}, body: `{"status":{"nodeInfo":{"kubeletVersion":"v1.99.0"}}}`, effect: nodePath},
			{name: "read the new status", path: nodePath},
			{name: "JSON patch", method: http.MethodPatch, path: nodePath, headers: []string{jsonPatch}, body: `[{"op":"test","path":"/metadata/labels/likeness","value":"yes"},{"op":"remove","path":"/metadata/labels/likeness"}]`, effect: nodePath},
			{name: "delete for a dry run", method: http.MethodDelete, path: nodePath + "?dryRun=All", effect: nodePath},
			{name: "delete under an old revision", method: http.MethodDelete, path: nodePath, body: `{"preconditions":{"resourceVersion":"{read.rv}"}}`, status: http.StatusConflict, effect: nodePath},
		},
	},
	{
		name: "namespaces",
		steps: []step{
			{name: "create for a dry run", method: http.MethodPost, path: core + "/namespaces?dryRun=All", body: `{"metadata":{"name":"{ns}-new"}}`, status: http.StatusCreated, effect: newSpace},
			{name: "create", method: http.MethodPost, path: core + "/namespaces", body: `{"metadata":{"name":"{ns}-new"}}`, status: http.StatusCreated, effect: newSpace},
			{name: "create again", method: http.MethodPost, path: core + "/namespaces", body: `{"metadata":{"name":"{ns}-new"}}`, status: http.StatusConflict},
			{name: "read", path: newSpace, save: "read"},
			{name: "patch", method: http.MethodPatch, path: newSpace, headers: []string{strategicPatch}, body: `{"metadata":{"labels":{"a":"b"}}}`, effect: newSpace},
			{name: "replace with an old revision", method: http.MethodPut, path: newSpace, body: "{read.body}", status: http.StatusConflict, effect: newSpace},
			{name: "read again", path: newSpace, save: "now"},
			{name: "replace", method: http.MethodPut, path: newSpace, body: "{now.body}", effect: newSpace},
			{name: "delete for a dry run", method: http.MethodDelete, path: newSpace + "?dryRun=All", effect: newSpace},
			{name: "delete under another uid", method: http.MethodDelete, path: newSpace, body: `{"preconditions":{"uid":"no"}}`, status: http.StatusConflict, effect: newSpace},
			{name: "delete the collection", method: http.MethodDelete, path: core + "/namespaces", status: http.StatusMethodNotAllowed},
			{name: "delete", method: http.MethodDelete, path: newSpace, effect: newSpace},
			{name: "read what ends", path: newSpace, save: "end"},
			{name: "delete again", method: http.MethodDelete, path: newSpace, effect: newSpace},
			{name: "create in what ends", method: http.MethodPost, path: newSpace + "/services", body: `{"metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}}`, status: http.StatusForbidden},
			{name: "finalize", method: http.MethodPut, path: newSpace + "/finalize", body: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"{ns}-new"},"spec":{"finalizers":[]}}`, effect: newSpace},
			{name: "read what ended", path: newSpace, status: http.StatusNotFound},
		},
	},
	{
		name:  "services",
		given: []string{"service", "headless"},
		steps: []step{
			{name: "invalid", method: http.MethodPost, path: inNS + "/services", body: `{"metadata":{"name":"bad"},"spec":{"type":"Wrong","ports":[{"port":0}]}}`, status: http.StatusUnprocessableEntity},
			{name: "address that is taken", method: http.MethodPost, path: inNS + "/services", body: `{"metadata":{"name":"bad"},"spec":{"clusterIP":"10.96.0.1","ports":[{"port":80}]}}`, status: http.StatusUnprocessableEntity},
			{name: "address outside", method: http.MethodPost, path: inNS + "/services", body: `{"metadata":{"name":"bad"},"spec":{"clusterIP":"192.0.2.1","ports":[{"port":80}]}}`, status: http.StatusUnprocessableEntity},
			{name: "a warning", method: http.MethodPost, path: inNS + "/services", body: `{"metadata":{"name":"warned"},"spec":{"externalIPs":["192.0.2.010"],"ports":[{"port":80}]}}`, status: http.StatusUnprocessableEntity},
			{name: "several warnings", method: http.MethodPost, path: inNS + "/services?fieldValidation=Warn", status: http.StatusCreated,
				body: `{"metadata":{"name":"warned","nothing":1},"nothing":2,"spec":{"type":"ExternalName","externalName":"a.example.com","ports":[{"port":80,"port":81}]}}`, effect: inNS + "/services/warned"},
			{name: "another namespace", method: http.MethodPost, path: inNS + "/services", body: `{"metadata":{"name":"a","namespace":"default"}}`, status: http.StatusBadRequest},
			{name: "no such namespace", method: http.MethodPost, path: core + "/namespaces/nothing/services", body: `{"metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}}`, status: http.StatusNotFound},
			{name: "immutable address", method: http.MethodPatch, path: inNS + "/services/web", headers: []string{mergePatch}, body: `{"spec":{"clusterIP":"10.96.0.99"}}`, status: http.StatusUnprocessableEntity, effect: inNS + "/services/web"},
			{name: "other type", method: http.MethodPatch, path: inNS + "/services/web", headers: []string{strategicPatch}, body: `{"spec":{"type":"NodePort"}}`, effect: inNS + "/services/web"},
			{name: "finalizer", method: http.MethodPatch, path: inNS + "/services/web", headers: []string{mergePatch}, body: `{"metadata":{"finalizers":["example.com/wait"]}}`, effect: inNS + "/services/web"},
			{name: "delete what has a finalizer", method: http.MethodDelete, path: inNS + "/services/web", effect: inNS + "/services/web"},
			{name: "read what is being deleted", path: inNS + "/services/web"},
			{name: "change what is being deleted", method: http.MethodPatch, path: inNS + "/services/web", headers: []string{mergePatch}, body: `{"metadata":{"finalizers":null}}`, effect: inNS + "/services/web"},
			{name: "read what is gone", path: inNS + "/services/web", status: http.StatusNotFound},
			{name: "create under PUT", method: http.MethodPut, path: inNS + "/services/put", body: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"put"},"spec":{"ports":[{"port":80}]}}`, status: http.StatusCreated, effect: inNS + "/services/put"},
			{name: "replace without a revision", method: http.MethodPut, path: inNS + "/services/headless", body: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"headless"},"spec":{"clusterIP":"None","ports":[{"port":82}]}}`, effect: inNS + "/services/headless"},
			{name: "YAML", method: http.MethodPost, path: inNS + "/services", headers: []string{"Content-Type: application/yaml", acceptYAML}, body: "apiVersion: v1\nkind: Service\nmetadata: {name: yaml}\nspec:\n  ports:\n  - port: 80\n", status: http.StatusCreated, effect: inNS + "/services/yaml"},
			{name: "read as YAML", path: inNS + "/services/yaml", headers: []string{acceptYAML}, save: "yaml"},
			{name: "replace in YAML", method: http.MethodPut, path: inNS + "/services/yaml", headers: []string{"Content-Type: application/yaml"}, body: "{yaml.body}", effect: inNS + "/services/yaml"},
			{name: "replace in YAML with an old revision", method: http.MethodPut, path: inNS + "/services/yaml", headers: []string{"Content-Type: application/yaml", acceptYAML}, body: "{yaml.body}# the same\n", effect: inNS + "/services/yaml"},
			{name: "read as protobuf", path: inNS + "/services/yaml", headers: []string{acceptProtobuf}, save: "protobuf"},
			{name: "replace in protobuf", method: http.MethodPut, path: inNS + "/services/yaml", headers: []string{"Content-Type: application/vnd.kubernetes.protobuf", acceptProtobuf}, body: "{protobuf.body}", effect: inNS + "/services/yaml"},
			{name: "over HTTP/1.1", method: http.MethodPatch, path: inNS + "/services/yaml", http1: true, headers: []string{mergePatch}, body: `{"metadata":{"labels":{"a":"b"}}}`, effect: inNS + "/services/yaml"},
		},
	},
}

func TestSpecialWrites(t *testing.T) {
	for _, e := range special {
		t.Run(e.name, func(t *testing.T) { run(t, e) })
	}
}
