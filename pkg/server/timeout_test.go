// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

func TestRequestThatIsNotAnsweredEndsWithAStatus(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			config := &genericapiserver.Config{
				RequestTimeout:  20 * time.Millisecond,
				LongRunningFunc: func(*http.Request, *request.RequestInfo) bool { return false },
			}
			release := make(chan struct{})
			handler := withTimeouts(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }),
				config, serializer.NewCodecFactory(runtime.NewScheme()))
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				info := &request.RequestInfo{IsResourceRequest: true, Path: r.URL.Path}
				ctx := request.WithReceivedTimestamp(request.WithRequestInfo(r.Context(), info), time.Now())
				handler.ServeHTTP(w, r.WithContext(ctx))
			}))
			s.EnableHTTP2 = protocol == "HTTP/2.0"
			s.StartTLS()
			defer s.Close()
			defer close(release)
			// The two timers fire in either order if they are set to the same time.
			for range 20 {
				response, err := s.Client().Get(s.URL)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				var status metav1.Status
				if err := json.Unmarshal(body, &status); err != nil {
					t.Fatalf("%v in %s", err, body)
				}
				if response.Proto != protocol || response.StatusCode != http.StatusGatewayTimeout || status.Reason != metav1.StatusReasonTimeout {
					t.Fatalf("%s %s %s, want 504 and a Status", response.Proto, response.Status, body)
				}
			}
		})
	}
}
