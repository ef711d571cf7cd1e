// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

const (
	gridAPIServer = "grid-apiserver"
	kubeAPIServer = "kube-apiserver"
)

var through = flag.String("through", gridAPIServer, "what the second side is: grid-apiserver, or kube-apiserver to check the test itself")

var (
	// cluster is the one lab of this test process.
	cluster *lab.Lab
	// sides are the two ways of a request: straight to kube-apiserver, and through the grid-apiserver of ownNode.
	sides [2]*side
)

// ownNode is the name of the node whose grid-apiserver is compared, and otherNode is another one.
const ownNode, otherNode = "node0", "node1"

func TestMain(m *testing.M) {
	flag.Parse()
	// Most of the time of a test is spent waiting, for the end of a watch above all.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	if *through != gridAPIServer && *through != kubeAPIServer {
		fmt.Fprintf(os.Stderr, "-through: %q is neither %s nor %s\n", *through, gridAPIServer, kubeAPIServer)
		os.Exit(2)
	}
	os.Exit(lab.RunTests("likeness", start, func() int {
		code := m.Run()
		for _, reason := range unneeded() {
			fmt.Fprintf(os.Stderr, "this allowed difference no longer occurs: %s\n", reason)
			code = 1
		}
		return code
	}))
}

func start(ctx context.Context, report lab.Report) (_ []*lab.Lab, err error) {
	if cluster, err = lab.Start(ctx, lab.Options{Report: report}); err != nil {
		return nil, err
	}
	return []*lab.Lab{cluster}, startSides(ctx)
}

// startSides starts the grid-apiserver, makes the two sides and the objects that all cases share.
func startSides(ctx context.Context) error {
	node := cluster.Nodes[0]
	direct, err := node.Config(cluster.Cloud.AdminKubeconfig)
	if err != nil {
		return err
	}
	if sides[0], err = newSide("a", kubeAPIServer, node.Host, direct); err != nil {
		return err
	}
	second := direct
	if *through == gridAPIServer {
		// Building it also grants it its rights, which its flags refer to.
		if _, err := cluster.GridProgram(ctx); err != nil {
			return err
		}
		if err := node.StartGrid(ctx); err != nil {
			return err
		}
		if second, err = node.LocalConfig(); err != nil {
			return err
		}
	}
	if sides[1], err = newSide("b", *through, node.Host, second); err != nil {
		return err
	}
	return createShared(ctx)
}
