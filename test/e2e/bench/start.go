// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

const (
	starts       = 5
	startTimeout = time.Minute
	startPoll    = 5 * time.Millisecond
)

// measureStart starts the server with an empty data directory and with the one of a former run, several times. The
// last one goes on.
func (b *bench) measureStart(ctx context.Context) error {
	for _, test := range []struct {
		what  string
		empty bool
	}{
		{"start to correct view, first", true},
		{"start to correct view, again", false},
	} {
		var took, used []time.Duration
		for range starts {
			if b.grid != nil {
				b.grid.Stop(10 * time.Second)
			}
			if test.empty {
				if err := os.RemoveAll(b.node.DataDir); err != nil {
					return err
				}
			}
			t, err := b.start(ctx)
			if err != nil {
				return err
			}
			cpu, err := cpuTime(b.grid.PID())
			if err != nil {
				return err
			}
			took, used = append(took, t), append(used, cpu)
			if err := settle(ctx, b.grid.PID(), os.Getpid()); err != nil {
				return err
			}
		}
		b.add(test.what+"; CPU", "", fmt.Sprintf("%s, %s", inMS(median(took)), inMS(median(used))), fmt.Sprintf("median of %d", starts))
	}
	m, err := residentMemory(b.grid.PID())
	if err != nil {
		return err
	}
	b.add("resident (anonymous) memory after the start", "", m.String(), "")
	return nil
}

// start starts the server, and returns the time until it was ready and had answered a LIST with the view that is
// expected.
func (b *bench) start(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	begin := time.Now()
	var err error
	if b.grid, err = b.node.RunGrid(ctx, "grid-apiserver-"+b.node.Name, b.node.GridArgs()...); err != nil {
		return 0, err
	}
	for !b.ready(ctx) {
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("it is not ready: %w", ctx.Err())
		case <-b.grid.Done():
			return 0, fmt.Errorf("it has ended: %w", b.grid.ExitError())
		case <-time.After(startPoll):
		}
	}
	view, err := b.view()
	if err != nil {
		return 0, err
	}
	list, err := view.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	took := time.Since(begin)
	if err != nil {
		return 0, err
	}
	return took, checkView(list.Items, b.unit)
}

// ready asks /readyz. The kubeconfig is written before the server listens.
func (b *bench) ready(ctx context.Context) bool {
	config, err := b.node.LocalConfig()
	if err != nil {
		return false
	}
	code, _, err := lab.Probe(ctx, config, "/readyz")
	return err == nil && code == http.StatusOK
}

func (b *bench) view() (kubernetes.Interface, error) {
	config, err := b.node.LocalConfig()
	if err != nil {
		return nil, err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	return kubernetes.NewForConfig(config)
}
