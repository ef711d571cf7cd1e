// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// TestLargeListsAreCompressedAsTheyAreAskedFor reads lists of more than 300 KB, local and proxied ones.
func TestLargeListsAreCompressedAsTheyAreAskedFor(t *testing.T) {
	const slices = 600
	objects := append(fourNodes(), service("s", noPolicy))
	for i := range slices {
		s := slice(fmt.Sprintf("s-%04d", i), "s", "n1", "n3")
		s.Annotations = map[string]string{"padding": strings.Repeat("0123456789", 50)}
		objects = append(objects, s)
	}
	for i := range slices {
		n := node(fmt.Sprintf("other-%04d", i), "b")
		n.Annotations = map[string]string{"padding": strings.Repeat("0123456789", 60)}
		objects = append(objects, n)
	}
	g := readyGrid(t, startUpstream(t, objects...))
	for _, c := range []struct{ name, path, accept string }{
		{"local", slicesPath, asJSON},
		{"local", slicesPath, asProtobuf},
		{"local", slicesPath, asTable},
		{"local", slicesPath, "application/yaml"},
		{"local", slicesPath + "?pretty=true", asJSON},
		{"proxied", "/api/v1/nodes", asJSON},
		{"proxied", "/api/v1/nodes", asProtobuf},
	} {
		var plain []byte
		for _, encoding := range []string{"identity", "", "gzip", "br, gzip", "br"} {
			for _, http2 := range []bool{false, true} {
				body, got := readEncoded(t, g.bearer(adminToken), c.path, c.accept, encoding, http2)
				how := fmt.Sprintf("%s %s as %s with %q over HTTP/2 %v", c.name, c.path, c.accept, encoding, http2)
				if (got == "gzip") != strings.Contains(encoding, "gzip") {
					t.Errorf("%s: Content-Encoding %q", how, got)
				}
				if plain == nil {
					plain = body
					checkList(t, how, c.accept, body)
				}
				if !bytes.Equal(body, plain) {
					t.Errorf("%s: %d bytes, want the %d of identity", how, len(body), len(plain))
				}
			}
		}
		if len(plain) < 300_000 {
			t.Errorf("%s is no large list: %d bytes", c.path, len(plain))
		}
	}
}

// readEncoded returns the body, decompressed, and its Content-Encoding, and checks the
// length that was announced.
func readEncoded(t *testing.T, config *rest.Config, path, accept, encoding string, http2 bool) ([]byte, string) {
	t.Helper()
	response := openGet(t, config, path, accept, encoding, http2)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v", path, response.Status, err)
	}
	if length := response.Header.Get("Content-Length"); length != "" && length != strconv.Itoa(len(raw)) {
		t.Errorf("GET %s: Content-Length %s, but %d bytes", path, length, len(raw))
	}
	got := response.Header.Get("Content-Encoding")
	if got != "gzip" {
		return raw, got
	}
	if response.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("GET %s: compressed, with Vary %q", path, response.Header.Get("Vary"))
	}
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(zip)
	if err != nil {
		t.Fatalf("GET %s: after %d bytes of %d compressed ones: %v", path, len(body), len(raw), err)
	}
	return body, got
}

// checkList decodes a list of six hundred objects.
func checkList(t *testing.T, how, accept string, body []byte) {
	t.Helper()
	if accept == asTable {
		if table := decode[metav1.Table](t, answer{body: body}); len(table.Rows) != 600 {
			t.Errorf("%s: %d rows", how, len(table.Rows))
		}
		return
	}
	obj, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", how, err)
	}
	items, err := meta.ExtractList(obj)
	if err != nil || len(items) < 600 {
		t.Errorf("%s: %d items, %v", how, len(items), err)
	}
}
