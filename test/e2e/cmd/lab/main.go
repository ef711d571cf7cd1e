// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command lab runs the cluster of package lab in the background, for a person to try things in.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const usage = `usage: lab <command>
  up      bring the lab up in the background and say what to try
  down    end it
  status  say whether it runs, and what to try
  build   only build the programs that the lab needs`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	commands := map[string]func(context.Context) error{
		"up":     up,
		"down":   down,
		"status": status,
		"build":  build,
		"serve":  serve, // the background process of up
	}
	if len(os.Args) != 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err := commands[os.Args[1]](ctx); err != nil {
		fmt.Fprintf(os.Stderr, "lab: %v\n", err)
		os.Exit(1)
	}
}

// report prints a progress line.
func report(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s lab: %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
