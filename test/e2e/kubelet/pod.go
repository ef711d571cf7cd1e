// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// Pod is a running process with a log. Its methods may be called concurrently.
type Pod struct {
	name, container string
	log             *containerLog
	stdin           io.WriteCloser
	done            chan struct{} // closed when the process has ended

	mu       sync.Mutex
	attached map[*attachment]struct{}
}

// attachment is where one attached client wants to see the output; a nil writer: not at all.
type attachment struct{ stdout, stderr io.Writer }

// start starts the process; running counts it until its end.
func (p *Pod) start(cmd *exec.Cmd, running *sync.WaitGroup) (err error) {
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return err
	}
	cmd.Stdout = &podOutput{pod: p, of: func(a *attachment) io.Writer { return a.stdout }}
	cmd.Stderr = &podOutput{pod: p, of: func(a *attachment) io.Writer { return a.stderr }}
	cmd.WaitDelay = waitDelay
	if err := cmd.Start(); err != nil {
		return err
	}
	running.Go(func() {
		_ = cmd.Wait()
		p.log.end()
		close(p.done)
	})
	return nil
}

// Input writes to the standard input of the pod's process.
func (p *Pod) Input(text string) error {
	if _, err := io.WriteString(p.stdin, text); err != nil {
		return fmt.Errorf("standard input of pod %s: %w", p.name, err)
	}
	return nil
}

// Attached is the number of clients that are attached.
func (p *Pod) Attached() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.attached)
}

// Done is closed when the pod's process has ended.
func (p *Pod) Done() <-chan struct{} { return p.done }

func (p *Pod) attach(a *attachment) (detach func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attached[a] = struct{}{}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.attached, a)
	}
}

// podOutput is one of the output streams of the process: it goes to the log and to all who are attached.
type podOutput struct {
	pod *Pod
	of  func(*attachment) io.Writer
}

// Write implements io.Writer. A client that is gone gets no more, and is no error.
func (o *podOutput) Write(b []byte) (int, error) {
	o.pod.mu.Lock()
	for a := range o.pod.attached {
		if w := o.of(a); w != nil {
			if _, err := w.Write(b); err != nil {
				delete(o.pod.attached, a)
			}
		}
	}
	o.pod.mu.Unlock()
	return o.pod.log.Write(b)
}
