// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a program that the lab started on a host. All methods may be called concurrently.
type Process struct {
	// Name says what runs where, for example "kube-proxy-node0".
	Name string
	// LogFile holds both of its output streams.
	LogFile string

	cmd  *exec.Cmd
	done chan struct{}
	err  error // valid after done
}

// startProcess starts a program on a host; its log is appended to <dir>/<name>.log.
func startProcess(h *Host, dir, name, path string, args ...string) (*Process, error) {
	logFile := filepath.Join(dir, name+".log")
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	fmt.Fprintf(log, "---- %s %s\n", path, strings.Join(args, " "))
	cmd := h.Command(context.Background(), path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	// A group of its own: Ctrl-C in a terminal reaches the lab only, which then ends its programs in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{Name: name, LogFile: logFile, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running tells whether the program still runs.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ExitError is the program's end as exec.Cmd.Wait reports it. Only valid after Done.
func (p *Process) ExitError() error { return p.err }

// Kill ends the program by SIGKILL and waits for its end.
func (p *Process) Kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Stop ends the program by SIGTERM, after the grace period by SIGKILL, and returns how long it took and whether
// the SIGTERM was enough.
func (p *Process) Stop(grace time.Duration) (took time.Duration, graceful bool) {
	if p == nil || !p.Running() {
		return 0, true
	}
	start := time.Now()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return time.Since(start), true
	case <-time.After(grace):
		p.Kill()
		return time.Since(start), false
	}
}

// failure describes the end of a program that should still run, with the last lines of its log.
func (p *Process) failure() error {
	return fmt.Errorf("%s ended: %w; the end of %s:\n%s", p.Name, p.err, p.LogFile, tail(p.LogFile, 15))
}

// stopAll stops programs side by side.
func stopAll(grace time.Duration, processes ...*Process) {
	var wg sync.WaitGroup
	for _, p := range processes {
		wg.Go(func() { p.Stop(grace) })
	}
	wg.Wait()
}

func tail(file string, lines int) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
