// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app is the command line of grid-controller-manager, and what it runs.
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

	"github.com/grid-apiserver/grid-apiserver/cmd/grid-controller-manager/app/options"
)

// NewCommand returns the command. It runs until ctx ends.
func NewCommand(ctx context.Context) *cobra.Command {
	o := options.New()
	cmd := &cobra.Command{
		Use:   options.Component,
		Short: "The controllers of grid-apiserver",
		Long: `grid-controller-manager makes a Service of each ServiceGrid: one whose clients reach only
the endpoints in their own node unit. It runs beside the control plane of any cluster;
several may run, and one of them works at a time. Where nobody else fills Endpoints and
EndpointSlices, it can do that too.`,
		Version: version.Get().GitVersion,
		// An error of the controllers is not one of the usage.
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
	completed := o.Complete()
	if err := completed.Validate(); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting grid-controller-manager", "version", version.Get().GitVersion, "controllers", completed.Enabled())
	config, err := completed.Config()
	if err != nil {
		return err
	}
	m, err := newManager(ctx, config)
	if err != nil {
		return err
	}
	return m.run(ctx)
}
