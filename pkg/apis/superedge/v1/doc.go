// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is version v1 of the API group superedge.io: ServiceGrid, from which the ServiceGrid controller makes a
// Service that is closed over its node units.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.superedge.v1
// +groupName=superedge.io
package v1
