// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"sync"
	"testing"
)

// TestCapacity has more pods than fit into an Endpoints object.
func TestCapacity(t *testing.T) {
	const capacity = 1000
	name := func(i int) string { return fmt.Sprintf("p%d", i) }
	address := func(i int) string { return fmt.Sprintf("10.2.%d.%d", i/250, i%250+1) }
	runScenarios(t, []scenario{{"of Endpoints", []step{
		{name: "one pod more than fits", do: func(w *world) {
			w.inParallel(capacity+1, func(i int) { w.pods(pod{name: name(i), ips: address(i), ready: true}) })
			w.create(webService)
		}},
		{name: "as many as fit", do: func(w *world) { w.delete("Pod", name(17)) }},
		{name: "one of them unready, and another one more", do: func(w *world) {
			w.setStatus(pod{name: name(3), ips: address(3)})
			w.pods(pod{name: "last", ips: "10.2.200.1", ready: true})
		}},
		{name: "the Service is deleted", do: func(w *world) { w.delete("Service", "web") }},
	}}})
}

// inParallel calls do for 0 to n-1, by eight goroutines.
func (w *world) inParallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < n; i += 8 {
				do(i)
			}
		})
	}
	wg.Wait()
}
