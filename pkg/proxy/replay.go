// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

const (
	// maxReplayedBody is the size up to which a body is kept for a second attempt. Nearly all writes to an API server are
	// smaller; what is larger is sent once.
	maxReplayedBody = 64 * 1024
	// replayBudget is for the bodies that are kept at a time, of known and of unknown tokens each. A body that finds no room
	// is sent once.
	replayBudget = 2 * 1024 * 1024
)

var errBodyGone = errors.New("the request body is not kept any more")

// replayBody lets net/http send a body again. It has to when upstream closes an HTTP/2 connection (GOAWAY): requests that
// upstream did not look at fail, unless there is a GetBody. The body is streamed nevertheless. Each reader starts with what
// has been read so far and goes on with the source. Safe for concurrent use.
type replayBody struct {
	source  io.Reader  // read by one reader at a time
	reading sync.Mutex // held meanwhile; taken before mu

	mu       sync.Mutex
	size     int
	data     []byte // what has been read of source; nil once free was called
	err      error  // how source ended
	newest   *replayReader
	answered bool
	closed   bool
	free     func() // gives the reservation back; nil once called
}

// newReplayBody keeps what is read of source, which has size bytes. free is called once they are not kept any more, which
// close makes sure of.
func newReplayBody(source io.Reader, size int, free func()) *replayBody {
	return &replayBody{source: source, size: size, free: free}
}

// newReadBody is for a body that has been read already.
func newReadBody(data []byte, free func()) *replayBody {
	return &replayBody{size: len(data), data: data, err: io.EOF, free: free}
}

// open returns the body from its start. It has the signature of http.Request's GetBody.
func (b *replayBody) open() (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free == nil {
		return nil, errBodyGone
	}
	b.newest = &replayReader{body: b}
	return b.newest, nil
}

// noteAnswer says that upstream has answered, so there will be no further attempt.
func (b *replayBody) noteAnswer() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answered = true
	b.freeIfSentLocked()
}

// close ends all reading: the source must not be touched after the handler has returned.
func (b *replayBody) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.freeLocked()
}

func (b *replayBody) freeIfSentLocked() {
	whole := b.err != nil || len(b.data) == b.size
	if b.answered && whole && (b.newest == nil || b.newest.next == len(b.data)) {
		b.freeLocked()
	}
}

func (b *replayBody) freeLocked() {
	if b.free == nil {
		return
	}
	if b.err == nil && len(b.data) == b.size {
		b.err = io.EOF
	}
	b.data = nil
	b.free()
	b.free = nil
}

// replayReader reads a replayBody from its start. It is used by one goroutine at a time, as any reader; Close may be called
// from another.
type replayReader struct {
	body *replayBody
	// next and closed are guarded by body.mu.
	next   int
	closed bool
}

var _ io.ReadCloser = &replayReader{}

// Read implements io.Reader.
func (r *replayReader) Read(p []byte) (int, error) {
	if n, err := r.replay(p); n > 0 || err != nil || len(p) == 0 {
		return n, err
	}
	b := r.body
	b.reading.Lock()
	defer b.reading.Unlock()
	// A reader of an attempt that was given up may have got what this one waited for.
	if n, err := r.replay(p); n > 0 || err != nil {
		return n, err
	}
	n, err := b.source.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free != nil {
		if b.data == nil {
			b.data = make([]byte, 0, b.size)
		}
		b.data = append(b.data, p[:n]...)
	}
	b.err = err
	r.next += n
	b.freeIfSentLocked()
	return n, err
}

// replay reads what has been read before.
func (r *replayReader) replay(p []byte) (int, error) {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || r.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	if r.next < len(b.data) {
		n := copy(p, b.data[r.next:])
		r.next += n
		b.freeIfSentLocked()
		return n, nil
	}
	return 0, b.err
}

// Close implements io.Closer.
func (r *replayReader) Close() error {
	r.body.mu.Lock()
	defer r.body.mu.Unlock()
	r.closed = true
	return nil
}
