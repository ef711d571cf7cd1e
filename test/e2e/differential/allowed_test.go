// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// allowance is a difference that is meant: what reason says is changed in one object of one side.
type allowance struct {
	reason string
	side   lab.Kind // empty: both
	change func(object map[string]any)
}

// allowed are all of them; docs/standalone.md lists them for users.
var allowed = []allowance{
	{
		reason: "the controllers of standalone write under the name of its process",
		side:   lab.Standalone,
		change: renameManager("grid-apiserver"),
	},
	{
		reason: "the same, in the cluster",
		side:   lab.KubeAPIServer,
		change: renameManager(lab.GridManager, "kube-controller-manager"),
	},
	{
		reason: "a ServiceGrid is a built-in kind of standalone: a port of the template without target port has 0",
		side:   lab.Standalone,
		change: func(object map[string]any) {
			if object["kind"] != "ServiceGrid" {
				return
			}
			ports, _, _ := unstructured.NestedSlice(object, "spec", "template", "ports")
			for _, port := range ports {
				port := port.(map[string]any)
				if port["targetPort"] == float64(0) {
					delete(port, "targetPort")
				}
			}
			if ports != nil {
				_ = unstructured.SetNestedSlice(object, ports, "spec", "template", "ports")
			}
		},
	},
	{
		reason: "a ServiceGrid is a built-in kind of standalone: its managed fields have no entry for a struct itself",
		change: func(object map[string]any) {
			metadata, _ := object["metadata"].(map[string]any)
			managed, _ := metadata["managedFields"].(map[string]any)
			for _, fields := range managed {
				if object["kind"] == "ServiceGrid" {
					delete(fields.(map[string]any), "f:spec")
				}
			}
		},
	},
	{
		reason: "a ServiceGrid is a built-in kind of standalone: what is wrong with one is said in other words",
		change: func(object map[string]any) {
			if object["kind"] == "ServiceGrid" && object["code"] != nil {
				delete(object, "causes")
				delete(object, "message")
			}
		},
	},
	{
		reason: "kube-apiserver prints the repeated value of a duplicate in its internal form, standalone as it was sent",
		change: changeMessages(func(message string) string {
			before, _, _ := strings.Cut(message, "Duplicate value:")
			return before
		}),
	},
}

// theController is what the managers of both sides' controllers are called.
const theController = "<controller>"

func renameManager(names ...string) func(map[string]any) {
	return func(object map[string]any) {
		metadata, _ := object["metadata"].(map[string]any)
		managed, _ := metadata["managedFields"].(map[string]any)
		for key, fields := range maps.Clone(managed) {
			if name, rest, _ := strings.Cut(key, "|"); slices.Contains(names, name) {
				delete(managed, key)
				managed[theController+"|"+rest] = fields
			}
		}
	}
}

// changeMessages changes the texts of a Status.
func changeMessages(change func(string) string) func(map[string]any) {
	return func(object map[string]any) {
		if object["code"] == nil {
			return
		}
		causes, _ := object["causes"].([]any)
		for _, part := range append(causes, any(object)) {
			part := part.(map[string]any)
			if message, ok := part["message"].(string); ok {
				part["message"] = change(message)
			}
		}
	}
}

// allow returns the objects and answers of one side with the allowances applied. Between two real clusters there are
// none.
func allow(kind lab.Kind, all map[string]any) map[string]any {
	if lab.Kind(*against) != lab.Standalone {
		return all
	}
	var copied map[string]any
	if err := json.Unmarshal([]byte(toJSON(all)), &copied); err != nil {
		panic(err) // it came from JSON
	}
	for _, value := range copied {
		object, ok := value.(map[string]any)
		if !ok {
			continue
		}
		for _, a := range allowed {
			if a.side == "" || a.side == kind {
				a.change(object)
			}
		}
	}
	return copied
}

// contains tells whether a text occurs in a JSON value.
func contains(value any, text string) bool { return strings.Contains(toJSON(value), text) }
