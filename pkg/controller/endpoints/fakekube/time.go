// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekube

import (
	"testing/synctest"
	"time"
)

// Settle lets virtual time pass until every retry has been made and nothing is
// under way. It is for tests in a bubble of testing/synctest.
func Settle() {
	Pass(5 * time.Minute)
}

// Pass lets virtual time pass.
func Pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
