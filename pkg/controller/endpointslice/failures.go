// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslice

import (
	"sync"
)

// failures remembers the last error of each Service. A pod on a node that does
// not exist is an error that may last for ever: it is worth one Event, not one
// for each attempt, and another attempt when a node appears.
type failures struct {
	lock   sync.Mutex
	errors map[string]string // by key
}

func newFailures() *failures {
	return &failures{errors: map[string]string{}}
}

// changed notes the result of a sync and says whether it is another one than
// that of the sync before.
func (f *failures) changed(key string, err error) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	before := f.errors[key]
	if err == nil {
		delete(f.errors, key)
		return before != ""
	}
	f.errors[key] = err.Error()
	return before != err.Error()
}

// keys returns the Services whose last sync has failed.
func (f *failures) keys() []string {
	f.lock.Lock()
	defer f.lock.Unlock()
	keys := make([]string, 0, len(f.errors))
	for key := range f.errors {
		keys = append(keys, key)
	}
	return keys
}
