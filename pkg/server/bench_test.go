// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The benchmarks run everything in one process: the upstream, the server, and
// the clients, which speak TLS with the local certificate as kube-proxy does but
// read no more of an event than they need. docs/performance.md has the results.

// benchSize is a cluster: nodes in ten units, Services of one slice each, four
// of five closed over their unit, and the number of endpoints in a slice.
type benchSize struct{ nodes, services, endpoints int }

var (
	small = benchSize{100, 1_000, 10}
	large = benchSize{500, 5_000, 20}
)

const (
	benchUnits = 10
	// initialEvents asks for a WatchList.
	initialEvents = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
)

func (s benchSize) String() string { return fmt.Sprintf("%dx%dx%d", s.nodes, s.services, s.endpoints) }

// closed is the number of slices that change with the unit of the own node.
func (s benchSize) closed() int { return s.services / 5 * 4 }

// benchNode is node i of the cluster, counted from 0; node 0 is the own one.
func benchNode(i, unit int) *corev1.Node {
	return node(fmt.Sprint("n", i+1), fmt.Sprint("unit-", unit%benchUnits))
}

// slice returns the slice of service i; its endpoints are on the nodes i, i+1
// and so on. They are ready at even revisions.
func (s benchSize) slice(i, revision int) *discoveryv1.EndpointSlice {
	owner := fmt.Sprintf("service-%04d", i)
	var nodes []string
	for k := range s.endpoints {
		nodes = append(nodes, fmt.Sprint("n", (i+k)%s.nodes+1))
	}
	sl := slice(owner+"-abcde", owner, nodes...)
	sl.Labels["endpointslice.kubernetes.io/managed-by"] = "endpointslice-controller.k8s.io"
	sl.GenerateName = owner + "-"
	name, port, protocol := "http", int32(8080), corev1.ProtocolTCP
	sl.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}}
	for k := range sl.Endpoints {
		ready, terminating := revision%2 == 0, false
		sl.Endpoints[k].Conditions = discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready, Terminating: &terminating}
		sl.Endpoints[k].TargetRef = &corev1.ObjectReference{
			Kind: "Pod", Namespace: sl.Namespace, Name: fmt.Sprintf("%s-6d4cf56db6-%05d", owner, k),
			UID: types.UID(fmt.Sprintf("7f0fe7a2-5b4e-4d4b-9d8c-%06d%06d", i, k)),
		}
	}
	return sl
}

func (s benchSize) objects() []object {
	var all []object
	for i := range s.nodes {
		all = append(all, benchNode(i, i))
	}
	for i := range s.services {
		keys := zoneKeys
		if i%5 == 4 {
			keys = noPolicy
		}
		all = append(all, service(fmt.Sprintf("service-%04d", i), keys), s.slice(i, 0))
	}
	return all
}

var encodings = []struct{ name, accept, watch string }{
	{"json", asJSON, asJSON},
	{"protobuf", asProtobuf, asProtobuf + ";stream=watch"},
}

// BenchmarkList measures a LIST of all slices, compressed as client-go asks for
// it, and plain.
func BenchmarkList(b *testing.B) {
	for _, size := range []benchSize{small, large} {
		g := readyGrid(b, startUpstream(b, size.objects()...))
		for _, encoding := range encodings {
			for _, compression := range []string{"gzip", "identity"} {
				b.Run(fmt.Sprintf("%s/%s/%s", encoding.name, compression, size), func(b *testing.B) {
					measureReads(b, g, slicesPath, encoding.accept, compression, func(r io.Reader) (int64, error) {
						return io.Copy(io.Discard, r)
					})
				})
			}
		}
		g.stop(b)
	}
}

