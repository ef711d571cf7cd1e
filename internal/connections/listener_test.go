// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package connections_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/grid-apiserver/grid-apiserver/internal/connections"
)

// pair returns both ends of a connection through l.
func pair(t *testing.T, l net.Listener) (client, server net.Conn) {
	t.Helper()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return client, server
}

// ended fails the test unless reading from c ends soon, and not for want of data.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	var timeout net.Error
	switch _, err := c.Read(make([]byte, 1)); {
	case err == nil:
		t.Error("there was something to read")
	case errors.As(err, &timeout) && timeout.Timeout():
		t.Error("the connection is still open")
	}
}

func TestCloseConnections(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := connections.NewListener(plain)
	defer l.Close()
	client, server := pair(t, l)
	gone, _ := pair(t, l)
	gone.Close()
	if _, err := io.WriteString(client, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}

	l.CloseConnections()
	ended(t, client)
	late, _ := pair(t, l)
	ended(t, late)
	l.CloseConnections()
}
