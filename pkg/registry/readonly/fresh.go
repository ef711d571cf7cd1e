// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package readonly

import (
	"context"
	"strconv"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
)

// Fresh returns nil if the watch cache is initialised and has seen revision. A
// cache that lags behind is waited for, up to the few seconds that the cache
// allows a read; then the error is one of a resourceVersion that is too large.
func (r *REST) Fresh(ctx context.Context, revision uint64) error {
	if err := r.store.ReadinessCheck(); err != nil {
		return err
	}
	// The cache waits for the revision before it finds that there is no such
	// object: no object has this name, which is not a valid one.
	const name = "-"
	if r.NamespaceScoped() {
		ctx = request.WithNamespace(ctx, name)
	}
	key, err := r.store.KeyFunc(ctx, name)
	if err != nil {
		return err
	}
	return r.store.Storage.Get(ctx, key, storage.GetOptions{
		IgnoreNotFound: true, ResourceVersion: strconv.FormatUint(revision, 10),
	}, r.store.New())
}
