// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

const subsystem = "grid_apiserver"

var (
	malformedServices = metrics.NewGauge(&metrics.GaugeOpts{
		Subsystem: subsystem, Name: "malformed_topology_services",
		Help:           "Services that are not filtered because their topology annotations are malformed.",
		StabilityLevel: metrics.ALPHA,
	})
	viewChanges = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "view_changes_total",
		Help:           "Changes of the node's view, by resource.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"resource"})
	upstreamErrors = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "upstream_watch_errors_total",
		Help:           "Lists and watches of upstream that failed, by resource.",
		StabilityLevel: metrics.ALPHA,
	}, []string{"resource"})

	registerOnce sync.Once
)

// RegisterMetrics makes the metrics of this package part of /metrics. It may be
// called more than once.
func RegisterMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(malformedServices, viewChanges, upstreamErrors)
	})
}
