// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

func readJSONAnswer(data []byte) Answer {
	whole := document(data)
	answer := Answer{Kind: stringAt(data, whole, "kind")}
	switch answer.Kind {
	case statusKind:
		details, _ := memberAt(data, whole, "details")
		answer.Name, answer.UID = stringAt(data, details, "name"), stringAt(data, details, "uid")
	case tableKind:
		answer.Item, _ = itemAt(data, whole)
		rows, _ := memberAt(data, whole, "rows")
		for row := range elements(data, rows) {
			object, _ := memberAt(data, row, "object")
			if item, ok := itemAt(data, object); ok {
				answer.Items = append(answer.Items, item)
			}
		}
		if len(answer.Items) == 1 {
			answer.Item = answer.Items[0]
		}
	default:
		answer.Item, _ = itemAt(data, whole)
		if answer.Kind == namespaceKind {
			spec, _ := memberAt(data, whole, "spec")
			answer.Ended = answer.Ended && !hasElements(data, spec, "finalizers")
		}
		items, _ := memberAt(data, whole, "items")
		for element := range elements(data, items) {
			item, _ := itemAt(data, element)
			answer.Items = append(answer.Items, item)
		}
	}
	return answer
}

// memberAt returns the last member of a name, which is the one that counts for most decoders, and whether there is one.
func memberAt(data []byte, object span, name string) (value span, ok bool) {
	for m := range members(data, object) {
		if isName(data, m.name, name) {
			value, ok = m.value, true
		}
	}
	return value, ok
}

func stringAt(data []byte, object span, name string) string {
	if value, ok := memberAt(data, object, name); ok {
		return string(jsonString(data, value))
	}
	return ""
}

// itemAt reads the metadata of an object, and reports whether it has some.
func itemAt(data []byte, object span) (Item, bool) {
	metadata, ok := memberAt(data, object, "metadata")
	return Item{
		Name:            stringAt(data, metadata, "name"),
		Namespace:       stringAt(data, metadata, "namespace"),
		UID:             stringAt(data, metadata, "uid"),
		ResourceVersion: stringAt(data, metadata, "resourceVersion"),
		Ended:           stringAt(data, metadata, "deletionTimestamp") != "" && !hasElements(data, metadata, "finalizers"),
	}, ok
}

// hasElements reports whether a member of an object is a list that is not empty.
func hasElements(data []byte, object span, name string) bool {
	list, _ := memberAt(data, object, name)
	for range elements(data, list) {
		return true
	}
	return false
}

func editJSONAnswer(data []byte, revisions *translator) []byte {
	switch stringAt(data, document(data), "kind") {
	case statusKind:
		return data
	case tableKind:
		return editJSON(editJSON(data, objectPath, revisions), tableRowPath, revisions)
	}
	return editJSON(data, objectPath, revisions)
}
