// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Waiting returns why a resource has not been seen yet, nil if it has been.
func (f *Feed) Waiting(gr schema.GroupResource) error {
	synced := f.cfg.View.Synced()
	var done bool
	switch gr {
	case Services:
		done = synced.Services
	case EndpointSlices:
		done = synced.EndpointSlices
	case Endpoints:
		done = synced.Endpoints
	case Nodes:
		done = synced.OwnNode
	case Namespaces:
		done = isClosed(f.cfg.Namespaces.Filled())
	case ServiceCIDRs:
		done = isClosed(f.cfg.ServiceCIDRs.Filled())
	}
	s := f.sources[gr]
	switch {
	case done || s.Absent():
		return nil
	case s.Err() != nil:
		return fmt.Errorf("%s have not been read from upstream: %w", gr.Resource, s.Err())
	case gr == Nodes:
		return fmt.Errorf("upstream has no Node %q, of which this server is to show the view", f.cfg.NodeName)
	}
	return fmt.Errorf("%s have not been read from upstream yet", gr.Resource)
}

// WaitingForDomains returns why the nodes of the own unit are not known yet.
func (f *Feed) WaitingForDomains() error {
	if f.cfg.View.Synced().Domains {
		return nil
	}
	if err := f.cfg.Domains.Err(); err != nil {
		return fmt.Errorf("the nodes that share labels with this one have not been read from upstream: %w", err)
	}
	return fmt.Errorf("the nodes that share labels with this one have not been read from upstream yet")
}

// WaitingForKubernetes returns why the annotations of default/kubernetes are
// not known yet.
func (f *Feed) WaitingForKubernetes() error {
	if f.cfg.View.Synced().LocalEndpoint {
		return nil
	}
	if err := f.kubernetes.Err(); err != nil {
		return fmt.Errorf("endpoints default/kubernetes have not been read from upstream: %w", err)
	}
	return fmt.Errorf("endpoints default/kubernetes have not been read from upstream yet")
}
