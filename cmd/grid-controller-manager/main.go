// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command grid-controller-manager runs the controllers of grid-apiserver against any cluster.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/grid-apiserver/grid-apiserver/cmd/grid-controller-manager/app"
)

func main() {
	ctx := genericapiserver.SetupSignalContext()
	os.Exit(cli.Run(app.NewCommand(ctx)))
}
