// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// triggerTime is there or not as chance has it: a controller that makes two changes in one go exports the time of the
// first, and removes it with the next write that follows from no change.
const triggerTime = "endpoints.kubernetes.io/last-change-trigger-time"

var uids = regexp.MustCompile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

// normalizeMetadata removes uids, times and revisions, and turns managedFields into a map.
func normalizeMetadata(object *unstructured.Unstructured) {
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	if object.GetDeletionTimestamp() != nil {
		_ = unstructured.SetNestedField(object.Object, "<time>", "metadata", "deletionTimestamp")
	}
	annotations := object.GetAnnotations()
	delete(annotations, triggerTime)
	if len(annotations) == 0 {
		annotations = nil
	}
	object.SetAnnotations(annotations)
	owners := object.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = ""
	}
	if owners != nil {
		object.SetOwnerReferences(owners)
	}
	managed := map[string]any{}
	for _, entry := range object.GetManagedFields() {
		key := strings.Join([]string{entry.Manager, string(entry.Operation), entry.APIVersion, entry.Subresource}, "|")
		var fields map[string]any
		if entry.FieldsV1 != nil {
			// Owner references are keyed by uid.
			raw := uids.ReplaceAll(entry.FieldsV1.GetRawBytes(), []byte("<uid>"))
			if err := json.Unmarshal(raw, &fields); err != nil {
				fields = map[string]any{"malformed": err.Error()}
			}
		}
		removeTriggerTime(fields)
		managed[key] = fields
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	if len(managed) > 0 {
		_ = unstructured.SetNestedField(object.Object, managed, "metadata", "managedFields")
	}
	removeTargetUIDs(object.Object)
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if condition, ok := condition.(map[string]any); ok && condition["lastTransitionTime"] != nil {
			condition["lastTransitionTime"] = "<time>"
		}
	}
	if conditions != nil {
		_ = unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions")
	}
}

// removeTriggerTime removes it from managed fields.
func removeTriggerTime(fields map[string]any) {
	metadata, _ := fields["f:metadata"].(map[string]any)
	annotations, _ := metadata["f:annotations"].(map[string]any)
	delete(annotations, "f:"+triggerTime)
	if _, ok := annotations["."]; len(annotations) == 0 || ok && len(annotations) == 1 {
		delete(metadata, "f:annotations")
	}
}

// removeTargetUIDs removes the uids of the objects that endpoints refer to.
func removeTargetUIDs(value any) {
	switch value := value.(type) {
	case map[string]any:
		if target, ok := value["targetRef"].(map[string]any); ok {
			delete(target, "uid")
		}
		for _, child := range value {
			removeTargetUIDs(child)
		}
	case []any:
		for _, child := range value {
			removeTargetUIDs(child)
		}
	}
}

// normalizeEndpoints puts the subsets in an order that does not depend on uids. That of addresses stays.
func normalizeEndpoints(endpoints map[string]any) {
	if subsets, ok := endpoints["subsets"].([]any); ok {
		sortByContent(subsets)
	}
}

// slices that hold fewer endpoints than this must also be as many as those of the other side. How many slices a
// larger Service gets, and which endpoint is in which, depends on the order of events.
const oneSlice = 100

// joinSlices makes slices comparable whose names and division are chance: slices that agree in all but their
// endpoints become one, with all endpoints in order.
func joinSlices(all []map[string]any) map[string]any {
	result := map[string]any{}
	type joined struct {
		object    map[string]any
		endpoints []any
		count     int
	}
	groups := map[string]*joined{}
	for _, slice := range all {
		rest := maps.Clone(slice)
		delete(rest, "endpoints")
		metadata := maps.Clone(rest["metadata"].(map[string]any))
		if _, generated, _ := unstructured.NestedString(metadata, "labels", "endpointslice.kubernetes.io/managed-by"); generated {
			delete(metadata, "name")
		}
		rest["metadata"] = metadata
		key := toJSON(rest)
		if groups[key] == nil {
			groups[key] = &joined{object: rest}
		}
		endpoints, _ := slice["endpoints"].([]any)
		groups[key].endpoints = append(groups[key].endpoints, endpoints...)
		groups[key].count++
	}
	counts := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		group := groups[key]
		sortByContent(group.endpoints)
		group.object["endpoints"] = group.endpoints
		if len(group.endpoints) < oneSlice {
			group.object["<slices>"] = int64(group.count)
		}
		service, _, _ := unstructured.NestedString(group.object, "metadata", "labels", "kubernetes.io/service-name")
		title := fmt.Sprintf("EndpointSlices of %s, %v", service, group.object["addressType"])
		counts[title]++
		result[fmt.Sprintf("%s, %d", title, counts[title])] = group.object
	}
	return result
}

func sortByContent(list []any) {
	slices.SortStableFunc(list, func(a, b any) int { return cmp.Compare(toJSON(a), toJSON(b)) })
}

// difference shows what differs between two maps, in YAML.
func difference(a, b map[string]any) string {
	var diff strings.Builder
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if d := gocmp.Diff(lines(a[key]), lines(b[key])); d != "" {
			fmt.Fprintf(&diff, "%s\n%s", key, d)
		}
	}
	return diff.String()
}

func lines(value any) []string {
	if value == nil {
		return nil
	}
	content, err := yaml.Marshal(value)
	if err != nil {
		panic(err) // the value came from JSON
	}
	return strings.Split(string(content), "\n")
}

func toJSON(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		panic(err) // the value came from JSON
	}
	return string(content)
}
