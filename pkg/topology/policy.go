// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

const (
	// TopologyKeysAnnotation of a Service holds a JSON array of node label keys.
	// The name has no prefix because existing users of SuperEdge write it so.
	TopologyKeysAnnotation = "topologyKeys"
	// TopologyPolicyAnnotation of a Service holds a Mode; absent means Union.
	TopologyPolicyAnnotation = "superedge.io/topology-policy"

	// AnyKey is the entry of topologyKeys that matches every endpoint, also one
	// without a node or on an unknown node.
	AnyKey = "*"
	// MaxKeys bounds the entries of topologyKeys, repeated ones included: the
	// cost of filtering an endpoint grows with them, and every key that this node
	// carries costs a watch on nodes upstream.
	MaxKeys = 16

	// maxQuoted bounds, in runes, how much of an annotation an error repeats.
	// Annotations reach 256 KiB and the error ends in a log line.
	maxQuoted = 64
)

// Mode says how the keys of a Policy work together.
type Mode string

const (
	// Union keeps an endpoint that matches any of the keys.
	Union Mode = "union"
	// Ordered keeps the endpoints that match the first key, in the order of the
	// list, that has something to offer; see Select.
	Ordered Mode = "ordered"
)

// Policy is what the annotations of a Service ask for. The zero value asks for
// nothing: the Service is not filtered. A Policy is immutable, and Selections
// share its Keys.
type Policy struct {
	// Mode is Union or Ordered; the empty string means Union.
	Mode Mode
	// Keys are valid label keys or AnyKey, as listed in the annotation; they may
	// repeat. Without keys the Service is not filtered.
	Keys []string
}

// ParsePolicy reads the topology annotations of a Service.
//
// TopologyKeysAnnotation absent, or with the value "", "[]" or "null", gives the
// zero Policy and no error, whatever TopologyPolicyAnnotation says: there is
// nothing that it could apply to. Any other value must be a JSON array of at most
// MaxKeys strings, each a valid label key or AnyKey, and the policy annotation,
// if present, must be "union" or "ordered". If not, the zero Policy is returned
// with an error that names the annotation and stays short however long the value.
func ParsePolicy(annotations map[string]string) (Policy, error) {
	value := annotations[TopologyKeysAnnotation]
	if value == "" {
		return Policy{}, nil
	}
	keys, err := parseKeys(value)
	if err != nil {
		return Policy{}, fmt.Errorf("annotation %s: %w", TopologyKeysAnnotation, err)
	}
	if len(keys) == 0 {
		return Policy{}, nil
	}
	mode, ok := annotations[TopologyPolicyAnnotation]
	switch {
	case !ok:
		return Policy{Mode: Union, Keys: keys}, nil
	case Mode(mode) == Union, Mode(mode) == Ordered:
		return Policy{Mode: Mode(mode), Keys: keys}, nil
	default:
		return Policy{}, fmt.Errorf("annotation %s: %s is neither %q nor %q", TopologyPolicyAnnotation, quote(mode), Union, Ordered)
	}
}

func parseKeys(value string) ([]string, error) {
	var keys []string
	if err := json.Unmarshal([]byte(value), &keys); err != nil {
		// The error of encoding/json can hold a number of any length.
		return nil, fmt.Errorf(`%s is not a JSON array of strings such as ["zone1"]`, quote(value))
	}
	if len(keys) > MaxKeys {
		return nil, fmt.Errorf("%d keys, at most %d are allowed", len(keys), MaxKeys)
	}
	for i, key := range keys {
		if key == AnyKey {
			continue
		}
		if len(content.IsLabelKey(key)) > 0 {
			return nil, fmt.Errorf("key %d, %s, is neither a valid label key nor %q", i+1, quote(key), AnyKey)
		}
	}
	return keys, nil
}

// quote returns a Go string literal of at most the first maxQuoted runes of s.
func quote(s string) string {
	return fmt.Sprintf("%.*q", maxQuoted, s)
}

// Filters reports whether the Service is filtered at all.
func (p Policy) Filters() bool {
	return len(p.Keys) > 0
}

// Equal reports whether both policies always lead to the same selection for the
// same reason: equal keys in equal order, and the same mode. All policies that
// do not filter are equal.
func (p Policy) Equal(o Policy) bool {
	if !p.Filters() || !o.Filters() {
		return p.Filters() == o.Filters()
	}
	return p.ordered() == o.ordered() && slices.Equal(p.Keys, o.Keys)
}

// DomainKeys returns the keys whose nodes must be known to select by this
// policy: Keys without AnyKey and without repetitions, in the order of Keys. The
// result is the caller's.
func (p Policy) DomainKeys() []string {
	var keys []string
	for _, key := range p.Keys {
		if key != AnyKey && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (p Policy) ordered() bool {
	return p.Mode == Ordered
}
