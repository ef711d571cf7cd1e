// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const (
	kindToken  = "token"
	kindAccess = "access"

	resultAllowed     = "allowed"
	resultDenied      = "denied"
	resultUnavailable = "unavailable"
	resultBusy        = "busy"
)

var (
	reviewsTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Namespace:      "grid_apiserver",
		Subsystem:      "auth",
		Name:           "reviews_total",
		Help:           "Reviews that upstream was asked for, by kind (token, access) and result (allowed, denied, unavailable). Those with the result busy were not asked, because too many were under way. Answers from memory are not counted.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"kind", "result"})

	registerOnce sync.Once
)

// Register adds the package's metrics to the registry behind /metrics. It may be
// called more than once.
func Register() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(reviewsTotal)
	})
}
