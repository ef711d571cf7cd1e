// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servicegrid makes of each ServiceGrid a Service that is closed over its node units, and keeps it so.
//
// The Service of the ServiceGrid g is named g-svc. It has the template of g as its spec, the labels and annotations
// of g, the annotation topologyKeys, and g as its controller. Three files decide without I/O what is to be done:
// sync.go which Services are created, updated, deleted or released, service.go and spec.go what a Service should be,
// given what the API server has allocated for the one that exists. If they find no difference, nothing is written.
//
// Whose a Service is follows from its controller reference and the label superedge.io/grid-selector, as Pods are those
// of a ReplicaSet. A Service of the right name with the label and without a controller is adopted. A Service that loses
// the label is released. A Service of the right name that is somebody else's is not touched, and reported. A Service
// that has the ServiceGrid as its controller and another name is surplus, and deleted. A Service with the label alone
// and another name is nobody's: to adopt it only to delete it would destroy what a user has copied.
package servicegrid
