// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

func TestStreamsLogs(t *testing.T) {
	n, k := setUpStreams(t)
	names := 0
	eachWay(t, n, false, func(t *testing.T, way streamWay) {
		names++
		name := "logs-" + strconv.Itoa(names)
		pod := runPod(t, k, name, outputLines...)
		ctx := streamContext(t)
		follow := way.command(ctx, "logs", "-f", name)
		lines := startLines(t, follow)
		// The first line comes when kubectl has connected; the others each on its own, or something waits for more.
		must(t, pod.Input("line 0\n"))
		expectLine(t, lines, streamTime, "got line 0")
		var slowest time.Duration
		for i := range 10 {
			start := time.Now()
			must(t, pod.Input(fmt.Sprintf("line %d\n", i+1)))
			expectLine(t, lines, time.Second, fmt.Sprintf("got line %d", i+1))
			slowest = max(slowest, time.Since(start))
		}
		t.Logf("a line took at most %v from the pod's input to kubectl's output", slowest)

		for _, test := range []struct{ args, want string }{
			{"--tail=2", "got line 9\ngot line 10\n"},
			{"--tail=0", ""},
			{"--tail=-1", "got line 0\ngot line 1\ngot line 2\ngot line 3\ngot line 4\ngot line 5\ngot line 6\ngot line 7\ngot line 8\ngot line 9\ngot line 10\n"},
		} {
			if stdout, stderr, code := run(t, way.command(ctx, "logs", test.args, name), nil); code != 0 || stdout != test.want {
				t.Errorf("logs %s: exit code %d, %q, stderr %q", test.args, code, stdout, stderr)
			}
		}

		must(t, pod.Input("quit\n"))
		for line := range lines {
			t.Errorf("line %q", line)
		}
		if err := follow.Wait(); err != nil {
			t.Errorf("logs -f did not end well: %v", err)
		}
	})
}
