// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"testing"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// cluster is the one lab of this test process. Tests run one after the other and each sets up what it needs of
// node units, Services and kube-proxies (see setUp).
var cluster *lab.Lab

func TestMain(m *testing.M) {
	os.Exit(lab.RunTests("lab", func(ctx context.Context, report lab.Report) (_ []*lab.Lab, err error) {
		if cluster, err = lab.Start(ctx, lab.Options{Report: report}); err != nil {
			return nil, err
		}
		return []*lab.Lab{cluster}, nil
	}, m.Run))
}
