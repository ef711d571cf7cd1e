// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options holds the flags of grid-apiserver.
package options

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/grid-apiserver/grid-apiserver/pkg/server"
	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

const (
	defaultPort    = 51006
	defaultDataDir = "/var/lib/grid-apiserver"
	nodeNameEnv    = "NODE_NAME"
)

// Options are the values of the flags.
type Options struct {
	NodeName      string
	Kubeconfig    string
	DataDir       string
	LocalEndpoint string
	Standalone    Standalone
	SecureServing *genericoptions.SecureServingOptions
	Logs          *logsapi.LoggingConfiguration
}

// New returns the defaults.
func New() *Options {
	serving := genericoptions.NewSecureServingOptions()
	serving.BindAddress = net.IPv4(127, 0, 0, 1)
	serving.BindPort = defaultPort
	serving.Required = true
	// The certificate of the data directory is used where no files are given.
	serving.ServerCert.CertDirectory, serving.ServerCert.PairName = "", ""
	return &Options{DataDir: defaultDataDir, Standalone: newStandalone(), SecureServing: serving, Logs: logs.NewOptions()}
}

// Flags returns the flags in named sections.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sections cliflag.NamedFlagSets
	fs := sections.FlagSet("node")
	fs.StringVar(&o.NodeName, "node-name", o.NodeName, "Name of the Node whose view is served. Default: the environment variable "+nodeNameEnv+", then the host's name.")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of a kubeconfig for the upstream API server. Default: the ServiceAccount of the pod this process runs in.")
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir, "Directory for certificates, the kubeconfig of kube-proxy and what is kept over restarts. Made if missing.")
	fs.StringVar(&o.LocalEndpoint, "local-endpoint", o.LocalEndpoint, "IP:PORT that replaces the endpoints of the Service default/kubernetes in the view. Wins over the annotations of its Endpoints object.")
	o.Standalone.addFlags(sections.FlagSet("standalone"))

	serving := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.SecureServing.AddFlags(serving)
	serving.VisitAll(func(f *pflag.Flag) {
		switch f.Name {
		case "cert-dir":
			// The data directory takes its place.
			return
		case "tls-cert-file":
			f.Usage = "File with the operator's own certificate for HTTPS, followed by those of its CA if there are any. It is loaded again when it changes. Default: a certificate made in --data-dir."
		}
		sections.FlagSet("serving").AddFlag(f)
	})
	logsapi.AddFlags(o.Logs, sections.FlagSet("logs"))
	return sections
}

// Completed are options whose defaults have been filled in.
type Completed struct{ *completed }

type completed struct {
	Options
	hostnameErr error
}

// Complete fills in what depends on the machine.
func (o *Options) Complete() (Completed, error) {
	c := &completed{Options: *o}
	if c.NodeName == "" {
		c.NodeName = os.Getenv(nodeNameEnv)
	}
	if c.NodeName == "" {
		var hostname string
		hostname, c.hostnameErr = os.Hostname()
		// As the kubelet does when it names its Node.
		c.NodeName = strings.ToLower(strings.TrimSpace(hostname))
	}
	return Completed{c}, nil
}

// Validate returns all that is wrong with the flags, each error naming its flag.
func (c Completed) Validate() error {
	var errs []error
	switch {
	case c.hostnameErr != nil:
		errs = append(errs, fmt.Errorf("--node-name: not given, and the host's name cannot be read: %w", c.hostnameErr))
	default:
		for _, msg := range validation.NameIsDNSSubdomain(c.NodeName, false) {
			errs = append(errs, fmt.Errorf("--node-name: %q is not the name of a Node: %s", c.NodeName, msg))
		}
	}
	if c.DataDir == "" {
		errs = append(errs, errors.New("--data-dir: must not be empty"))
	}
	if c.LocalEndpoint != "" {
		if _, err := topology.ParseHostPort(c.LocalEndpoint); err != nil {
			errs = append(errs, fmt.Errorf("--local-endpoint: %w", err))
		}
	}
	if c.Standalone.Enabled && c.Kubeconfig != "" {
		errs = append(errs, errors.New("--standalone, --kubeconfig: give one of them; with --standalone there is no other upstream"))
	}
	if port := c.Standalone.Port; c.Standalone.Enabled && port != 0 && port == c.SecureServing.BindPort {
		errs = append(errs, fmt.Errorf("--standalone-port, --secure-port: both are %d", port))
	}
	errs = append(errs, c.Standalone.validate()...)
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

// Config reads the files that the flags name and opens the port.
func (c Completed) Config(_ context.Context) (*server.Config, error) {
	upstream, err := c.upstream()
	if err != nil {
		return nil, err
	}
	return c.ConfigFor(upstream)
}

// ConfigFor is Config with another upstream than that of the flags.
func (c Completed) ConfigFor(upstream *rest.Config) (*server.Config, error) {
	var err error
	config := &server.Config{NodeName: c.NodeName, Upstream: upstream, DataDir: c.DataDir}
	if c.LocalEndpoint != "" {
		if config.LocalEndpoint, err = topology.ParseHostPort(c.LocalEndpoint); err != nil {
			return nil, fmt.Errorf("--local-endpoint: %w", err)
		}
	}
	var serving *genericapiserver.SecureServingInfo
	if err := c.SecureServing.ApplyTo(&serving); err != nil {
		if strings.HasPrefix(err.Error(), "failed to create listener") {
			return nil, fmt.Errorf("--bind-address, --secure-port: %w", err)
		}
		return nil, fmt.Errorf("--tls-cert-file, --tls-private-key-file, --tls-sni-cert-key: %w", err)
	}
	config.SecureServing = serving
	return config, nil
}

func (c Completed) upstream() (*rest.Config, error) {
	if c.Kubeconfig == "" {
		upstream, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig: not given, and there is no ServiceAccount of a pod: %w", err)
		}
		return upstream, nil
	}
	if _, err := os.ReadFile(c.Kubeconfig); err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	upstream, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %s: %w", c.Kubeconfig, err)
	}
	if _, _, err := rest.DefaultServerUrlFor(upstream); err != nil {
		return nil, fmt.Errorf("--kubeconfig: %s: server %q: %w", c.Kubeconfig, upstream.Host, err)
	}
	return upstream, nil
}
