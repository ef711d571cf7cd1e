// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

const (
	listRounds    = 100
	getRounds     = 2_000
	getClients    = 8
	getThroughput = 3 * time.Second
	getTurns      = 4
)

// configs are the connections to kube-apiserver and to grid-apiserver, from their own hosts.
func (b *bench) configs() (upstream, grid *rest.Config, err error) {
	if upstream, err = b.lab.Cloud.Config(b.lab.Cloud.AdminKubeconfig); err != nil {
		return nil, nil, err
	}
	grid, err = b.node.LocalConfig()
	return upstream, grid, err
}

// measureLists lists all slices, in turns.
func (b *bench) measureLists(ctx context.Context) error {
	upstream, grid, err := b.configs()
	if err != nil {
		return err
	}
	for _, test := range []struct{ what, query, contentType string }{
		{"LIST slices p50, JSON", "", runtime.ContentTypeJSON},
		{"LIST slices p50, protobuf", "", runtime.ContentTypeProtobuf},
		{"LIST slices at resourceVersion 0 p50, JSON", "?resourceVersion=0", runtime.ContentTypeJSON},
		{"LIST slices at resourceVersion 0 p50, protobuf", "?resourceVersion=0", runtime.ContentTypeProtobuf},
	} {
		times, sizes, err := inTurns(ctx, upstream, grid, listRounds, slicesPath+test.query, test.contentType)
		if err != nil {
			return err
		}
		took := [2]time.Duration{median(times[0]), median(times[1])}
		b.add(test.what, inMS(took[0]), inMS(took[1]), fmt.Sprintf("ratio %s; gzip, %d and %d kB", ratio(took[1], took[0]), sizes[0]/1000, sizes[1]/1000))
	}
	return nil
}

// inTurns repeats a GET on two connections, in turns, and returns the times and the size of the answer on each.
func inTurns(ctx context.Context, first, second *rest.Config, rounds int, path, contentType string) (took [2][]time.Duration, sizes [2]int64, err error) {
	var clients [2]*client
	for i, config := range []*rest.Config{first, second} {
		if clients[i], err = newClient(config); err != nil {
			return took, sizes, err
		}
		defer clients[i].CloseIdleConnections()
	}
	for round := -1; round < rounds; round++ { // the first one connects
		for i, c := range clients {
			t, size, err := c.get(ctx, path, contentType)
			if err != nil {
				return took, sizes, err
			}
			sizes[i] = size
			if round >= 0 {
				took[i] = append(took[i], t)
			}
		}
	}
	return took, sizes, nil
}

// measureGets reads one small object with a bearer token, from kube-apiserver and through grid-apiserver.
func (b *bench) measureGets(ctx context.Context) error {
	upstream, _, err := b.configs()
	if err != nil {
		return err
	}
	upstream = rest.AnonymousClientConfig(upstream)
	upstream.BearerToken = lab.AdminToken
	proxied, err := b.node.TokenConfig(lab.AdminToken)
	if err != nil {
		return err
	}
	took, _, err := inTurns(ctx, upstream, proxied, getRounds, plainObject, runtime.ContentTypeJSON)
	if err != nil {
		return err
	}
	for _, p := range []int{50, 99} {
		direct, through := percentile(took[0], p), percentile(took[1], p)
		b.add(fmt.Sprintf("GET of another resource p%d", p), inMS(direct), inMS(through),
			fmt.Sprintf("proxied; adds %.2f ms", (through-direct).Seconds()*1000))
	}
	var counts [2]int64
	var used [2]time.Duration
	for range getTurns {
		for i, config := range []*rest.Config{upstream, proxied} {
			before, err := cpuTime(b.grid.PID())
			if err != nil {
				return err
			}
			n, err := throughput(ctx, config)
			if err != nil {
				return err
			}
			after, err := cpuTime(b.grid.PID())
			if err != nil {
				return err
			}
			counts[i], used[i] = counts[i]+n, used[i]+after-before
			if err := settle(ctx, os.Getpid()); err != nil {
				return err
			}
		}
	}
	perSecond := func(n int64) string { return fmt.Sprintf("%.0f/s", float64(n)/(getTurns*getThroughput).Seconds()) }
	b.add(fmt.Sprintf("GETs of another resource, %d clients", getClients), perSecond(counts[0]), perSecond(counts[1]),
		fmt.Sprintf("proxied; %d %%; CPU %.2f ms each", counts[1]*100/counts[0], used[1].Seconds()*1000/float64(counts[1])))
	return nil
}

// throughput returns how many GETs some clients make in getThroughput.
func throughput(ctx context.Context, config *rest.Config) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var count atomic.Int64
	var running sync.WaitGroup
	deadline := time.Now().Add(getThroughput)
	for range getClients {
		running.Go(func() {
			c, err := newClient(config)
			if err != nil {
				cancel(err)
				return
			}
			defer c.CloseIdleConnections()
			for time.Now().Before(deadline) && ctx.Err() == nil {
				if _, _, err := c.get(ctx, plainObject, runtime.ContentTypeJSON); err != nil {
					cancel(err)
					return
				}
				count.Add(1)
			}
		})
	}
	running.Wait()
	return count.Load(), context.Cause(ctx)
}