// BenchmarkWatchList measures a watch with initial events, from the request to
// the bookmark that ends them.
func BenchmarkWatchList(b *testing.B) {
	for _, size := range []benchSize{small, large} {
		g := readyGrid(b, startUpstream(b, size.objects()...))
		for _, encoding := range encodings {
			b.Run(fmt.Sprintf("%s/%s", encoding.name, size), func(b *testing.B) {
				measureReads(b, g, slicesPath+"?"+initialEvents, encoding.watch, "identity", func(r io.Reader) (int64, error) {
					next, total := frames(r, encoding.name), int64(0)
					for {
						frame, err := next()
						total += int64(len(frame))
						if err != nil || bytes.Contains(frame, []byte(metav1.InitialEventsAnnotationKey)) {
							return total, err
						}
					}
				})
			})
		}
		g.stop(b)
	}
}

// measureReads repeats one request; read consumes what is to be measured of the
// answer, and returns its size.
func measureReads(b *testing.B, g *grid, path, accept, compression string, read func(io.Reader) (int64, error)) {
	client := newHTTPClient(b, g.local)
	var took []time.Duration
	var size int64
	once := func() {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+g.address+path, nil)
		if err != nil {
			b.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		request.Header.Set("Accept-Encoding", compression)
		start := time.Now()
		response, err := client.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		defer response.Body.Close()
		size, err = read(response.Body)
		took = append(took, time.Since(start))
		if err != nil || response.StatusCode != http.StatusOK {
			b.Fatalf("%s after %d bytes: %v", response.Status, size, err)
		}
	}
	once() // connects
	took = nil
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(size), "B/answer")
}

// BenchmarkFanOut measures one changed slice, from the write upstream until the
// last of all clients has it.
func BenchmarkFanOut(b *testing.B) {
	for _, encoding := range encodings {
		for _, clients := range []int{1, 50, 200} {
			b.Run(fmt.Sprintf("%s/%d-clients", encoding.name, clients), func(b *testing.B) {
				u := startUpstream(b, small.objects()...)
				measureEvents(b, readyGrid(b, u), encoding.name, encoding.watch, clients, 1, func(i int) {
					u.put(b, small.slice(0, i))
				})
			})
		}
	}
}

// BenchmarkFlip measures a change of the own node's unit, from the write upstream
// until the last of all clients has all the slices that it changes.
func BenchmarkFlip(b *testing.B) {
	for _, c := range []struct {
		size    benchSize
		clients int
	}{{small, 1}, {small, 50}, {large, 1}, {large, 5}} {
		for _, encoding := range encodings {
			b.Run(fmt.Sprintf("%d-slices/%s/%d-clients", c.size.closed(), encoding.name, c.clients), func(b *testing.B) {
				u := startUpstream(b, c.size.objects()...)
				measureEvents(b, readyGrid(b, u), encoding.name, encoding.watch, c.clients, c.size.closed(), func(i int) {
					u.put(b, benchNode(0, i))
				})
			})
		}
	}
}

// measureEvents repeats what sends each client a number of events. It also tells
// how many watches the server closed because it fell behind with them: their
// clients go on from where they were.
func measureEvents(b *testing.B, g *grid, encoding, accept string, clients, events int, change func(i int)) {
	arrived := make(chan error, clients)
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	list := decode[metav1.PartialObjectMetadataList](b, g.get(b, g.local, slicesPath+"?limit=1", asJSON))
	for range clients {
		f := &follower{client: newHTTPClient(b, g.local), url: "https://" + g.address + slicesPath + "?watch=1&resourceVersion=", encoding: encoding, accept: accept, events: events, arrived: arrived}
		running.Go(func() { f.run(ctx, list.ResourceVersion) })
	}
	i := 0
	once := func() {
		i++
		change(i)
		timeout := time.NewTimer(patience)
		defer timeout.Stop()
		for range clients {
			select {
			case err := <-arrived:
				if err != nil {
					b.Fatal(err)
				}
			case <-timeout.C:
				b.Fatalf("change %d has not reached all clients within %s", i, patience)
			}
		}
	}
	once() // until here all watches are open
	before := terminatedWatchers(b)
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
	b.ReportMetric((terminatedWatchers(b)-before)/float64(b.N), "closed-watches/op")
}
