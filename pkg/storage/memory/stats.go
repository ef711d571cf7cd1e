// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// sizeSamples is how many objects Stats measures, spread over the keys: enough for what the number is used for, which is
// how many seats of priority and fairness a LIST takes.
const sizeSamples = 64

// EnableResourceSizeEstimation implements storage.Interface: from now on, Stats reports an average object size. The store
// knows its own keys and does not call keys.
func (s *Store) EnableResourceSizeEstimation(keys storage.KeysFunc) error {
	if keys == nil {
		return errors.New("KeysFunc cannot be nil")
	}
	if s.estimateSize.Swap(true) {
		return errors.New("resource size estimation is already enabled")
	}
	return nil
}

// Stats implements storage.Interface. The average size, if it is enabled, is that of a sample: of the bytes stored in codec
// mode, of an estimate in object mode.
func (s *Store) Stats(context.Context) (storage.Stats, error) {
	s.mu.RLock()
	count := s.current.Len()
	s.mu.RUnlock()
	stats := storage.Stats{ObjectCount: int64(count)}
	if s.estimateSize.Load() && count > 0 {
		stats.EstimatedAverageObjectSizeBytes = s.latest().averageSize()
	}
	return stats, nil
}

func (s snapshot) averageSize() int64 {
	stride := max(s.objects.Len()/sizeSamples, 1)
	var total, samples, i int
	s.objects.Ascend(func(e *entry) bool {
		if i%stride == 0 {
			total += e.size()
			samples++
		}
		i++
		return true
	})
	if samples == 0 {
		return 0
	}
	return int64(total / samples)
}

// encodedSize is the size in protobuf for the types that have one, and in JSON for the others.
func encodedSize(object runtime.Object) int {
	if sized, ok := object.(interface{ Size() int }); ok {
		return sized.Size()
	}
	data, err := json.Marshal(object)
	if err != nil {
		return 0
	}
	return len(data)
}
