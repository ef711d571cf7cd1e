// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/client-go/rest"
)

// dialWithoutRoom opens a connection over HTTP/2 on which answers have no room to
// arrive. What the kernel would buffer for a client that does not read its
// connection is megabytes.
func dialWithoutRoom(t *testing.T, g *grid) (*tls.Conn, *http2.Framer) {
	t.Helper()
	config, err := rest.TLSConfigFor(rest.AnonymousClientConfig(g.local))
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", g.address, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	return conn, framer
}

// askWithoutReading asks on many streams of one connection for answers that have
// no room to arrive.
func askWithoutReading(t *testing.T, g *grid, token, path string, streams int) {
	t.Helper()
	_, framer := dialWithoutRoom(t, g)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := range streams {
		block.Reset()
		fields := []hpack.HeaderField{
			{Name: ":method", Value: http.MethodGet}, {Name: ":scheme", Value: "https"},
			{Name: ":authority", Value: "x"}, {Name: ":path", Value: path},
		}
		if token != "" {
			fields = append(fields, hpack.HeaderField{Name: "authorization", Value: "Bearer " + token})
		}
		for _, field := range fields {
			if err := encoder.WriteField(field); err != nil {
				t.Fatal(err)
			}
		}
		if err := framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true,
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnswersThatAreNotReadKeepNobodyElseOut(t *testing.T) {
	u := startUpstream(t, fixture(slice("s-1", "s", strings.Split(strings.Repeat("n1 ", 300), " ")[:300]...))...)
	g := readyGrid(t, u)
	if a := g.get(t, g.bearer(adminToken), slicesPath, asJSON); a.code != http.StatusOK || len(a.body) < 10_000 {
		t.Fatalf("%d with %d bytes, which have room in buffers", a.code, len(a.body))
	}
	for range 6 {
		askWithoutReading(t, g, adminToken, slicesPath, 90)
		askWithoutReading(t, g, "", "/livez?verbose&exclude="+strings.Repeat("a", 12_000), 90)
	}
	// Those with a token are out of slots now.
	eventually(t, patience, func() bool {
		return g.get(t, g.bearer(adminToken), slicesPath, asJSON).code == http.StatusTooManyRequests
	}, func() any { return "the slots are not taken" })
	for path, config := range map[string]*rest.Config{
		slicesPath: g.local, "/livez": rest.AnonymousClientConfig(g.local), "/readyz": rest.AnonymousClientConfig(g.local),
	} {
		if a := g.get(t, config, path, asJSON); a.code != http.StatusOK {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
}
