// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
)

// containerLog is a file that one process appends to and any number of readers follow.
type containerLog struct {
	path string

	mu      sync.Mutex
	file    *os.File
	size    int64
	ended   bool
	changed chan struct{} // closed and replaced at each change
}

func newContainerLog(path string) (*containerLog, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &containerLog{path: path, file: file, changed: make(chan struct{})}, nil
}

// Write implements io.Writer.
func (l *containerLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.file.Write(p)
	l.size += int64(n)
	l.changedLocked()
	return n, err
}

// end tells the readers that no more will come.
func (l *containerLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	_ = l.file.Close()
	l.changedLocked()
}

func (l *containerLog) changedLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// state is the log's size, whether more can come, and what is closed when one of them changes.
func (l *containerLog) state() (size int64, ended bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size, l.ended, l.changed
}

// serveLogs answers with a pod's log. Of the kubelet's parameters it knows follow and tailLines.
func (s *Server) serveLogs(w http.ResponseWriter, r *http.Request) {
	p, ok := s.pod(w, r)
	if !ok {
		return
	}
	file, err := os.Open(p.log.path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer file.Close()
	follow, _ := strconv.ParseBool(r.FormValue("follow"))
	size, ended, changed := p.log.state()
	var sent int64
	if lines, err := strconv.Atoi(r.FormValue("tailLines")); err == nil {
		if sent, err = startOfTail(io.NewSectionReader(file, 0, size), lines); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for {
		n, err := io.Copy(w, io.NewSectionReader(file, sent, size-sent))
		if err != nil || http.NewResponseController(w).Flush() != nil || !follow || ended {
			return
		}
		sent += n
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
		size, ended, changed = p.log.state()
	}
}

// startOfTail is where the last lines of a log begin.
func startOfTail(log io.Reader, lines int) (int64, error) {
	content, err := io.ReadAll(log)
	if err != nil {
		return 0, err
	}
	start := len(content)
	for range lines {
		start = bytes.LastIndexByte(bytes.TrimSuffix(content[:start], []byte("\n")), '\n') + 1
	}
	return int64(start), nil
}
