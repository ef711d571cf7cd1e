// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures a whole grid-apiserver beside the real kube-apiserver that it stands in front of, with a
// cluster of 100 nodes, 1,000 Services and slices of 10 endpoints, and prints a table for docs/performance.md. It
// needs what the lab needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// parts selects what is measured. The start comes first in any case: it leaves the server that the others measure.
var parts = flag.String("parts", "", "measure only the parts whose names match this regular expression, and the start")

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func report(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s bench: %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// bench is a running lab with the cluster loaded.
type bench struct {
	lab  *lab.Lab
	node *lab.Node
	// grid is the running grid-apiserver; measureStart starts it.
	grid *lab.Process
	// unit is the present unit of the node.
	unit int
	rows []row
}

func run(ctx context.Context) (err error) {
	selected, err := regexp.Compile(*parts)
	if err != nil {
		return fmt.Errorf("-parts: %w", err)
	}
	l, err := lab.Start(ctx, lab.Options{Report: report})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, l.Stop())
		if err == nil {
			err = l.RemoveFiles()
		} else {
			report("the logs of all programs are in %s", l.Logs)
		}
	}()
	b := &bench{lab: l, node: l.Nodes[0]}
	report("creating %d nodes and %d Services", nodeCount, serviceCount)
	if err := b.load(ctx); err != nil {
		return err
	}
	if _, err := l.GridProgram(ctx); err != nil {
		return err
	}
	for i, part := range []struct {
		name    string
		measure func(context.Context) error
	}{
		{"start", b.measureStart},
		{"LIST", b.measureLists},
		{"proxied GET", b.measureGets},
		{"label flip", b.measureFlips},
		{"burst of writes", b.measureBursts},
		{"rest", b.measureMemory},
	} {
		if i > 0 && !selected.MatchString(part.name) {
			continue
		}
		report("measuring: %s", part.name)
		if err := errors.Join(part.measure(ctx), b.reportMemory(part.name)); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	b.print(os.Stdout)
	return nil
}
