// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// outageQuiet without a failure is the end of an outage. An upstream that answers
// some reviews and not others writes two lines in this time, however many requests
// there are.
const outageQuiet = 10 * time.Second

// outage tells the operator when upstream stops and starts to answer reviews.
type outage struct {
	kind string

	lock        sync.Mutex
	lasting     bool
	lastFailure time.Time
}

// failed notes a review that upstream did not answer.
func (o *outage) failed(logger klog.Logger, err error) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.lastFailure = time.Now()
	if !o.lasting {
		o.lasting = true
		logger.Error(err, "Upstream cannot be asked for reviews; requests that need one are answered with 503", "review", o.kind)
	}
}

// answered notes a review that upstream answered.
func (o *outage) answered(logger klog.Logger) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.lasting && time.Since(o.lastFailure) >= outageQuiet {
		o.lasting = false
		logger.Info("Upstream answers reviews again", "review", o.kind)
	}
}
