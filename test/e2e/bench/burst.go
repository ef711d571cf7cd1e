// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

const (
	burstWatchers = 200
	burstWrites   = 200
	burstRounds   = 5
)

// measureBursts writes to many slices, a few at a time, while many clients watch them.
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
	b.add(fmt.Sprintf("burst of %d writes, clients: %d (JSON), p99 from the write's return", burstWrites, burstWatchers),
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
		return nil, errors.Join(err, stop())
	}
	client := b.lab.Cloud.Kubernetes.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault)
	var returned [burstWrites]time.Time
	if err := inParallel(ctx, burstWrites, func(i int) error {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"burst":"%d"}}}`, time.Now().UnixNano())
		_, err := client.Patch(ctx, serviceName(i)+"-1", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		returned[i] = time.Now()
		return err
	}); err != nil {
		return nil, errors.Join(err, stop())
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(eventTimeout):
		return nil, errors.Join(fmt.Errorf("not all events within %v", eventTimeout), stop())
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
