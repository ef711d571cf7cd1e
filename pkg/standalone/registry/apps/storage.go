// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apps stores the workloads of apps/v1 for the standalone server, with
// their status and, where they have one, their scale. No controller acts on
// them: no Deployment becomes a ReplicaSet, and no ReplicaSet becomes pods.
package apps

import (
	"maps"

	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
)

// NewStorage returns the storage of all resources of the group.
func NewStorage(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	all := map[string]rest.Storage{}
	for _, add := range []func(generic.RESTOptionsGetter) (map[string]rest.Storage, error){
		newDeployments, newDaemonSets, newReplicaSets, newStatefulSets, newControllerRevisions,
	} {
		storage, err := add(getter)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, storage)
	}
	return all, nil
}
