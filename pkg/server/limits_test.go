// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

func TestRequestsAboveTheLimitAreToldToComeBack(t *testing.T) {
	config := &genericapiserver.Config{
		MaxRequestsInFlight: 1,
		LongRunningFunc:     func(_ *http.Request, info *request.RequestInfo) bool { return info.Verb == "watch" },
	}
	holding, release := make(chan struct{}), make(chan struct{})
	handler := withLimits(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Hold") != "" {
			close(holding)
			<-release
		}
	}), config)
	send := func(info *request.RequestInfo, hold string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Hold", hold)
		ctx := request.WithUser(request.WithRequestInfo(r.Context(), info), &user.DefaultInfo{Name: "somebody"})
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, r.WithContext(ctx))
		return recorder
	}
	list := &request.RequestInfo{IsResourceRequest: true, Verb: "list", Resource: "services"}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		send(list, "yes")
	}()
	<-holding

	for name, test := range map[string]struct {
		info *request.RequestInfo
		code int
	}{
		"list":         {list, http.StatusTooManyRequests},
		"get":          {&request.RequestInfo{IsResourceRequest: true, Verb: "get", Resource: "services"}, http.StatusTooManyRequests},
		"metrics":      {&request.RequestInfo{Verb: "get", Path: "/metrics"}, http.StatusTooManyRequests},
		"watch":        {&request.RequestInfo{IsResourceRequest: true, Verb: "watch", Resource: "services"}, http.StatusOK},
		"health check": {&request.RequestInfo{Verb: "get", Path: "/livez"}, http.StatusOK},
	} {
		got := send(test.info, "")
		if got.Code != test.code {
			t.Errorf("%s: %d, want %d", name, got.Code, test.code)
		}
		if got.Code != http.StatusTooManyRequests {
			continue
		}
		// The words of kube-apiserver, which has no Status here either.
		if after, body := got.Header().Get("Retry-After"), got.Body.String(); after != "1" || body != "Too many requests, please try again later.\n" {
			t.Errorf("%s: Retry-After %q, %q", name, after, body)
		}
	}
	close(release)
	<-ended
	if got := send(list, ""); got.Code != http.StatusOK {
		t.Errorf("after that: %d", got.Code)
	}
}
