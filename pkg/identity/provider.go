// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"sync"
	"sync/atomic"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// serverName is the name under which clients with a kubeconfig of this package
// verify the server. It is sent as SNI, unlike an IP address. It is reserved: nobody
// else asks for it, so beside an operator's certificate these clients are the only
// ones that are shown the certificate of this package. With localhost, an operator's
// certificate would not be shown to https://localhost. It is never looked up.
const serverName = "local-identity.grid-apiserver"

// servingContent is the serving certificate as the TLS stack of
// k8s.io/apiserver wants it: exchangeable while running.
type servingContent struct {
	current atomic.Pointer[pair]

	lock      sync.Mutex
	listeners []dynamiccertificates.Listener
}

var _ dynamiccertificates.SNICertKeyContentProvider = (*servingContent)(nil)

// Name identifies the provider in logs.
func (s *servingContent) Name() string { return "grid-apiserver-serving" }

// SNINames makes the provider usable beside the operator's own certificate: it claims
// the reserved name alone.
func (s *servingContent) SNINames() []string { return []string{serverName} }

// CurrentCertKeyContent returns the PEM of the certificate and its key.
func (s *servingContent) CurrentCertKeyContent() (cert, key []byte) {
	p := s.current.Load()
	return p.certPEM, p.keyPEM
}

// AddListener has listener told of each change.
func (s *servingContent) AddListener(listener dynamiccertificates.Listener) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.listeners = append(s.listeners, listener)
}

func (s *servingContent) set(p *pair) {
	s.current.Store(p)
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, listener := range s.listeners {
		listener.Enqueue()
	}
}
