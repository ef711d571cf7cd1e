// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

func TestAnswerThatIsNotReadEnds(t *testing.T) {
	for _, test := range []struct {
		name        string
		longRunning bool
	}{{"a list", false}, {"a watch", true}} {
		t.Run(test.name, func(t *testing.T) {
			config := &genericapiserver.Config{
				RequestTimeout:  100 * time.Millisecond,
				LongRunningFunc: func(*http.Request, *request.RequestInfo) bool { return test.longRunning },
			}
			ended := make(chan error, 1)
			endless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				chunk := make([]byte, 1<<16)
				for {
					if _, err := w.Write(chunk); err != nil {
						ended <- err
						return
					}
				}
			})
			handler := withWriteDeadline(endless, config)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				info := &request.RequestInfo{IsResourceRequest: true, Path: r.URL.Path}
				handler.ServeHTTP(w, r.WithContext(request.WithRequestInfo(r.Context(), info)))
			}))
			defer s.Close()
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			select {
			case <-ended:
				if test.longRunning {
					t.Error("it ended by itself")
				}
			case <-time.After(patienceFor(test.longRunning)):
				if !test.longRunning {
					t.Error("it goes on")
				}
			}
			conn.Close()
			if test.longRunning {
				<-ended
			}
		})
	}
}

func TestConnectionGoesOnAfterABoundedAnswer(t *testing.T) {
	config := &genericapiserver.Config{
		RequestTimeout:  50 * time.Millisecond,
		LongRunningFunc: func(r *http.Request, _ *request.RequestInfo) bool { return r.URL.Path == "/watch" },
	}
	handler := withWriteDeadline(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/watch" {
			// Longer than the deadline of the request before.
			<-time.After(4 * config.RequestTimeout)
		}
		_, _ = io.WriteString(w, "ok")
	}), config)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := &request.RequestInfo{IsResourceRequest: true, Path: r.URL.Path}
		handler.ServeHTTP(w, r.WithContext(request.WithRequestInfo(r.Context(), info)))
	}))
	defer s.Close()
	for _, path := range []string{"/list", "/watch", "/list"} {
		response, err := s.Client().Get(s.URL + path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(body) != "ok" {
			t.Errorf("%s: %q, %v", path, body, err)
		}
	}
}

// patienceFor is how long to wait: in vain for what goes on.
func patienceFor(goesOn bool) time.Duration {
	if goesOn {
		return time.Second
	}
	return 10 * time.Second
}
