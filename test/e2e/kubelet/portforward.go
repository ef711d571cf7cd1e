// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

func (s *Server) servePortForward(w http.ResponseWriter, r *http.Request) {
	p, ok := s.pod(w, r)
	if !ok {
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, s, p.name, "", options, idleTimeout, remotecommand.DefaultStreamCreationTimeout, portforward.SupportedProtocols)
}

// PortForward implements portforward.PortForwarder: it connects to a port of the host's loopback. The end of what the
// client sends is passed on alone, so the other side can still answer, and its end ends the stream.
func (s *Server) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	connection, err := s.host.Dial(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer connection.Close()
	defer context.AfterFunc(s.ctx, func() { _ = connection.Close() })()
	go func() {
		_, _ = io.Copy(connection, stream)
		if half, ok := connection.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	_, err = io.Copy(stream, connection)
	return err
}
