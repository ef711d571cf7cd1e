// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/version"

	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// Config says which node's view is served, and how.
type Config struct {
	// NodeName is the name of the own Node.
	NodeName string
	// Upstream is the connection to the upstream API server, with the server's
	// own credential.
	Upstream *rest.Config
	// DataDir is the directory for what is kept over restarts.
	DataDir string
	// SecureServing holds the open listener. Without a certificate of the
	// operator, one from the data directory is used.
	SecureServing *genericapiserver.SecureServingInfo
	// LocalEndpoint, if not nil, replaces the endpoints of default/kubernetes.
	LocalEndpoint *topology.LocalEndpoint
	// StopGrace is how long connections get when the server stops. 0: as long as
	// they need, within the 5 s that a stop may take; an idle one of HTTP/2 needs a
	// second. Integration tests are in more of a hurry.
	StopGrace time.Duration
}

// CompletedConfig is a Config from which a Server can be made. It cannot be made
// but by Complete.
type CompletedConfig struct{ *completedConfig }

type completedConfig struct {
	Config
	err error
}

// Complete fills in what is not set. What is missing is reported by New.
func (c *Config) Complete() CompletedConfig {
	completed := &completedConfig{Config: *c}
	switch {
	case c.NodeName == "":
		completed.err = errors.New("no node name is configured")
	case c.Upstream == nil:
		completed.err = errors.New("no upstream is configured")
	case c.DataDir == "":
		completed.err = errors.New("no data directory is configured")
	case c.SecureServing == nil || c.SecureServing.Listener == nil:
		completed.err = errors.New("no listener is configured")
	default:
		completed.Upstream = rest.CopyConfig(c.Upstream)
		// The number of this server's own requests is bounded by what it
		// follows; those of its clients have limits of their own.
		completed.Upstream.QPS = -1
		// Upstream warns of the deprecation of Endpoints at every request.
		completed.Upstream.WarningHandlerWithContext = rest.NoWarnings{}
		completed.Upstream.UserAgent = "grid-apiserver/" + version.Get().GitVersion
		serving := *c.SecureServing
		completed.SecureServing = &serving
	}
	return CompletedConfig{completed}
}
