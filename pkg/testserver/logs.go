// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// DiscardLogs discards what is logged for the whole process. A server logs to
// Options.Logger, but the libraries that it is made of also log to klog, some
// lines at each start and stop, which then is where klog writes to: by default
// stderr. For TestMain; it affects klog in all of the program, for good.
func DiscardLogs() { klog.SetLogger(logr.Discard()) }
