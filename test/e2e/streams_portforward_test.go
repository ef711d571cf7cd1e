// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

func TestStreamsPortForward(t *testing.T) {
	n, k := setUpStreams(t)
	runPod(t, k, "portforward", echoLines...)
	echo := serveTCP(t, n, func(c net.Conn) { _, _ = io.Copy(c, c) })
	// It answers when the client has sent all, so only if the two directions end one by one.
	digest := serveTCP(t, n, func(c net.Conn) {
		hash := sha256.New()
		_, _ = io.Copy(hash, c)
		_, _ = c.Write(hash.Sum(nil))
	})
	eachWay(t, n, true, func(t *testing.T, way streamWay) {
		ctx := streamContext(t)
		lines := startLines(t, way.command(ctx, "port-forward", "--address=127.0.0.1", "pod/portforward", ":"+echo, ":"+digest))
		echoAddress, digestAddress := forwardedAddress(t, lines), forwardedAddress(t, lines)
		const connections = 5
		errs := make([]error, 2*connections)
		var wg sync.WaitGroup
		for i := range connections {
			sent := randomBytes(1 << 20)
			sum := sha256.Sum256(sent)
			wg.Go(func() { errs[2*i] = exchange(ctx, way.host, echoAddress, sent, sent) })
			wg.Go(func() { errs[2*i+1] = exchange(ctx, way.host, digestAddress, sent, sum[:]) })
		}
		wg.Wait()
		must(t, errors.Join(errs...))
	})
}

// exchange sends all, ends that direction, and expects an answer to its end.
func exchange(ctx context.Context, h *lab.Host, address string, sent, want []byte) error {
	connection, err := h.Dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	go func() {
		_, _ = connection.Write(sent)
		_ = connection.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(connection)
	if err == nil && !bytes.Equal(got, want) {
		err = errors.New("another answer than expected")
	}
	if err != nil {
		return fmt.Errorf("%d bytes sent, %d of %d came back: %w", len(sent), len(got), len(want), err)
	}
	return nil
}

var forwarding = regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+) -> \d+$`)

func forwardedAddress(t *testing.T, lines <-chan string) string {
	t.Helper()
	line, ok := <-lines // its context ends kubectl
	match := forwarding.FindStringSubmatch(line)
	if match == nil {
		t.Fatalf("kubectl says %q, more: %t", line, ok)
	}
	return match[1]
}

// serveTCP serves connections on the loopback of a node until the end of the test and returns the port.
func serveTCP(t *testing.T, n *lab.Node, serve func(net.Conn)) (port string) {
	t.Helper()
	listener, err := n.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				serve(connection)
			}()
		}
	}()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}
