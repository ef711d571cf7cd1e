// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

func TestMain(m *testing.M) {
	// The server does the same: the check is a full LIST every few minutes.
	gates := map[string]bool{string(features.DetectCacheInconsistency): false}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
