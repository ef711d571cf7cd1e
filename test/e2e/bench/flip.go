// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

const (
	flips = 10
	// eventTimeout bounds the way of an event, and of a burst of them.
	eventTimeout = time.Minute
)

// measureFlips moves the node from unit to unit, with one client and with several that watch slices.
func (b *bench) measureFlips(ctx context.Context) error {
	_, grid, err := b.configs()
	if err != nil {
		return err
	}
	for _, test := range []struct {
		clients     int
		contentType string
	}{{1, runtime.ContentTypeProtobuf}, {1, runtime.ContentTypeJSON}, {5, runtime.ContentTypeProtobuf}, {50, runtime.ContentTypeProtobuf}} {
		arrived := make(chan struct{}, test.clients)
		stop, err := followers(ctx, grid, test.contentType, test.clients, func() func([]byte) {
			seen := 0
			return func([]byte) {
				if seen++; seen%closedCount == 0 {
					arrived <- struct{}{}
				}
			}
		})
		if err != nil {
			return err
		}
		took, used, closed, err := b.flip(ctx, test.clients, arrived)
		if err := errors.Join(err, stop()); err != nil {
			return err
		}
		b.add(fmt.Sprintf("label flip of the own node, %d slices, clients: %d (%s); CPU", closedCount, test.clients, short(test.contentType)), "",
			fmt.Sprintf("%s, %s", inMS(median(took)), inMS(used)), fmt.Sprintf("median of %d; p90 %s; watches closed per flip %.1f", flips, inMS(percentile(took, 90)), closed))
	}
	return nil
}

// flip repeats the flip, with pauses, and returns the times from the write's return until all clients have it, the
// mean processor time of the server, and how many watches it closed per flip.
func (b *bench) flip(ctx context.Context, clients int, arrived <-chan struct{}) (took []time.Duration, used time.Duration, closed float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := settle(ctx, b.grid.PID(), os.Getpid()); err != nil {
		return nil, 0, 0, err
	}
	closedBefore, err := b.closedWatches(ctx)
	if err != nil {
		return nil, 0, 0, err
	}
	for range flips {
		before, err := cpuTime(b.grid.PID())
		if err != nil {
			return nil, 0, 0, err
		}
		if err := b.moveToNextUnit(ctx); err != nil {
			return nil, 0, 0, err
		}
		start := time.Now()
		for range clients {
			select {
			case <-arrived:
			case <-time.After(eventTimeout):
				return nil, 0, 0, fmt.Errorf("a flip did not arrive within %v", eventTimeout)
			}
		}
		took = append(took, time.Since(start))
		if err := settle(ctx, b.grid.PID(), os.Getpid()); err != nil {
			return nil, 0, 0, err
		}
		after, err := cpuTime(b.grid.PID())
		if err != nil {
			return nil, 0, 0, err
		}
		used += after - before
	}
	closedAfter, err := b.closedWatches(ctx)
	return took, used / flips, (closedAfter - closedBefore) / flips, err
}

// closedWatches returns how many watches of slices the server has closed because their clients fell behind.
func (b *bench) closedWatches(ctx context.Context) (float64, error) {
	config, err := b.node.TokenConfig(lab.AdminToken)
	if err != nil {
		return 0, err
	}
	code, body, err := lab.Probe(ctx, config, "/metrics")
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("/metrics answers %d: %s", code, body)
	}
	if err != nil {
		return 0, err
	}
	total := 0.0
	lines := bufio.NewScanner(strings.NewReader(body))
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, "apiserver_terminated_watchers_total{") || !strings.Contains(line, "endpointslices") {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, err
		}
		total += value
	}
	return total, nil
}

func short(contentType string) string {
	if contentType == runtime.ContentTypeProtobuf {
		return "protobuf"
	}
	return "JSON"
}
