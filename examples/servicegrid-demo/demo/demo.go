// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/grid-apiserver/grid-apiserver/internal/manifest"
	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

const (
	service  = "servicegrid-demo-svc"
	unitKey  = "zone1"
	moved    = "edge-2"
	movedTo  = "nodeunit2"
	demoTime = 30 * time.Second // for all of it; it takes about one
)

var errInterrupted = errors.New("it was interrupted before the views were checked")

type options struct {
	manifests, dir string
	// exit ends the demo after the check instead of waiting for Ctrl-C.
	exit bool
}

// demo is one run.
type demo struct {
	out      io.Writer
	options  options
	server   *testserver.Server
	upstream kubernetes.Interface
	views    []*view
}

// run returns nil when every view was as it should be.
func run(ctx context.Context, out io.Writer, options options) (err error) {
	d := &demo{out: out, options: options}
	limited, cancel := context.WithTimeoutCause(ctx, demoTime, errors.New("it took more than "+demoTime.String()))
	defer cancel()
	serving, end := context.WithCancel(ctx)
	defer end()
	stopLimiting := context.AfterFunc(limited, end)
	defer func() {
		if d.server != nil {
			err = errors.Join(err, d.server.Stop())
		}
	}()
	if err := d.show(limited, serving); err != nil {
		if ctx.Err() != nil {
			return errInterrupted
		}
		return err
	}
	if options.exit {
		return nil
	}
	stopLimiting()
	d.printNext()
	<-ctx.Done()
	return nil
}

func (d *demo) show(ctx, serving context.Context) error {
	for _, step := range []struct {
		title string
		do    func() error
	}{
		{"Starting an API server that keeps everything in memory", func() error { return d.start(serving) }},
		{"Applying " + d.options.manifests + ": 3 nodes in 2 units, 3 pods, 1 ServiceGrid", func() error { return d.apply(ctx) }},
		{"Starting the view of each node", func() error { return d.startViews(ctx) }},
		{"Waiting for the controllers and the views", func() error { return d.settle(ctx) }},
	} {
		if err := d.step(step.title, step.do); err != nil {
			return err
		}
	}
	d.print("\nWhat each node sees of the Service %s:\n\n", service)
	if err := d.printViews(ctx); err != nil {
		return err
	}
	d.print("\nNow the node %s moves: kubectl label node %s %s=%s --overwrite\n\n", moved, moved, unitKey, movedTo)
	if err := d.move(ctx); err != nil {
		return err
	}
	d.print("\nWhat each node sees now:\n\n")
	if err := d.printViews(ctx); err != nil {
		return err
	}
	// A LIST must say the same as the watches.
	if err := d.settle(ctx); err != nil {
		return err
	}
	d.print("\nEvery view was right.\n")
	return nil
}

func (d *demo) start(ctx context.Context) (err error) {
	if d.server, err = testserver.Run(ctx, testserver.Options{DataDir: d.options.dir}); err != nil {
		return err
	}
	d.upstream, err = kubernetes.NewForConfig(d.server.Upstream)
	return err
}

func (d *demo) apply(ctx context.Context) error {
	objects, err := manifest.DecodePath(d.options.manifests)
	if err != nil {
		return err
	}
	applier, err := manifest.NewApplier(d.server.Upstream, "demo")
	if err != nil {
		return err
	}
	return applier.Apply(ctx, objects...)
}

func (d *demo) startViews(ctx context.Context) error {
	nodes, err := d.upstream.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		v, err := newView(ctx, d.server, node.Name)
		if err != nil {
			return err
		}
		d.views = append(d.views, v)
	}
	return nil
}

// settle waits until the controllers have made the Service and its endpoints, and
// each view shows its part of them.
func (d *demo) settle(ctx context.Context) error {
	want, err := expected(ctx, d.upstream)
	if err != nil {
		return err
	}
	for _, v := range d.views {
		if err := v.waitFor(ctx, want[v.node]); err != nil {
			return err
		}
	}
	return nil
}

// move changes the unit of a node, and prints what the watches say of it.
func (d *demo) move(ctx context.Context) error {
	news := make(chan change)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	for _, v := range d.views {
		if err := v.watch(watching, news); err != nil {
			return err
		}
	}
	begin := time.Now()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, unitKey, movedTo)
	if _, err := d.upstream.CoreV1().Nodes().Patch(ctx, moved, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return err
	}
	want, err := expected(ctx, d.upstream)
	if err != nil {
		return err
	}
	seen := map[string]endpoints{}
	for _, v := range d.views {
		seen[v.node] = v.before
	}
	if allEqual(want, seen) {
		return fmt.Errorf("no node sees other endpoints when %s moves to %s", moved, movedTo)
	}
	for !allEqual(want, seen) {
		select {
		case c := <-news:
			d.printChange(c, c.at.Sub(begin), seen[c.node])
			seen[c.node] = c.after
		case <-ctx.Done():
			return fmt.Errorf("the watches have not told of the move: want %v, got %v: %w", want, seen, context.Cause(ctx))
		}
	}
	return nil
}

func (d *demo) kubeconfig(name string) string {
	return filepath.Join(d.options.dir, name)
}
