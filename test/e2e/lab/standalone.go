// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"path/filepath"
)

// standaloneNode is the node whose view the standalone process serves beside the upstream. Nothing waits for it.
const standaloneNode = "cloud"

// startStandalone starts grid-apiserver --standalone, built from this checkout.
func (c *Cloud) startStandalone(ctx context.Context, logs string, options Options) error {
	path, err := c.programs.BuildGrid(ctx, c.dir)
	if err != nil {
		return err
	}
	data := filepath.Join(c.dir, "standalone")
	c.AdminKubeconfig = filepath.Join(data, "admin.kubeconfig")
	c.APIServer, err = c.startPath(logs, "standalone", path, "--standalone", "--node-name="+standaloneNode, "--data-dir="+data,
		"--bind-address="+c.Address.String(), "--secure-port="+gridPort, "--standalone-port="+upstreamPort,
		"--service-cluster-ip-range="+serviceCIDRs(options), "-v=2")
	if err != nil {
		return err
	}
	return c.ready(ctx, "grid-apiserver --standalone")
}

func serviceCIDRs(options Options) string {
	if options.DualStack {
		return ServiceCIDR + "," + ServiceCIDR6
	}
	return ServiceCIDR
}
