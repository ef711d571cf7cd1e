// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/client/v3/kubernetes"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// countingStore counts the LISTs that pass a cacher, and records them in the form in which the conformance suite expects
// those that reach etcd.
type countingStore struct {
	*Store
	lists    atomic.Int64
	recorder *storagetesting.KubernetesRecorder
}

func newCountingStore(below *Store) *countingStore {
	return &countingStore{Store: below, recorder: storagetesting.NewKubernetesRecorder(noKubernetes{})}
}

func (s *countingStore) GetList(ctx context.Context, key string, opts storage.ListOptions, listObj runtime.Object) error {
	s.lists.Add(1)
	prefix, err := s.prepareKey(key, opts.Recursive)
	if err != nil {
		return err
	}
	if err := s.record(ctx, prefix, opts); err != nil {
		return err
	}
	return s.Store.GetList(ctx, key, opts, listObj)
}

// record records a LIST as the pages that etcd's storage would read: one, and if the selector leaves it short of the
// limit, more of twice the size each.
func (s *countingStore) record(ctx context.Context, prefix string, opts storage.ListOptions) error {
	revision, from, err := storage.ValidateListOptions(prefix, versioner, opts)
	if err != nil {
		return nil // the store refuses it too
	}
	read := kubernetes.ListOptions{Revision: revision, Limit: opts.Predicate.Limit}
	if from == "" {
		from = prefix
	} else {
		read.Continue = "/registry" + from
	}
	var matched, seen int64
	keys := "/registry/" + strings.TrimPrefix(prefix, "/")
	if _, err := s.recorder.List(ctx, keys, read); err != nil {
		return err
	}
	if opts.Predicate.Empty() || read.Limit == 0 || revision == 0 {
		return nil
	}
	state, err := s.at(uint64(revision), prefix)
	if err != nil {
		return nil // the store refuses it too
	}
	state.ascend(prefix, from, func(e *entry) bool {
		if seen == read.Limit {
			if matched >= opts.Predicate.Limit {
				return false
			}
			seen, read.Limit = 0, read.Limit*2
			if _, err = s.recorder.List(ctx, keys, read); err != nil {
				return false
			}
		}
		if object, err := s.object(ctx, e); err != nil {
			return false // the store refuses it too
		} else if ok, _ := opts.Predicate.Matches(object); ok {
			matched++
		}
		seen++
		read.Continue = "/registry" + e.key + "\x00"
		return true
	})
	return err
}

// noKubernetes is an etcd that is never asked.
type noKubernetes struct{ kubernetes.Interface }

var _ kubernetes.Interface = noKubernetes{}

func (noKubernetes) List(context.Context, string, kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	return kubernetes.ListResponse{}, nil
}
