// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Command grid-apiserver is the local API endpoint of an edge node.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/grid-apiserver/grid-apiserver/cmd/grid-apiserver/app"
)

func main() {
	ctx := genericapiserver.SetupSignalContext()
	os.Exit(cli.Run(app.NewCommand(ctx)))
}
