// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestNamespaces is about their deletion. A scenario's own namespace is not compared, but those whose names begin with
// its name are.
func TestNamespaces(t *testing.T) {
	runScenarios(t, []scenario{
		{"a namespace", []step{
			{name: "made", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Namespace, metadata: {name: a-namespace-1, labels: {a: b}}}`)
			}},
			{name: "with contents", do: func(w *world) {
				w.inNamespace("a-namespace-1", func(w *world) {
					w.create(settings("plain"), `{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [lab.example/hold]}}`, webService)
					w.pods(pod{name: "a", node: "-"})
				})
			}},
			{name: "is deleted, and waits for what is held", do: func(w *world) { w.delete("Namespace", "a-namespace-1") }},
			{name: "nothing new in it", refused: true, do: func(w *world) {
				w.inNamespace("a-namespace-1", func(w *world) { w.create(settings("late")) })
			}},
			{name: "what is held lets go", do: func(w *world) {
				w.inNamespace("a-namespace-1", func(w *world) { w.patch("ConfigMap", "held", `{metadata: {finalizers: null}}`) })
			}},
		}},
		{"names", []step{
			{name: "refused", refused: true, do: func(w *world) {
				w.create(
					`{apiVersion: v1, kind: Namespace, metadata: {name: Names-1}}`,
					`{apiVersion: v1, kind: Namespace, metadata: {name: names.1}}`,
					`{apiVersion: v1, kind: Namespace, metadata: {name: default}}`,
				)
				w.delete("Namespace", "default", "kube-system", "names-none")
				w.inNamespace("names-none", func(w *world) { w.create(settings("x")) })
			}},
			{name: "labels", do: func(w *world) {
				w.create(`{apiVersion: v1, kind: Namespace, metadata: {name: names-2, labels: {kubernetes.io/metadata.name: other}}, spec: {finalizers: [lab.example/other]}}`)
				w.patchAs(types.MergePatchType, "Namespace", "names-2", `{metadata: {labels: null}}`)
			}},
			{name: "a finalizer of its own", do: func(w *world) { w.delete("Namespace", "names-2") }},
			{name: "is finalized", do: func(w *world) { w.finalize("names-2") }},
		}},
	})
}

// inNamespace does something in another namespace.
func (w *world) inNamespace(name string, do func(w *world)) {
	own := w.namespace
	w.namespace = name
	do(w)
	w.namespace = own
}

// finalize removes all finalizers of a namespace's spec, as the one who set them does.
func (w *world) finalize(name string) {
	object, err := w.resourceOf("Namespace", "").Get(w.ctx, name, metav1.GetOptions{})
	if err == nil {
		object.Object["spec"] = map[string]any{}
		_, err = w.resourceOf("Namespace", "").Update(w.ctx, object, metav1.UpdateOptions{}, "finalize")
	}
	w.record("finalize", nil, "Namespace", name, err)
}
