// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekube

import (
	"flag"
	"io"

	"k8s.io/klog/v2"
)

// DiscardLogs has nothing of what is logged shown.
func DiscardLogs() {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	if err := flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"}); err != nil {
		panic(err) // klog has lost a flag
	}
	klog.SetOutput(io.Discard)
}
