// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

var (
	errRequestTimeout = errors.New("request timeout")
	errConnectTimeout = errors.New("connect timeout")
	errConnectionDead = errors.New("connection lost")
	errStopped        = errors.New("the server is stopping")
)

// attempt is the time budget of one proxied request. Its context ends with one of the errors above as the cause.
//
//	waiting for a connection --GotConn--> waiting for a header --header--> streaming
//	  connect timeout                       stall check, if the
//	                                        connection was reused
//
// The request timeout, if there is one, runs through all three. Nearly all requests are over long before anything is due,
// so there is one timer, which is never put off: when it rings with nothing due, it is set for what comes next.
type attempt struct {
	clock          clock.WithDelayedExecution
	connectTimeout time.Duration
	stallAfter     time.Duration
	reachable      *reachability
	answers        *atomic.Uint64 // counts what upstream has answered to all attempts

	ctx    context.Context
	cancel context.CancelCauseFunc
	// release lets go of what would end the attempt from outside. It reports false if that has happened.
	release func() bool
	trace   httptrace.ClientTrace

	mu        sync.Mutex
	timer     clock.Timer
	ringsAt   time.Time     // zero: not any more
	endBy     time.Time     // zero: there is no request timeout
	connectBy time.Time     // zero: no connection is waited for
	connected chan struct{} // closed when that has come, or is not waited for any more; nil if nobody has asked for it
	checkAt   time.Time     // when to look whether upstream is gone; zero: not
	doubted   bool          // a reused connection has not answered
	heard     uint64        // answers when that began
	sent      bool
	answered  bool
	stopped   bool
}

// attemptContext is the client's context with an attempt, and without its logger.
type attemptContext struct {
	context.Context
	attempt *attempt
}

// attemptKey is the context key of the attempt that a connection is dialled for.
type attemptKey struct{}

// noLogger has the logger of what must not be logged: client-go logs headers at -v=8, tokens in WebSocket subprotocols
// among them, to the logger in the context.
var noLogger = klog.NewContext(context.Background(), klog.New(nil))

// Value implements context.Context.
func (c *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c.attempt
	}
	if value := noLogger.Value(key); value != nil {
		return value
	}
	return c.Context.Value(key)
}

// start derives the context from the client's, and starts the request timeout, if timeout is positive. end ends the attempt.
// informational, if not nil, is called with answers of 1xx. stop must be called.
func (a *attempt) start(client, end context.Context, timeout time.Duration, informational func(int, textproto.MIMEHeader) error) {
	ctx, cancel := context.WithCancelCause(&attemptContext{client, a})
	a.trace = httptrace.ClientTrace{
		GetConn:              func(string) { a.wantConnection() },
		GotConn:              func(info httptrace.GotConnInfo) { a.gotConnection(info.Reused) },
		GotFirstResponseByte: a.gotAnswer,
		Got1xxResponse:       informational,
	}
	a.ctx, a.cancel = httptrace.WithClientTrace(ctx, &a.trace), cancel
	a.mu.Lock()
	defer a.mu.Unlock()
	first := min(a.connectTimeout, a.stallAfter) // nothing else that begins later can be due before
	now := a.clock.Now()
	if timeout > 0 {
		a.endBy = now.Add(timeout)
		first = min(first, timeout)
	}
	a.setTimerLocked(first, now)
	a.release = context.AfterFunc(end, func() { a.cancel(errStopped) })
	if end.Err() != nil {
		cancel(errStopped) // now: nothing must be sent
	}
}

// ring does what is due.
func (a *attempt) ring() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped {
		return
	}
	a.ringsAt = time.Time{}
	now := a.clock.Now()
	due := func(at time.Time) bool { return !at.IsZero() && !at.After(now) }
	switch {
	case due(a.endBy):
		a.cancel(errRequestTimeout)
		return
	case due(a.connectBy):
		a.cancel(errConnectTimeout)
		return
	case due(a.checkAt):
		a.checkAt = time.Time{}
		go a.checkStall()
	}
	for _, at := range [...]time.Time{a.endBy, a.connectBy, a.checkAt} {
		a.ringByLocked(at, now)
	}
}

// ringByLocked has the timer ring at the given time, if that is not zero, or before.
func (a *attempt) ringByLocked(at, now time.Time) {
	if at.IsZero() || a.stopped || !a.ringsAt.IsZero() && !at.Before(a.ringsAt) {
		return
	}
	a.timer.Stop()
	a.setTimerLocked(at.Sub(now), now)
}

// setTimerLocked makes a new timer: the one of a test clock cannot be set twice.
func (a *attempt) setTimerLocked(after time.Duration, now time.Time) {
	a.ringsAt = now.Add(after)
	a.timer = a.clock.AfterFunc(after, func() { go a.ring() }) // a clock may hold a lock while it calls
}

func (a *attempt) wantConnection() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered || !a.connectBy.IsZero() {
		return
	}
	now := a.clock.Now()
	a.connected, a.connectBy = nil, now.Add(a.connectTimeout)
	a.ringByLocked(a.connectBy, now)
}

// connection returns a channel that is closed when the connection that is waited for now has come, or if none is. It is nil
// once there was an answer: if that was of 1xx and the request is sent again, nobody knows what is waited for.
func (a *attempt) connection() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered {
		return nil
	}
	if a.connected == nil {
		a.connected = make(chan struct{})
		if a.connectBy.IsZero() {
			close(a.connected)
		}
	}
	return a.connected
}

func (a *attempt) connectedLocked() {
	if !a.connectBy.IsZero() && a.connected != nil {
		close(a.connected)
	}
	a.connectBy = time.Time{}
}

func (a *attempt) gotConnection(reused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = true
	a.connectedLocked()
	if !reused || a.answered || a.doubted {
		return
	}
	now := a.clock.Now()
	a.doubted, a.heard, a.checkAt = true, a.answers.Load(), now.Add(a.stallAfter)
	a.ringByLocked(a.checkAt, now)
}

// checkStall ends the attempt if upstream is gone, and looks again later if it is not.
func (a *attempt) checkStall() {
	if a.isAnswered() {
		return
	}
	reachable := a.reachable.check(a.ctx)
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
	now := a.clock.Now()
	a.checkAt = now.Add(stallRecheck)
	a.ringByLocked(a.checkAt, now)
}

func (a *attempt) isAnswered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answered
}

func (a *attempt) gotAnswer() {
	a.answers.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settleLocked()
}

func (a *attempt) settleLocked() {
	a.answered = true
	a.connectedLocked()
	a.checkAt = time.Time{}
}

// endless lifts the request timeout: the connection now belongs to another protocol.
func (a *attempt) endless() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endBy = time.Time{}
}

// wasSent reports whether any of the request may have reached upstream.
func (a *attempt) wasSent() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sent
}

// stop ends the attempt, whatever has become of it, and reports whether it had been ended from outside.
func (a *attempt) stop() (cutShort bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settleLocked()
	a.stopped = true
	a.timer.Stop()
	a.cancel(context.Canceled)
	return !a.release()
}
