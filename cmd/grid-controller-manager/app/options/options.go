// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options holds the flags of grid-controller-manager.
package options

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	cliflag "k8s.io/component-base/cli/flag"
	componentconfig "k8s.io/component-base/config"
	configoptions "k8s.io/component-base/config/options"
	configvalidation "k8s.io/component-base/config/validation"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// Component is the name of the program, of its lease and in its user agent.
const Component = "grid-controller-manager"

const (
	// Beside the ports of grid-apiserver, 51006 and 51007.
	defaultPort = 51008
	// kube-controller-manager's.
	defaultResync  = 12 * time.Hour
	defaultQPS     = 20
	defaultBurst   = 30
	defaultWorkers = 5
)

// Options are the values of the flags.
type Options struct {
	Kubeconfig      string
	QPS             float32
	Burst           int
	Controllers     []string
	ConcurrentSyncs int
	ResyncPeriod    time.Duration
	LeaderElection  componentconfig.LeaderElectionConfiguration
	SecureServing   *genericoptions.SecureServingOptions
	Logs            *logsapi.LoggingConfiguration
}

// New returns the defaults.
func New() *Options {
	serving := genericoptions.NewSecureServingOptions()
	serving.BindAddress = net.IPv4(127, 0, 0, 1)
	serving.BindPort = defaultPort
	// A certificate is made in memory where no files are given.
	serving.ServerCert.CertDirectory, serving.ServerCert.PairName = "", ""
	return &Options{
		QPS: defaultQPS, Burst: defaultBurst,
		Controllers:     []string{everyDefault},
		ConcurrentSyncs: defaultWorkers,
		ResyncPeriod:    defaultResync,
		LeaderElection: componentconfig.LeaderElectionConfiguration{
			LeaderElect:       true,
			LeaseDuration:     metav1.Duration{Duration: 15 * time.Second},
			RenewDeadline:     metav1.Duration{Duration: 10 * time.Second},
			RetryPeriod:       metav1.Duration{Duration: 2 * time.Second},
			ResourceLock:      resourcelock.LeasesResourceLock,
			ResourceName:      Component,
			ResourceNamespace: metav1.NamespaceSystem,
		},
		SecureServing: serving,
		Logs:          logs.NewOptions(),
	}
}

// Flags returns the flags in named sections.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sections cliflag.NamedFlagSets
	fs := sections.FlagSet("cluster")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of a kubeconfig for the API server. Default: the ServiceAccount of the pod this process runs in.")
	fs.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "Requests per second to the API server, on average.")
	fs.IntVar(&o.Burst, "kube-api-burst", o.Burst, "Requests that may be sent to the API server at once, beyond the average.")

	fs = sections.FlagSet("controllers")
	fs.StringSliceVar(&o.Controllers, "controllers", o.Controllers, fmt.Sprintf(
		"The controllers to run: '*' stands for all that are on by default, 'foo' switches the controller foo on, '-foo' switches it off. On by default: %s. "+
			"Off by default, because kube-controller-manager has them: %s.", strings.Join(names(true), ", "), strings.Join(names(false), ", ")))
	fs.IntVar(&o.ConcurrentSyncs, "concurrent-syncs", o.ConcurrentSyncs, "How many objects each controller syncs at a time.")
	fs.DurationVar(&o.ResyncPeriod, "resync-period", o.ResyncPeriod, "How often all objects are looked at again though nothing is heard of them. 0: never.")

	configoptions.BindLeaderElectionFlags(&o.LeaderElection, sections.FlagSet("leader election"))

	serving := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.SecureServing.AddFlags(serving)
	serving.VisitAll(func(f *pflag.Flag) {
		switch f.Name {
		case "cert-dir":
			// The certificate is either the operator's or made in memory.
			return
		case "secure-port":
			f.Usage = "The port of /healthz, /livez, /readyz and, for clients whom the API server authenticates and authorizes, /metrics. All of it is HTTPS. 0: none."
		case "tls-cert-file":
			f.Usage = "File with the operator's own certificate for HTTPS, followed by those of its CA if there are any. It is loaded again when it changes. Default: a self-signed one, made at each start."
		}
		sections.FlagSet("serving").AddFlag(f)
	})
	logsapi.AddFlags(o.Logs, sections.FlagSet("logs"))
	return sections
}

// Completed are options that Complete has filled in.
type Completed struct{ *completed }

type completed struct{ Options }

// Complete fills in what is not given.
func (o *Options) Complete() Completed {
	return Completed{&completed{Options: *o}}
}

// Validate returns all that is wrong with the flags, each error naming its flag.
func (c Completed) Validate() error {
	errs := c.validateControllers()
	if c.QPS <= 0 {
		errs = append(errs, errors.New("--kube-api-qps: must be greater than zero"))
	}
	if c.Burst <= 0 {
		errs = append(errs, errors.New("--kube-api-burst: must be greater than zero"))
	}
	if c.ConcurrentSyncs <= 0 {
		errs = append(errs, errors.New("--concurrent-syncs: must be greater than zero"))
	}
	if c.ResyncPeriod < 0 {
		errs = append(errs, errors.New("--resync-period: must not be negative"))
	}
	errs = append(errs, c.validateLeaderElection()...)
	errs = append(errs, c.SecureServing.Validate()...)
	if _, err := cliflag.TLSVersion(c.SecureServing.MinTLSVersion); err != nil {
		errs = append(errs, fmt.Errorf("--tls-min-version: %w", err))
	}
	if _, err := cliflag.TLSCipherSuites(c.SecureServing.CipherSuites); err != nil {
		errs = append(errs, fmt.Errorf("--tls-cipher-suites: %w", err))
	}
	if cert := c.SecureServing.ServerCert.CertKey; (cert.CertFile == "") != (cert.KeyFile == "") {
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file: give both or neither"))
	}
	return utilerrors.NewAggregate(errs)
}

func (c Completed) validateLeaderElection() []error {
	election := &c.LeaderElection
	if !election.LeaderElect {
		return nil
	}
	var errs []error
	for _, err := range configvalidation.ValidateLeaderElectionConfiguration(election, field.NewPath("leaderElection")) {
		errs = append(errs, fmt.Errorf("--leader-elect-*: %w", err))
	}
	if election.ResourceLock != resourcelock.LeasesResourceLock {
		errs = append(errs, fmt.Errorf("--leader-elect-resource-lock: %q is not supported, only %q is", election.ResourceLock, resourcelock.LeasesResourceLock))
	}
	return errs
}
