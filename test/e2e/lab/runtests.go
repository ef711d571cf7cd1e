// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Report tells the user what happens.
type Report = func(format string, args ...any)

// RunTests is what a TestMain does whose tests have labs: start starts them, run is that of its testing.M, and the result
// is the exit code. The labs that start returns are stopped after the tests, on an interrupt, and if start failed; the logs
// stay if anything did.
func RunTests(name string, start func(context.Context, Report) ([]*Lab, error), run func() int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%s %s: %s\n", time.Now().Format(time.TimeOnly), name, fmt.Sprintf(format, args...))
	}
	labs, err := start(ctx, report)
	code := 1
	if err != nil {
		report("%v", err)
	} else {
		result := make(chan int, 1)
		go func() { result <- run() }()
		select {
		case code = <-result:
		case <-ctx.Done():
			report("interrupted")
		}
	}
	for _, l := range labs {
		if err := l.Stop(); err != nil {
			report("stop: %v", err)
			code = 1
		}
	}
	for _, l := range labs {
		if code != 0 {
			report("the logs of all programs are in %s", l.Logs)
		} else if err := l.RemoveFiles(); err != nil {
			report("remove files: %v", err)
			code = 1
		}
	}
	return code
}

// Words splits a command line at spaces; a word may be quoted by '.
func Words(line string) []string {
	var all []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}
