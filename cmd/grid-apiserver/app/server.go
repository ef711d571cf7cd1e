// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app is the command line of grid-apiserver.
package app

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/cmd/grid-apiserver/app/options"
)

// NewCommand returns the command. It runs until ctx ends.
func NewCommand(ctx context.Context) *cobra.Command {
	o := options.New()
	cmd := &cobra.Command{
		Use:   "grid-apiserver",
		Short: "The local API endpoint of an edge node",
		Long: `grid-apiserver serves Services, Endpoints and EndpointSlices as the node it runs on
should see them: a Service with the annotation topologyKeys reaches only the endpoints
in the node's own node unit. Every other request goes to the upstream API server, or
with --standalone to one in the same process that keeps everything in memory.`,
		Version: version.Get().GitVersion,
		// An error of the server is not one of the usage.
		SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q: only flags are accepted", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(o.Logs, nil); err != nil {
				return fmt.Errorf("--logging-format and the other log flags: %w", err)
			}
			cliflag.PrintFlags(cmd.Flags())
			return run(cmd.Context(), o)
		},
	}
	cmd.SetContext(ctx)

	sections := o.Flags()
	// Cobra answers it; a flag that it adds by itself is in no section.
	sections.FlagSet("global").Bool("version", false, "Print the version and exit.")
	globalflag.AddGlobalFlags(sections.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, section := range sections.FlagSets {
		cmd.Flags().AddFlagSet(section)
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, sections, columns)
	return cmd
}

func run(ctx context.Context, o *options.Options) error {
	completed, err := o.Complete()
	if err != nil {
		return err
	}
	if err := completed.Validate(); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting grid-apiserver", "version", version.Get().GitVersion, "node", completed.NodeName)
	if completed.Standalone.Enabled {
		return runStandalone(ctx, completed)
	}
	config, err := completed.Config(ctx)
	if err != nil {
		return err
	}
	server, err := config.Complete().New(ctx)
	if err != nil {
		return err
	}
	return server.PrepareRun().Run(ctx)
}
