// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// cluster is the one lab of this test process. Tests run one after the other and each sets up what it needs of
// node units, Services and kube-proxies (see setUp).
var cluster *lab.Lab

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%s lab: %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
	}
	var err error
	if cluster, err = lab.Start(ctx, lab.Options{Report: report}); err != nil {
		report("%v", err)
		return 1
	}
	result := make(chan int, 1)
	go func() { result <- m.Run() }()
	code := 1
	select {
	case code = <-result:
	case <-ctx.Done():
		report("interrupted")
	}
	if err := cluster.Stop(); err != nil {
		report("stop: %v", err)
		code = 1
	}
	if code != 0 {
		report("the logs of all programs are in %s", cluster.Logs)
		return code
	}
	if err := cluster.RemoveFiles(); err != nil {
		report("remove files: %v", err)
		return 1
	}
	return 0
}
