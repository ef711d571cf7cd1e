// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"
	"testing"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/kubelet"
)

// startLines starts a command whose context is the test's and returns the lines that it prints. When they end,
// cmd.Wait may be called; else the end of the test does.
func startLines(t *testing.T, cmd *exec.Cmd) <-chan string {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
		_, _ = io.Copy(io.Discard, stdout)
	}()
	t.Cleanup(func() {
		if cmd.ProcessState != nil {
			return
		}
		_ = cmd.Process.Kill()
		for range lines {
		}
		_ = cmd.Wait()
	})
	return lines
}

// attached checks that exactly one client is attached to a pod.
func attached(pod *kubelet.Pod) func(context.Context) error {
	return func(context.Context) error {
		if pod.Attached() != 1 {
			return errors.New("it is not")
		}
		return nil
	}
}
