// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fresh returns nil if the watch cache of the resource is initialised and has
// seen revision, which it waits for as readonly.REST.Fresh does.
func (r *Readiness) Fresh(ctx context.Context, resource schema.GroupResource, revision uint64) error {
	for _, s := range r.storages {
		if s.resource == resource {
			return s.rest.Fresh(ctx, revision)
		}
	}
	return fmt.Errorf("%s is not served here", resource)
}
