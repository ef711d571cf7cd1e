// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// fieldLabels are the field selectors of the kinds that have more, or fewer,
// than the default metadata.name and metadata.namespace. An unknown label
// turns the request into a 400.
var fieldLabels = map[string][]string{
	"Service":   {"metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"},
	"Node":      {"metadata.name", "spec.unschedulable"},
	"Namespace": {"metadata.name", "status.phase"},
}

func addFieldLabels(s *runtime.Scheme) error {
	for kind, supported := range fieldLabels {
		err := s.AddFieldLabelConversionFunc(corev1.SchemeGroupVersion.WithKind(kind),
			func(label, value string) (string, string, error) {
				if !slices.Contains(supported, label) {
					return "", "", fmt.Errorf("field label not supported: %s", label)
				}
				return label, value, nil
			})
		if err != nil {
			return fmt.Errorf("registering the field labels of %s: %w", kind, err)
		}
	}
	return nil
}
