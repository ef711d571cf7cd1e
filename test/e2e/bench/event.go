// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

const (
	flips         = 20
	burstWatchers = 200
	burstWrites   = 200
	burstRounds   = 3
	eventTimeout  = time.Minute
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
		b.add(fmt.Sprintf("label flip of the own node, %d changed slices at %d clients (%s), CPU", closedCount, test.clients, short(test.contentType)), "",
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

// measureBursts writes to many slices, one after the other, while many clients watch them.
func (b *bench) measureBursts(ctx context.Context) error {
	upstream, grid, err := b.configs()
	if err != nil {
		return err
	}
	var p99 [2][]time.Duration
	for range burstRounds {
		for i, config := range []*rest.Config{upstream, grid} {
			late, err := b.burst(ctx, config)
			if err != nil {
				return err
			}
			p99[i] = append(p99[i], percentile(late, 99))
			if err := settle(ctx, b.grid.PID(), os.Getpid()); err != nil {
				return err
			}
		}
	}
	b.add(fmt.Sprintf("burst of %d writes to %d clients that watch (JSON), p99 from the write's return", burstWrites, burstWatchers),
		inMS(median(p99[0])), inMS(median(p99[1])), fmt.Sprintf("median of %d", burstRounds))
	return nil
}

// burst returns how long after the return of the write each client had each event.
func (b *bench) burst(ctx context.Context, config *rest.Config) ([]time.Duration, error) {
	arrivals := make([][burstWrites]time.Time, 0, burstWatchers)
	var all sync.WaitGroup
	all.Add(burstWatchers * burstWrites)
	stop, err := followers(ctx, config, runtime.ContentTypeJSON, burstWatchers, func() func([]byte) {
		arrivals = append(arrivals, [burstWrites]time.Time{})
		mine := &arrivals[len(arrivals)-1]
		return func(event []byte) {
			i := burstIndex(event)
			if i >= 0 && i < burstWrites && mine[i].IsZero() {
				mine[i] = time.Now()
				all.Done()
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if err := settle(ctx, b.grid.PID(), os.Getpid()); err != nil {
		return nil, err
	}
	client := b.lab.Cloud.Kubernetes.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	var returned [burstWrites]time.Time
	for i := range burstWrites {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"burst":"%d-%d"}}}`, time.Now().UnixNano(), i)
		if _, err := client.Patch(ctx, serviceName(i)+"-1", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return nil, err
		}
		returned[i] = time.Now()
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(eventTimeout):
		return nil, fmt.Errorf("not all events within %v", eventTimeout)
	}
	if err := stop(); err != nil {
		return nil, err
	}
	var late []time.Duration
	for i := range arrivals {
		for k := range arrivals[i] {
			late = append(late, arrivals[i][k].Sub(returned[k]))
		}
	}
	return late, nil
}

// burstIndex returns which write an event comes from, -1 if none.
func burstIndex(event []byte) int {
	_, rest, _ := bytes.Cut(event, []byte(`"name":"service-`))
	if len(rest) < 4 {
		return -1
	}
	i, err := strconv.Atoi(string(rest[:4]))
	if err != nil {
		return -1
	}
	return i
}

// followers starts clients that watch slices from now on. handler is called once for each, before it starts. The
// returned function ends them, and returns what went wrong.
func followers(ctx context.Context, config *rest.Config, contentType string, n int, handler func() func(event []byte)) (stop func() error, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := errors.New("ended")
	var running sync.WaitGroup
	stop = func() error {
		cancel(ended)
		running.Wait()
		if err := context.Cause(ctx); !errors.Is(err, ended) {
			return err
		}
		return nil
	}
	for range n {
		c, err := newClient(config)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		revision, err := c.listRevision(ctx)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		fn := handler()
		running.Go(func() {
			defer c.CloseIdleConnections()
			if err := c.follow(ctx, revision, contentType, fn); err != nil {
				cancel(err)
			}
		})
	}
	return stop, nil
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
