// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package streaming

import (
	"encoding/json"
	"io"

	"sigs.k8s.io/yaml"
)

// encodeYAML writes the keys sorted, as YAML made of JSON is: those of the rest that
// come before the field, the field, and the others.
func encodeYAML(c collection, w io.Writer) error {
	before, after, err := splitRest(c)
	if err != nil {
		return err
	}
	beginning, err := toYAML(before)
	if err != nil {
		return err
	}
	if err := writeBeginning(w, append(beginning, itemsField+":\n"...)); err != nil {
		return err
	}
	for i := range c.items {
		// A sequence of one gives the item its indentation.
		item, err := yaml.Marshal(c.items[i : i+1])
		if err != nil {
			return err
		}
		if _, err := w.Write(item); err != nil {
			return err
		}
	}
	end, err := toYAML(after)
	if err != nil {
		return err
	}
	_, err = w.Write(end)
	return err
}

func splitRest(c collection) (before, after map[string]json.RawMessage, err error) {
	encoded, err := json.Marshal(c.rest)
	if err != nil {
		return nil, nil, err
	}
	before, after = map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := json.Unmarshal(encoded, &before); err != nil {
		return nil, nil, err
	}
	for key, value := range before {
		if key > itemsField {
			after[key] = value
			delete(before, key)
		}
	}
	return before, after, nil
}

// toYAML returns nothing for no fields, where YAML has "{}".
func toYAML(fields map[string]json.RawMessage) ([]byte, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	return yaml.Marshal(fields)
}
