// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// refusing is an upstream that is not there.
type refusing struct{}

func (refusing) List(context.Context, metav1.ListOptions) (*corev1.ServiceList, error) {
	return nil, syscall.ECONNREFUSED
}

func (refusing) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, syscall.ECONNREFUSED
}

func TestFollowingEndsAtOnceWhileUpstreamIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &source{resource: "services"}
		ended := make(chan time.Time)
		go func() {
			follow(ctx, s, refusing{}, metav1.ListOptions{}, &corev1.Service{}, receiver[*corev1.Service]{})
			ended <- time.Now()
		}()
		// Long enough for the pauses to be at their longest.
		time.Sleep(5 * time.Minute) //nolint:forbidigo // the clock of synctest
		if s.Err() == nil {
			t.Error("no error was noted")
		}
		cancelled := time.Now()
		cancel()
		if took := (<-ended).Sub(cancelled); took > 0 {
			t.Errorf("following went on for %v", took)
		}
	})
}
