// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"flag"
	"io"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	// Outages are what is tested here: their logs would hide the failures.
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	if err := flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"}); err != nil {
		panic(err)
	}
	klog.SetOutput(io.Discard)
	goleak.VerifyTestMain(m, processGoroutines()...)
}

// processGoroutines are those of the libraries that do not belong to a server.
func processGoroutines() []goleak.Option {
	return []goleak.Option{
		// The health check "log" of k8s.io/apiserver.
		goleak.IgnoreAnyFunction("k8s.io/apiserver/pkg/server/healthz.(*log).Check.func1.1"),
		goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/util/wait.Forever"),
		// A read at a resourceVersion leaves a timer of 3 s behind, also when
		// it did not wait.
		goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"),
	}
}
