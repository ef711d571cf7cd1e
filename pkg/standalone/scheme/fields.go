// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fieldLabels has the field selectors of the kinds that have more, or fewer,
// than the default metadata.name and metadata.namespace, each with the name
// that the storage knows it by. An unknown label turns the request into a 400.
func fieldLabels() map[schema.GroupVersionKind]map[string]string {
	core := corev1.SchemeGroupVersion
	pods := same("metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
		"spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs",
		"status.nominatedNodeName")
	pods["spec.host"] = "spec.nodeName" // what the oldest clients send
	return map[schema.GroupVersionKind]map[string]string{
		core.WithKind("Pod"):       pods,
		core.WithKind("Node"):      same("metadata.name", "spec.unschedulable"),
		core.WithKind("Namespace"): same("metadata.name", "status.phase"),
		core.WithKind("Secret"):    same("metadata.name", "metadata.namespace", "type"),
		core.WithKind("Service"):   same("metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"),
		core.WithKind("Event"): same("metadata.name", "metadata.namespace", "involvedObject.kind",
			"involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion",
			"involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"),
		eventsv1.SchemeGroupVersion.WithKind("Event"): {
			"metadata.name":             "metadata.name",
			"metadata.namespace":        "metadata.namespace",
			"regarding.kind":            "involvedObject.kind",
			"regarding.namespace":       "involvedObject.namespace",
			"regarding.name":            "involvedObject.name",
			"regarding.uid":             "involvedObject.uid",
			"regarding.apiVersion":      "involvedObject.apiVersion",
			"regarding.resourceVersion": "involvedObject.resourceVersion",
			"regarding.fieldPath":       "involvedObject.fieldPath",
			"reportingController":       "reportingComponent",
			"reason":                    "reason",
			"type":                      "type",
		},
	}
}

func same(labels ...string) map[string]string {
	stored := make(map[string]string, len(labels))
	for _, label := range labels {
		stored[label] = label
	}
	return stored
}

func addFieldLabels(s *runtime.Scheme) error {
	for kind, supported := range fieldLabels() {
		err := s.AddFieldLabelConversionFunc(kind, func(label, value string) (string, string, error) {
			stored, ok := supported[label]
			if !ok {
				return "", "", fmt.Errorf("field label not supported: %s", label)
			}
			return stored, value, nil
		})
		if err != nil {
			return fmt.Errorf("registering the field labels of %s: %w", kind, err)
		}
	}
	return nil
}
