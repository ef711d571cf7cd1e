// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

func readAll(t testing.TB, body *replayBody) string {
	t.Helper()
	reader, err := body.open()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

func TestReplayedBodyIsTheSameEachTime(t *testing.T) {
	text := strings.Repeat("0123456789", 1000)
	sources := map[string]io.Reader{
		"at once":        strings.NewReader(text),
		"byte by byte":   iotest.OneByteReader(strings.NewReader(text)),
		"EOF with data":  iotest.DataErrReader(strings.NewReader(text)),
		"EOF on its own": iotest.HalfReader(strings.NewReader(text)),
	}
	for name, source := range sources {
		freed := 0
		body := newReplayBody(source, len(text), func() { freed++ })
		first, err := body.open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(first, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		_ = first.Close()
		for range 2 {
			if got := readAll(t, body); got != text {
				t.Errorf("%s: %d bytes, want %d", name, len(got), len(text))
			}
		}
		if freed != 0 {
			t.Errorf("%s: freed before the answer", name)
		}
		body.noteAnswer()
		body.close()
		if _, err := body.open(); freed != 1 || !errors.Is(err, errBodyGone) {
			t.Errorf("%s: freed %d times, open: %v", name, freed, err)
		}
	}
}

// The reader of an attempt that was given up sits in a read, and takes what comes next from the client.
func TestReplayedBodySurvivesAReaderThatWaits(t *testing.T) {
	reader, writer := io.Pipe()
	source := &noticedReader{Reader: reader, reads: make(chan struct{}, 100)}
	body := newReplayBody(source, 10, func() {})
	first, err := body.open()
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() { _, _ = io.ReadAll(first) })
	_, _ = io.WriteString(writer, "01234")
	<-source.reads
	<-source.reads // the first reader waits for the rest
	second, err := body.open()
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	group.Go(func() { got, err = io.ReadAll(second) })
	_, _ = io.WriteString(writer, "56789")
	_ = writer.Close()
	group.Wait()
	if string(got) != "0123456789" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// noticedReader tells of each read that begins.
type noticedReader struct {
	io.Reader
	reads chan struct{}
}

func (r *noticedReader) Read(p []byte) (int, error) {
	r.reads <- struct{}{}
	return r.Reader.Read(p)
}

func TestReplayedBodyIsFreedOnce(t *testing.T) {
	text := "0123456789"
	tests := []struct {
		name string
		use  func(*replayBody, io.Reader)
		want int // before close
	}{
		{"answered before it was read", func(b *replayBody, r io.Reader) { b.noteAnswer(); _, _ = io.ReadFull(r, make([]byte, 5)) }, 0},
		{"answered, then read", func(b *replayBody, r io.Reader) { b.noteAnswer(); _, _ = io.ReadAll(r) }, 1},
		{"read to its length, then answered", func(b *replayBody, r io.Reader) { _, _ = io.ReadFull(r, make([]byte, 10)); b.noteAnswer() }, 1},
		{"never answered", func(_ *replayBody, r io.Reader) { _, _ = io.ReadAll(r) }, 0},
	}
	for _, tt := range tests {
		for name, build := range map[string]func(func()) *replayBody{
			"streamed": func(free func()) *replayBody { return newReplayBody(bytes.NewReader([]byte(text)), len(text), free) },
			"read":     func(free func()) *replayBody { return newReadBody([]byte(text), free) },
		} {
			freed := 0
			body := build(func() { freed++ })
			reader, err := body.open()
			if err != nil {
				t.Fatal(err)
			}
			tt.use(body, reader)
			if freed != tt.want {
				t.Errorf("%s, %s: freed %d times, want %d", tt.name, name, freed, tt.want)
			}
			if n, err := reader.Read(make([]byte, 1)); tt.want == 1 && (n != 0 || !errors.Is(err, io.EOF)) {
				t.Errorf("%s, %s: after the end: %d, %v", tt.name, name, n, err)
			}
			body.close()
			body.close()
			if freed != 1 {
				t.Errorf("%s, %s: freed %d times", tt.name, name, freed)
			}
			if n, err := reader.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("%s, %s: read after close: %d, %v", tt.name, name, n, err)
			}
		}
	}
}
