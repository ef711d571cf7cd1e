// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

var (
	against = flag.String("against", string(lab.Standalone), "what is compared with the real cluster: standalone, or kube-apiserver to check the test itself")
	// kube-controller-manager waits a second before it tries again what failed because of a stale cache.
	agreement = flag.Duration("agreement", 20*time.Second, "how long both sides may take to agree after a change")
)

// reference and candidate are the two sides of the comparison.
var reference, candidate *side

func TestMain(m *testing.M) {
	flag.Parse()
	switch lab.Kind(*against) {
	case lab.Standalone, lab.KubeAPIServer:
	default:
		fmt.Fprintf(os.Stderr, "-against: %q is neither %s nor %s\n", *against, lab.Standalone, lab.KubeAPIServer)
		os.Exit(2)
	}
	os.Exit(lab.RunTests("differential", startLabs, m.Run))
}

// startLabs starts both sides at the same time.
func startLabs(ctx context.Context, report lab.Report) ([]*lab.Lab, error) {
	kinds := [2]lab.Kind{lab.KubeAPIServer, lab.Kind(*against)}
	var labs [2]*lab.Lab
	var sides [2]*side
	var errs [2]error
	var wg sync.WaitGroup
	for i, kind := range kinds {
		wg.Go(func() {
			labs[i], errs[i] = lab.Start(ctx, lab.Options{
				Upstream:          kind,
				DualStack:         true,
				ControllerManager: true,
				// Those that make or delete what is compared.
				Controllers: []string{
					"endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller",
					"garbage-collector-controller", "namespace-controller",
				},
				// Standalone has no admission plugins. These change Pods and Nodes.
				DisableAdmission: []string{"DefaultTolerationSeconds", "PodTopologyLabels", "Priority", "TaintNodesByCondition"},
				NoNodes:          true,
				Report:           report,
			})
			if errs[i] == nil {
				sides[i], errs[i] = newSide(ctx, labs[i])
			}
		})
	}
	wg.Wait()
	reference, candidate = sides[0], sides[1]
	started := slices.DeleteFunc(labs[:], func(l *lab.Lab) bool { return l == nil })
	return started, errors.Join(errs[:]...)
}
