// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package streaming

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// collection is a list taken apart: its items, and the rest, which is small.
type collection struct {
	rest  list
	items []any
}

// itemsField is the last field of a list in JSON.
const itemsField = "items"

// list has the fields, and the order of fields, of the lists that it stands for.
type list struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
}

// collectionOf takes a list apart. One without items is not worth it, and there an
// empty slice and none differ.
func collectionOf(obj runtime.Object) (collection, bool) {
	accessor, ok := obj.(metav1.ListMetaAccessor)
	if !ok {
		return collection{}, false
	}
	listMeta, ok := accessor.GetListMeta().(*metav1.ListMeta)
	if !ok || !isPlainList(obj) || meta.LenList(obj) == 0 {
		return collection{}, false
	}
	rest := list{ListMeta: *listMeta}
	rest.APIVersion, rest.Kind = obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	c := collection{rest: rest, items: make([]any, 0, meta.LenList(obj))}
	err := meta.EachListItem(obj, func(item runtime.Object) error {
		c.items = append(c.items, item)
		return nil
	})
	return c, err == nil
}

// isPlainList tells the lists that have the fields of list and items, and no say in
// how they are encoded.
func isPlainList(obj runtime.Object) bool {
	if _, ok := obj.(json.Marshaler); ok {
		return false
	}
	t := reflect.TypeOf(obj)
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct || t.Elem().NumField() != 3 {
		return false
	}
	items, ok := t.Elem().FieldByName("Items")
	return ok && items.Tag.Get("json") == itemsField
}
