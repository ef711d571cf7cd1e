// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

// BenchmarkStart measures the time from the call to the server that is ready,
// without its end, and what the server holds then.
func BenchmarkStart(b *testing.B) {
	for _, scenario := range []struct {
		name    string
		options testserver.Options
	}{
		{"plain", testserver.Options{}},
		{"controllers=none", testserver.Options{WithoutControllers: true}},
		{"view", testserver.Options{Node: newNode("n1", map[string]string{"zone1": "a"})}},
		{"customResources", testserver.Options{CustomResources: true}},
	} {
		b.Run(scenario.name, func(b *testing.B) {
			var took []time.Duration
			var held int64
			for b.Loop() {
				b.StopTimer()
				before := heap()
				b.StartTimer()
				begin := time.Now()
				server, err := testserver.Run(b.Context(), scenario.options)
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begin))
				b.StopTimer()
				held += heap() - before
				if err := server.Stop(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
			b.ReportMetric(float64(held)/float64(len(took))/(1<<20), "heap-MB/server")
		})
	}
}

// heap is what is reachable.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
