// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// piecesRecorder records how large the writes of a handler are.
type piecesRecorder struct {
	*httptest.ResponseRecorder
	count, total, largest int
}

// Write implements http.ResponseWriter.
func (r *piecesRecorder) Write(p []byte) (int, error) {
	r.count, r.total, r.largest = r.count+1, r.total+len(p), max(r.largest, len(p))
	return len(p), nil
}

// TestCollectionsAreWrittenPieceByPiece asserts that no answer is encoded as a whole
// before it is written: a large one would be in memory as often as it is asked for.
func TestCollectionsAreWrittenPieceByPiece(t *testing.T) {
	const objects = 400
	s := newServer(t)
	padding := strings.Repeat("x", 2_000)
	for i := range objects {
		name := fmt.Sprintf("s%d", i)
		s.put(t, servicesResource, "default/"+name, service(name, func(s *corev1.Service) { s.Annotations["padding"] = padding }))
	}
	for _, test := range []struct{ name, accept, query string }{
		{"JSON", asJSON, ""},
		{"indented JSON", asJSON, "?pretty=1"},
		{"protobuf", asProtobuf, ""},
		{"YAML", "application/yaml", ""},
		{"a page", asJSON, "?limit=300"},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/services"+test.query, nil)
			request.Header.Set("Accept", test.accept)
			recorder := &piecesRecorder{ResponseRecorder: httptest.NewRecorder()}
			s.Config.Handler.ServeHTTP(recorder, request)
			if recorder.Code != http.StatusOK || recorder.total < 300*len(padding) {
				t.Fatalf("got %d with %d bytes", recorder.Code, recorder.total)
			}
			if recorder.largest > 3*len(padding) {
				t.Errorf("of %d bytes in %d writes, %d came at once", recorder.total, recorder.count, recorder.largest)
			}

			// A first write that is not short would go out uncompressed.
			request.Header.Set("Accept-Encoding", "gzip")
			recorder = &piecesRecorder{ResponseRecorder: httptest.NewRecorder()}
			s.Config.Handler.ServeHTTP(recorder, request)
			if got := recorder.Header().Get("Content-Encoding"); got != "gzip" || recorder.total > 300*len(padding) {
				t.Errorf("%d bytes with the Content-Encoding %q, want gzip", recorder.total, got)
			}
		})
	}
}
