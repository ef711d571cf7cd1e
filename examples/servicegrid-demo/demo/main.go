// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo shows what grid-apiserver is for, in one process, without a cluster.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

func main() {
	options := options{exit: os.Getenv("DEMO_EXIT") == "1"}
	flag.StringVar(&options.manifests, "manifests", "examples/servicegrid-demo", "Folder with the manifests to apply.")
	flag.StringVar(&options.dir, "dir", "bin/demo", "Folder for the kubeconfigs and the log of the server.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := logged(ctx, options); err != nil {
		fmt.Fprintln(os.Stderr, "The demo failed:", err)
		stop()
		os.Exit(1)
	}
}

// logged keeps what the server logs out of what the demo prints.
func logged(ctx context.Context, options options) error {
	if err := os.MkdirAll(options.dir, 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(options.dir, "server.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	output := io.Writer(io.Discard)
	// It belongs to a demo that runs in the same folder, which the start will find out too.
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		if err := file.Truncate(0); err != nil {
			return err
		}
		output = file
	}
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(output))))
	return run(ctx, os.Stdout, options)
}
