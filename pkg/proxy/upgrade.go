// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"k8s.io/streaming/pkg/httpstream"
)

// errBadUpgrade: upstream switched to a protocol that nobody asked for.
var errBadUpgrade = errors.New("upstream switched to another protocol than was requested")

// errUpstreamClosed ends the copying of an upgraded connection in both directions.
var errUpstreamClosed = errors.New("upstream closed the upgraded connection")

// wantsUpgrade reports whether the client may go on in another protocol after the answer, by its own reading of r.
func wantsUpgrade(r *http.Request) bool {
	return httpstream.IsUpgradeRequest(r) || r.Header.Get("Upgrade") != ""
}

// prepareUpgrade checks the protocol of a 101 answer and makes the connection end when either side ends, as it does in
// kube-apiserver: half-closed connections would outlive clients that are gone. On an error the caller closes it.
func prepareUpgrade(r *http.Request, response *http.Response) error {
	if !strings.EqualFold(r.Header.Get("Upgrade"), response.Header.Get("Upgrade")) {
		return errBadUpgrade
	}
	connection, ok := response.Body.(io.ReadWriteCloser)
	if !ok {
		return errBadUpgrade
	}
	response.Body = &upgradedConnection{connection}
	return nil
}

// upgradedConnection has no CloseWrite, and ends with an error where the connection ends.
type upgradedConnection struct {
	io.ReadWriteCloser
}

// Read implements io.Reader.
func (c *upgradedConnection) Read(p []byte) (int, error) {
	n, err := c.ReadWriteCloser.Read(p)
	if errors.Is(err, io.EOF) {
		err = errUpstreamClosed
	}
	return n, err
}

// canHijack reports whether the connection below w can be taken over.
func canHijack(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case http.Hijacker:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}
