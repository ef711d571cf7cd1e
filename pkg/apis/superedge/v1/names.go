// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// What the ServiceGrid controller writes on the Service that it makes.
const (
	// LabelGridSelector holds the name of the ServiceGrid. By this label and the owner reference the controller
	// knows its Services.
	LabelGridSelector = "superedge.io/grid-selector"
	// LabelGridUniqKey holds spec.gridUniqKey. The value of a label has no "/", so that of a key with a prefix is
	// replaced by ".": topology.kubernetes.io/zone becomes topology.kubernetes.io.zone.
	LabelGridUniqKey = "superedge.io/grid-uniq-key"
	// AnnotationTopologyKeys holds a JSON array with spec.gridUniqKey. It is what makes the Service closed over its
	// node units. The name is defined by package topology, which cannot be imported by types that clients import.
	AnnotationTopologyKeys = "topologyKeys"
)

// ConditionReady is the type of the condition that says whether the Service is as the ServiceGrid wants it.
const ConditionReady = "Ready"

// Reasons of the condition Ready.
const (
	// ReasonServiceReady (True): the Service is as the ServiceGrid wants it.
	ReasonServiceReady = "ServiceReady"
	// ReasonInvalidKey (False): spec.gridUniqKey is empty or no label key. There is nothing to do until it changes.
	ReasonInvalidKey = "InvalidKey"
	// ReasonServiceConflict (False): a Service that belongs to somebody else has the name.
	ReasonServiceConflict = "ServiceConflict"
	// ReasonServiceInvalid (False): the API server refuses a Service with this template.
	ReasonServiceInvalid = "ServiceInvalid"
	// ReasonFailed (False): another error, which is retried.
	ReasonFailed = "Failed"
)
