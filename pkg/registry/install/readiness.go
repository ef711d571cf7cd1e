// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/readonly"
)

// waitInterval is how often Wait looks. A watch cache over a store in memory
// is filled within a few milliseconds.
const waitInterval = 5 * time.Millisecond

// Readiness tells whether the watch caches under the storage are filled. It
// belongs in /readyz: storage answers lists without its cache, so it looks
// healthy when its watches do not work. It is safe for concurrent use.
type Readiness struct {
	storages []namedStorage
}

type namedStorage struct {
	resource schema.GroupResource
	rest     *readonly.REST
}

func (r *Readiness) add(resource schema.GroupResource, rest *readonly.REST) {
	r.storages = append(r.storages, namedStorage{resource: resource, rest: rest})
}

// Check returns an error that names every resource that is not ready.
func (r *Readiness) Check() error {
	var errs []error
	for _, s := range r.storages {
		if err := s.rest.ReadinessCheck(); err != nil {
			errs = append(errs, fmt.Errorf("watch cache of %s: %w", s.resource, err))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// Resource is Check for one resource; a resource that is not installed is
// never ready.
func (r *Readiness) Resource(resource schema.GroupResource) error {
	for _, s := range r.storages {
		if s.resource == resource {
			return s.rest.ReadinessCheck()
		}
	}
	return fmt.Errorf("%s is not served here", resource)
}

// Wait returns when all resources are ready, or with what is missing when the
// context ends.
func (r *Readiness) Wait(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, waitInterval, true, func(context.Context) (bool, error) {
		last = r.Check()
		return last == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// Destroy stops the storage. It may be called more than once.
func (r *Readiness) Destroy() {
	for _, s := range r.storages {
		s.rest.Destroy()
	}
}
