// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"errors"
	"net/netip"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/service"
)

// Defaults of Config, those of kube-apiserver and of most of its installers.
var (
	DefaultServiceClusterIPRanges = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:10:96::/112")}
	DefaultServiceNodePortRange   = service.DefaultNodePortRange
)

// DefaultEventTTL is how long an Event is kept, as in kube-apiserver.
const DefaultEventTTL = time.Hour

// Config says how the server is reached and what it offers.
type Config struct {
	// SecureServing holds the open listener. The certificate is one of the data directory.
	SecureServing *genericapiserver.SecureServingInfo
	// DataDir is the directory for the certificates and the token of the
	// administrator. Nobody else may use it while the server runs.
	DataDir string
	// ServiceClusterIPRanges are one or two ranges, of one family each, the
	// primary one first. Empty: DefaultServiceClusterIPRanges.
	ServiceClusterIPRanges []netip.Prefix
	// ServiceNodePortRange is where node ports are allocated from. Zero:
	// DefaultServiceNodePortRange.
	ServiceNodePortRange utilnet.PortRange
	// EventTTL is how long an Event is kept. 0: DefaultEventTTL.
	EventTTL time.Duration
	// ResyncPeriod is how often the controllers look at every object again though
	// nothing has changed. 0: never, as nothing is lost on the way to them.
	ResyncPeriod time.Duration
	// CustomResources serves CustomResourceDefinitions and what they define.
	CustomResources bool
	// WithoutControllers leaves Services, ServiceGrids and garbage to the
	// caller: only namespaces are still emptied when they are deleted.
	WithoutControllers bool
}

// CompletedConfig is a Config from which a Server can be made. It cannot be made
// but by Complete.
type CompletedConfig struct{ *completedConfig }

type completedConfig struct {
	Config
	err error
}

// Complete fills in what is not set. What is missing or wrong is reported by New.
func (c *Config) Complete() CompletedConfig {
	completed := &completedConfig{Config: *c}
	switch {
	case c.DataDir == "":
		completed.err = errors.New("no data directory is configured")
	case c.SecureServing == nil || c.SecureServing.Listener == nil:
		completed.err = errors.New("no listener is configured")
	default:
		serving := *c.SecureServing
		completed.SecureServing = &serving
	}
	if len(completed.ServiceClusterIPRanges) == 0 {
		completed.ServiceClusterIPRanges = DefaultServiceClusterIPRanges
	}
	if completed.ServiceNodePortRange.Size == 0 {
		completed.ServiceNodePortRange = DefaultServiceNodePortRange
	}
	if completed.EventTTL == 0 {
		completed.EventTTL = DefaultEventTTL
	}
	if err := ValidateServiceClusterIPRanges(completed.ServiceClusterIPRanges); err != nil && completed.err == nil {
		completed.err = err
	}
	return CompletedConfig{completed}
}

// ValidateServiceClusterIPRanges checks what ServiceClusterIPRanges must be.
func ValidateServiceClusterIPRanges(ranges []netip.Prefix) error {
	return service.ValidateClusterIPRanges(ranges)
}
