// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"os"
	"strings"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	componentconfig "k8s.io/component-base/config"
)

// Config is what the flags say, with the files read that they name and the port opened.
type Config struct {
	Client          *rest.Config
	Controllers     []string
	ConcurrentSyncs int
	ResyncPeriod    time.Duration
	LeaderElection  componentconfig.LeaderElectionConfiguration

	// SecureServing is nil if nothing is served.
	SecureServing  *genericapiserver.SecureServingInfo
	Authentication genericapiserver.AuthenticationInfo
	Authorization  genericapiserver.AuthorizationInfo
}

// Config reads the files that the flags name and opens the port.
func (c Completed) Config() (*Config, error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	config := &Config{
		Client:          client,
		Controllers:     c.Enabled(),
		ConcurrentSyncs: c.ConcurrentSyncs,
		ResyncPeriod:    c.ResyncPeriod,
		LeaderElection:  c.LeaderElection,
	}
	return config, c.applyServing(config)
}

func (c Completed) client() (*rest.Config, error) {
	client, err := loadClient(c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	client.QPS, client.Burst = c.QPS, c.Burst
	return rest.AddUserAgent(client, Component), nil
}

func loadClient(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		client, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig: not given, and there is no ServiceAccount of a pod: %w", err)
		}
		return client, nil
	}
	if _, err := os.ReadFile(kubeconfig); err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	client, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %s: %w", kubeconfig, err)
	}
	return client, nil
}

// applyServing opens the port. Who may read metrics is the API server's decision, as with the components of Kubernetes:
// bearer tokens by TokenReview, rights by SubjectAccessReview. Health is for everybody, so that a kubelet can ask.
func (c Completed) applyServing(config *Config) error {
	if err := c.SecureServing.ApplyTo(&config.SecureServing); err != nil {
		if strings.HasPrefix(err.Error(), "failed to create listener") {
			return fmt.Errorf("--bind-address, --secure-port: %w", err)
		}
		return fmt.Errorf("--tls-cert-file, --tls-private-key-file, --tls-sni-cert-key: %w", err)
	}
	if config.SecureServing == nil {
		return nil
	}
	if config.SecureServing.Cert == nil {
		cert, err := selfSigned(c.SecureServing.BindAddress)
		if err != nil {
			return err
		}
		config.SecureServing.Cert = cert
	}
	authentication := genericoptions.NewDelegatingAuthenticationOptions()
	authentication.RemoteKubeConfigFile = c.Kubeconfig
	// Client certificates are not asked for: the lookup would need another right, and a watch.
	authentication.SkipInClusterLookup = true
	if err := authentication.ApplyTo(&config.Authentication, config.SecureServing, nil); err != nil {
		return fmt.Errorf("delegate authentication: %w", err)
	}
	authorization := genericoptions.NewDelegatingAuthorizationOptions().WithAlwaysAllowPaths(
		"/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*")
	authorization.RemoteKubeConfigFile = c.Kubeconfig
	if err := authorization.ApplyTo(&config.Authorization); err != nil {
		return fmt.Errorf("delegate authorization: %w", err)
	}
	return nil
}
