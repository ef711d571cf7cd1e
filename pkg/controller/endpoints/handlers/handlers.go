// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package handlers ties event handlers of informers to the life of a controller.
// The informers are shared and may outlive it.
package handlers

import (
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// registration is a handler that an informer has.
type registration struct {
	informer cache.SharedIndexInformer
	handle   cache.ResourceEventHandlerRegistration
}

// Handlers are those of one controller. The zero value has none. Its methods may
// not be called concurrently.
type Handlers struct {
	added []registration
}

// Add adds the handler to the informer, which fails if the informer has stopped.
func (h *Handlers) Add(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
	handle, err := informer.AddEventHandler(handler)
	if err != nil {
		return err
	}
	h.added = append(h.added, registration{informer, handle})
	return nil
}

// Remove takes all handlers from their informers.
func (h *Handlers) Remove(logger klog.Logger) {
	for _, r := range h.added {
		if err := r.informer.RemoveEventHandler(r.handle); err != nil {
			logger.Error(err, "Cannot remove a handler from its informer")
		}
	}
	h.added = nil
}
