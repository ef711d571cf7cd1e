// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}
