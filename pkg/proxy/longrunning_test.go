// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// longAfter is later than the request timeout, and the five minutes after which a
// stream of a user is not to be cut.
const longAfter = 6 * time.Minute

// TestUpgradedConnectionsOutliveTheRequestTimeout talks over upgraded connections
// before and long after the time that a request may take, also where the path is not
// one of a long-running request.
func TestUpgradedConnectionsOutliveTheRequestTimeout(t *testing.T) {
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		connection, buffered := switchProtocols(w, r.Header.Get("Upgrade"))
		defer connection.Close()
		for {
			line, err := buffered.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, line)
		}
	})
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), Clock: clock})
	connections := map[string]*rawConnection{}
	for _, request := range []string{
		"POST /api/v1/namespaces/default/pods/web/exec", "GET /api/v1/namespaces/default/pods/web/exec", "POST /api/v1/namespaces/default/pods/web/attach",
		"POST /api/v1/namespaces/default/pods/web/portforward", "GET /api/v1/namespaces/default/services/web/proxy/chat", "GET /apis/example.com/v1/consoles/a",
	} {
		for _, protocol := range []string{"SPDY/3.1", "websocket"} {
			c := front.dial(t)
			c.send(t, request+" HTTP/1.1", "Host: x", "Authorization: "+clientAuthorization, "Connection: Upgrade", "Upgrade: "+protocol)
			if response := c.response(t); response.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("%s as %s: %s", request, protocol, response.Status)
			}
			connections[request+" as "+protocol] = c
		}
	}
	talk := func(when string) {
		t.Helper()
		for name, c := range connections {
			line := fmt.Sprintf("%s %s\n", name, when)
			if _, err := io.WriteString(c, line); err != nil {
				t.Fatalf("%s, %s: %v", name, when, err)
			}
			if got, err := c.r.ReadString('\n'); err != nil || got != line {
				t.Errorf("%s, %s: %q came back, %v", name, when, got, err)
			}
		}
	}
	talk("at first")
	clock.Step(longAfter)
	talk("later")
}

// TestStreamsOutliveTheRequestTimeout reads lines before and long after the time that a
// request may take.
func TestStreamsOutliveTheRequestTimeout(t *testing.T) {
	later := make(chan struct{})
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		w.(http.Flusher).Flush()
		select {
		case <-later:
			_, _ = io.WriteString(w, "later\n")
		case <-r.Context().Done():
		}
	})
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), Clock: clock})
	answers := map[string]*http.Response{}
	for _, target := range []string{
		"/api/v1/pods?watch=true", "/api/v1/watch/pods", "/apis/apps/v1/namespaces/default/deployments?watch=1&fieldSelector=metadata.name%3Dweb",
		"/api/v1/namespaces/default/pods/web/log?follow=true", "/api/v1/namespaces/default/pods/web/proxy/events", "/api/v1/nodes/n1/proxy/logs/",
	} {
		for _, http2 := range []bool{true, false} {
			response, err := front.client(t, http2).Do(front.request(t, "GET", target, "", "Authorization", clientAuthorization))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			first := make([]byte, len("first\n"))
			if _, err := io.ReadFull(response.Body, first); err != nil || string(first) != "first\n" {
				t.Fatalf("%s: %q, %v", target, first, err)
			}
			answers[response.Proto+" "+target] = response
		}
	}
	clock.Step(longAfter)
	close(later)
	for name, response := range answers {
		if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != "later\n" {
			t.Errorf("%s: %q after %s, %v", name, rest, longAfter, err)
		}
	}
}

// TestRequestsMayTakeAMinute asks twice over each protocol: upstream answers one
// request just in time, and the other one not.
func TestRequestsMayTakeAMinute(t *testing.T) {
	arrived, answer := make(chan struct{}), make(chan struct{}, 1)
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-answer:
			_, _ = io.WriteString(w, "in time")
		case <-r.Context().Done():
		}
	})
	for _, http2 := range []bool{true, false} {
		clock := testingclock.NewFakeClock(time.Unix(0, 0))
		front := newFront(t, HandlerConfig{Upstream: upstream.config(), Clock: clock})
		type answered struct {
			code int
			body string
			err  error
		}
		ask := func() <-chan answered {
			ended := make(chan answered, 1)
			go func() {
				response, err := front.client(t, http2).Do(front.request(t, "GET", "/api/v1/pods?timeoutSeconds=3000", "", "Authorization", clientAuthorization))
				if err != nil {
					ended <- answered{err: err}
					return
				}
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				ended <- answered{response.StatusCode, string(body), err}
			}()
			<-arrived
			return ended
		}
		end := func(ended <-chan answered) answered {
			select {
			case got := <-ended:
				return got
			case <-time.After(15 * time.Second):
				t.Fatal("it goes on")
			}
			return answered{}
		}
		ended := ask()
		clock.Step(time.Minute - time.Second)
		answer <- struct{}{}
		if got := end(ended); got != (answered{code: http.StatusOK, body: "in time"}) {
			t.Errorf("%+v a second before the end", got)
		}
		ended = ask()
		clock.Step(time.Minute)
		got := end(ended)
		if got.err != nil {
			t.Fatal(got.err)
		}
		if status := decodeStatus(t, got.body); got.code != http.StatusGatewayTimeout || status.Code != http.StatusGatewayTimeout {
			t.Errorf("%+v, want 504 and a Status", got)
		}
	}
}
