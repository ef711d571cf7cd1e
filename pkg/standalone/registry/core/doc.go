// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package core stores, for the standalone server, the kinds of core/v1 that
// need no more than a strategy: nodes, configmaps, secrets, serviceaccounts and
// endpoints.
package core

import (
	"maps"

	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
)

// NewStorage returns the storage of all resources of this package over what the
// getter provides.
func NewStorage(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	all := map[string]rest.Storage{}
	for _, add := range []func(generic.RESTOptionsGetter) (map[string]rest.Storage, error){
		newNodes, newConfigMaps, newSecrets, newServiceAccounts, newEndpoints,
	} {
		storage, err := add(getter)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, storage)
	}
	return all, nil
}
