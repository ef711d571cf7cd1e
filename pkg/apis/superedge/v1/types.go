// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=servicegrids,singular=servicegrid,shortName=sg,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="KEY",type=string,JSONPath=`.spec.gridUniqKey`,description="The node label key that makes the node units."
// +kubebuilder:printcolumn:name="SERVICE",type=string,JSONPath=`.status.serviceName`,description="The Service that the controller made."
// +kubebuilder:printcolumn:name="CLUSTER-IP",type=string,JSONPath=`.status.clusterIP`,description="The cluster IP of that Service."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`

// ServiceGrid describes a Service whose clients reach only the endpoints in their own node unit: the nodes that have
// the same value of one label.
type ServiceGrid struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every object. The Service carries its labels and annotations too.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec ServiceGridSpec `json:"spec"`

	// status is what the controller has made of it. Only the controller writes it.
	// +optional
	Status ServiceGridStatus `json:"status,omitempty,omitzero"`
}

// ServiceGridSpec is what is wanted of a ServiceGrid.
type ServiceGridSpec struct {
	// gridUniqKey is the key of the node label that makes the node units: nodes with an equal value of it are one
	// unit. For example zone1 or topology.kubernetes.io/zone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self.indexOf('/') <= 253",message="the prefix of a label key has at most 253 characters"
	GridUniqKey string `json:"gridUniqKey"`

	// template is the spec of the Service.
	// +required
	Template corev1.ServiceSpec `json:"template"`
}

// ServiceGridStatus is what the controller has made of a ServiceGrid.
type ServiceGridStatus struct {
	// observedGeneration is the generation of the ServiceGrid that this status tells about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// serviceName is the name of the Service. Empty as long as there is none.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`

	// clusterIP is the cluster IP of the Service, or None if it is headless.
	// +optional
	ClusterIP string `json:"clusterIP,omitempty"`

	// conditions has the condition Ready: whether the Service is as the ServiceGrid wants it.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true

// ServiceGridList is a list of ServiceGrids.
type ServiceGridList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is that of every list.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ServiceGrids.
	Items []ServiceGrid `json:"items"`
}
