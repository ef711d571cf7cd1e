// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"errors"

	yaml "go.yaml.in/yaml/v2" // the parser behind sigs.k8s.io/yaml, and so kube-apiserver's
)

// yamlRequest is what the body of a request is decoded into. All else in it is passed over, aliases of large values too.
type yamlRequest struct {
	Metadata      yamlMetadata `yaml:"metadata"`
	Preconditions yamlMetadata `yaml:"preconditions"`
}

// yamlAnswer is the same for an answer.
type yamlAnswer struct {
	Kind     yamlString   `yaml:"kind"`
	Metadata yamlMetadata `yaml:"metadata"`
	Rows     []yamlRow    `yaml:"rows"`
}

type yamlRow struct {
	Object yamlRowObject `yaml:"object"`
}

type yamlRowObject struct {
	Metadata yamlMetadata `yaml:"metadata"`
}

// yamlMetadata forgets what an earlier duplicate of its key held, as a map does.
type yamlMetadata struct{ resourceVersion yamlString }

// UnmarshalYAML implements yaml.Unmarshaler.
func (m *yamlMetadata) UnmarshalYAML(unmarshal func(any) error) error {
	var decoded struct {
		ResourceVersion yamlString `yaml:"resourceVersion"`
	}
	err := unmarshal(&decoded)
	m.resourceVersion = decoded.ResourceVersion
	return ignoreTypes(err)
}

// yamlString is a string; any other value, a number too, leaves it empty.
type yamlString string

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *yamlString) UnmarshalYAML(unmarshal func(any) error) error {
	*s = ""
	// What is no scalar must not be decoded: it may be the alias of a large value.
	var text string
	if err := unmarshal(&text); err != nil {
		return ignoreTypes(err)
	}
	var value any
	if err := unmarshal(&value); err != nil {
		return ignoreTypes(err)
	}
	if _, ok := value.(string); ok {
		*s = yamlString(text)
	}
	return nil
}

// ignoreTypes passes over values of other types than expected, which is for upstream to refuse.
func ignoreTypes(err error) error {
	if _, ok := errors.AsType[*yaml.TypeError](err); ok {
		return nil
	}
	return err
}

// yamlRevision is a revision in a document.
type yamlRevision struct {
	path  []any // the keys and indices that lead to it
	value string
}

func (d *yamlRequest) revisions() []yamlRevision {
	return []yamlRevision{
		{[]any{"metadata", "resourceVersion"}, string(d.Metadata.resourceVersion)},
		{[]any{"preconditions", "resourceVersion"}, string(d.Preconditions.resourceVersion)},
	}
}

func (d *yamlAnswer) revisions() []yamlRevision {
	if d.Kind == statusKind {
		return nil
	}
	found := []yamlRevision{{[]any{"metadata", "resourceVersion"}, string(d.Metadata.resourceVersion)}}
	if d.Kind == tableKind {
		for i, row := range d.Rows {
			found = append(found, yamlRevision{
				[]any{"rows", i, "object", "metadata", "resourceVersion"}, string(row.Object.Metadata.resourceVersion),
			})
		}
	}
	return found
}
