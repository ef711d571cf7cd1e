// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// renewInterval is how often the wall clock is looked at. Expiry alone would allow
// a day; a minute also heals soon after the clock of a board without battery has
// been set by years. A look costs a comparison, no I/O.
const renewInterval = time.Minute

// kubeconfigInterval is how often the kubeconfig is read, to renew the client
// certificate in it years before its expiry.
const kubeconfigInterval = 24 * time.Hour

// Run renews the serving certificate, and the client certificate in the kubeconfig,
// before they expire. It returns when ctx is done.
func (i *Identity) Run(ctx context.Context) {
	ticker := i.clock.NewTicker(renewInterval)
	defer ticker.Stop()
	var kubeconfigDue time.Time
	for {
		now := i.clock.Now()
		i.renewServingIfDue(ctx, now)
		if !now.Before(kubeconfigDue) {
			i.renewKubeconfig(ctx)
			kubeconfigDue = now.Add(kubeconfigInterval)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (i *Identity) renewServingIfDue(ctx context.Context, now time.Time) {
	current := i.serving.current.Load()
	// A certificate that lasts as long as its CA cannot be renewed any further.
	if current.remaining(now) > servingRenewBefore || !current.cert.NotAfter.Before(i.servingCA.cert.NotAfter) {
		return
	}
	if err := i.renewServing(ctx, now); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot renew the serving certificate")
	}
}

func (i *Identity) renewKubeconfig(ctx context.Context) {
	i.lock.Lock()
	defer i.lock.Unlock()
	if i.port == 0 {
		return // not written yet
	}
	if err := i.writeKubeconfigLocked(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot renew the client certificate of the local identity")
	}
}
