// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"net"
	"net/netip"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// addHooks has the server begin its own work when it serves. It is ready when
// the first objects are there.
func (s *Server) addHooks(c *completedConfig) error {
	first := newFirstObjects(s.client, c.ServiceClusterIPRanges, advertised(s.address))
	if err := first.follow(s.informers.Core().V1()); err != nil {
		return err
	}
	// An error of a hook would end the process, so this one has none.
	err := s.generic.AddPostStartHook("bootstrap", func(hook genericapiserver.PostStartHookContext) error {
		first.make(hook)
		s.controllers.also(func() { first.keep(hook) })
		return nil
	})
	if err != nil {
		return err
	}
	return s.generic.AddPostStartHook("controllers", func(hook genericapiserver.PostStartHookContext) error {
		s.controllers.start(hook)
		return nil
	})
}

// advertised is the address that the server can be reached at, invalid if it is not one.
func advertised(address net.Addr) netip.AddrPort {
	if tcp, ok := address.(*net.TCPAddr); ok {
		return tcp.AddrPort()
	}
	return netip.AddrPort{}
}
