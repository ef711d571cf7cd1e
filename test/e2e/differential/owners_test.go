// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestOwners is about the garbage collector.
func TestOwners(t *testing.T) {
	family := func(w *world) {
		w.create(settings("owner"), settings("other"))
		w.createOwned("child", "owner")
		w.createOwned("grandchild", "child")
		w.createOwned("shared", "owner", "other")
	}
	runScenarios(t, []scenario{
		{"deleted in the background", []step{
			{name: "a family", do: family},
			{name: "its owner goes", do: func(w *world) { w.deleteWith(metav1.DeletePropagationBackground, "owner") }},
			{name: "the other one too", do: func(w *world) { w.deleteWith(metav1.DeletePropagationBackground, "other") }},
		}},
		{"deleted in the foreground", []step{
			{name: "a family", do: family},
			{name: "a child that holds out", do: func(w *world) {
				w.patch("ConfigMap", "child", `{metadata: {finalizers: [lab.example/hold]}}`)
			}},
			{name: "the owner waits for it", do: func(w *world) { w.deleteWith(metav1.DeletePropagationForeground, "owner") }},
			{name: "it lets go", do: func(w *world) { w.patch("ConfigMap", "child", `{metadata: {finalizers: null}}`) }},
		}},
		{"orphaned", []step{
			{name: "a family", do: family},
			{name: "its owner goes alone", do: func(w *world) { w.deleteWith(metav1.DeletePropagationOrphan, "owner") }},
		}},
		{"of an owner that is not there", []step{
			{name: "wrong uid", do: func(w *world) {
				w.create(settings("owner"), `{apiVersion: v1, kind: ConfigMap, metadata: {name: child, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: 00000000-0000-0000-0000-000000000000}]}}`)
			}},
		}},
	})
}

func settings(name string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {name: ` + name + `}}`
}

// createOwned creates a ConfigMap with owners that block their deletion for it.
func (w *world) createOwned(name string, owners ...string) {
	object := parse(settings(name))
	var references []metav1.OwnerReference
	for _, owner := range owners {
		uid := types.UID("none")
		if o, err := w.resourceOf("ConfigMap", w.namespace).Get(w.ctx, owner, metav1.GetOptions{}); err == nil {
			uid = o.GetUID()
		}
		references = append(references, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: uid, BlockOwnerDeletion: new(true)})
	}
	object.SetOwnerReferences(references)
	w.createObject(object)
}

func (w *world) deleteWith(policy metav1.DeletionPropagation, name string) {
	err := w.resourceOf("ConfigMap", w.namespace).Delete(w.ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy})
	w.record("delete", nil, "ConfigMap", name, err)
}
