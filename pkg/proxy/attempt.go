// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

var (
	errRequestTimeout = errors.New("request timeout")
	errConnectTimeout = errors.New("connect timeout")
	errConnectionDead = errors.New("connection lost")
)

// attempt is the time budget of one proxied request. Its context ends with one of the errors above as the cause.
//
//	waiting for a connection --GotConn--> waiting for a header --header--> streaming
//	  connect timeout                       stall check, if the
//	                                        connection was reused
//
// The request timeout, if there is one, runs through all three.
type attempt struct {
	clock          clock.WithDelayedExecution
	connectTimeout time.Duration
	stallAfter     time.Duration
	reachable      func(context.Context) bool
	answers        *atomic.Uint64 // counts what upstream has answered to all attempts

	ctx    context.Context
	cancel context.CancelCauseFunc

	mu         sync.Mutex
	connecting clock.Timer   // running while a connection is waited for
	connected  chan struct{} // closed when that has come, or is not waited for any more
	stalled    clock.Timer   // running while a reused connection has not answered
	overall    clock.Timer
	heard      uint64 // answers when that began
	sent       bool
	answered   bool
}

// attemptKey is the context key of the attempt that a connection is dialled for.
type attemptKey struct{}

// start derives the context and starts the request timeout, if timeout is positive. stop must be called.
func (a *attempt) start(parent context.Context, timeout time.Duration) {
	a.ctx, a.cancel = context.WithCancelCause(context.WithValue(parent, attemptKey{}, a))
	if timeout > 0 {
		a.overall = a.clock.AfterFunc(timeout, func() { a.cancel(errRequestTimeout) })
	}
	a.ctx = httptrace.WithClientTrace(a.ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { a.wantConnection() },
		GotConn:              func(info httptrace.GotConnInfo) { a.gotConnection(info.Reused) },
		GotFirstResponseByte: a.gotAnswer,
	})
}

func (a *attempt) wantConnection() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered || a.connecting != nil {
		return
	}
	connected := make(chan struct{})
	a.connected = connected
	a.connecting = a.clock.AfterFunc(a.connectTimeout, func() { go a.giveUpConnecting(connected) })
}

// giveUpConnecting ends the attempt if it still waits for the connection that connected stands for. It runs on its own
// goroutine, as checkStall does: a clock may hold a lock while it calls.
func (a *attempt) giveUpConnecting(connected chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.connecting != nil && a.connected == connected {
		a.cancel(errConnectTimeout)
	}
}

// connection returns a channel that is closed when the connection that is waited for now has come. Nil if none is.
func (a *attempt) connection() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.connected
}

func (a *attempt) connectedLocked() {
	if a.connecting != nil {
		close(a.connected)
	}
	stopTimer(&a.connecting)
}

func (a *attempt) gotConnection(reused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = true
	a.connectedLocked()
	if !reused || a.answered || a.stalled != nil {
		return
	}
	a.heard = a.answers.Load()
	a.stalled = a.clock.AfterFunc(a.stallAfter, func() { go a.checkStall() })
}

// checkStall ends the attempt if upstream is gone, and looks again later if it is not.
func (a *attempt) checkStall() {
	if a.isAnswered() {
		return
	}
	reachable := a.reachable(a.ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered {
		return
	}
	// A node that is short of CPU fails the check as well; there, answers to other requests tell that upstream is alive.
	if answers := a.answers.Load(); reachable || answers != a.heard {
		a.heard = answers
	} else {
		a.cancel(errConnectionDead)
		return
	}
	a.stalled = a.clock.AfterFunc(stallRecheck, func() { go a.checkStall() })
}

func (a *attempt) isAnswered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answered
}

func (a *attempt) gotAnswer() {
	a.answers.Add(1)
	a.settle()
}

func (a *attempt) settle() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answered = true
	a.connectedLocked()
	stopTimer(&a.stalled)
}

// endless lifts the request timeout: the connection now belongs to another protocol.
func (a *attempt) endless() {
	a.mu.Lock()
	defer a.mu.Unlock()
	stopTimer(&a.overall)
}

// wasSent reports whether any of the request may have reached upstream.
func (a *attempt) wasSent() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sent
}

func (a *attempt) stop() {
	a.settle()
	a.endless()
	a.cancel(context.Canceled)
}

func stopTimer(timer *clock.Timer) {
	if *timer != nil {
		(*timer).Stop()
		*timer = nil
	}
}
