// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// carriedAnnotation of a Service lists the keys of the labels and annotations that were carried over from its
// ServiceGrid. It tells those that the ServiceGrid no longer has from those that somebody else has put on the Service.
const carriedAnnotation = "superedge.io/carried-keys"

// notCarried are annotations by which a tool knows the ServiceGrid as its own. On the Service they would be untrue: the
// tool did not apply it, and some tools delete what they find under their name and do not know.
var notCarried = map[string]bool{
	corev1.LastAppliedConfigAnnotation: true,
	"argocd.argoproj.io/tracking-id":   true,
	"config.k8s.io/owning-inventory":   true,
	"meta.helm.sh/release-name":        true,
	"meta.helm.sh/release-namespace":   true,
	"objectset.rio.cattle.io/applied":  true,
	"objectset.rio.cattle.io/id":       true,
	carriedAnnotation:                  true,
}

// carriedKeys is the value of carriedAnnotation.
type carriedKeys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// formerlyCarried returns what carriedAnnotation says. A value that somebody has spoilt says nothing: then nothing is
// removed, and the value is written anew.
func formerlyCarried(annotations map[string]string) carriedKeys {
	var carried carriedKeys
	if json.Unmarshal([]byte(annotations[carriedAnnotation]), &carried) != nil {
		return carriedKeys{}
	}
	return carried
}

// encode returns the value for carriedAnnotation, "" if there is nothing to list.
func (c carriedKeys) encode() string {
	if len(c.Labels) == 0 && len(c.Annotations) == 0 {
		return ""
	}
	data, err := json.Marshal(c)
	if err != nil {
		// Strings always encode.
		panic(err)
	}
	return string(data)
}

// carry returns live without the keys formerly carried and with what is carried now. It changes neither.
func carry(live, now map[string]string, formerly []string) map[string]string {
	result := maps.Clone(live)
	if result == nil {
		result = map[string]string{}
	}
	for _, key := range formerly {
		delete(result, key)
	}
	maps.Copy(result, now)
	return result
}

func sortedKeys(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}
