// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// Stores returns what the server serves.
func (s *Server) Stores() map[schema.GroupResource]*memory.Store { return s.source.stores }
