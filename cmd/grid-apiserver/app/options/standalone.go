// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone"
)

const defaultStandalonePort = 51007

// Standalone are the flags of the embedded upstream.
type Standalone struct {
	Enabled               bool
	Port                  int
	CustomResources       bool
	ServiceClusterIPRange string
	ServiceNodePortRange  utilnet.PortRange
	EventTTL              time.Duration
}

func newStandalone() Standalone {
	ranges := make([]string, 0, len(standalone.DefaultServiceClusterIPRanges))
	for _, r := range standalone.DefaultServiceClusterIPRanges {
		ranges = append(ranges, r.String())
	}
	return Standalone{
		Port: defaultStandalonePort, CustomResources: true, ServiceClusterIPRange: strings.Join(ranges, ","),
		ServiceNodePortRange: standalone.DefaultServiceNodePortRange, EventTTL: standalone.DefaultEventTTL,
	}
}

// addFlags names the flags that kube-apiserver has too as it does.
func (o *Standalone) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Enabled, "standalone", o.Enabled, "Serve everything from memory, without an upstream: an API server with its controllers runs in this process. Nothing but certificates survives a restart.")
	fs.IntVar(&o.Port, "standalone-port", o.Port, "Port at --bind-address for the API server that is embedded with --standalone, unfiltered and with all rights for the user of admin.kubeconfig in --data-dir. 0: any.")
	fs.BoolVar(&o.CustomResources, "standalone-crds", o.CustomResources, "Serve CustomResourceDefinitions, and what they define, with --standalone.")
	fs.StringVar(&o.ServiceClusterIPRange, "service-cluster-ip-range", o.ServiceClusterIPRange, "CIDR that cluster IPs are allocated from with --standalone, or one of each IP family, the primary one first, separated by a comma.")
	fs.Var(&o.ServiceNodePortRange, "service-node-port-range", "Range that node ports are allocated from with --standalone, both ends included.")
	fs.DurationVar(&o.EventTTL, "event-ttl", o.EventTTL, "How long Events are kept with --standalone.")
}

func (o *Standalone) validate() []error {
	var errs []error
	if o.Port < 0 || o.Port > 65535 {
		errs = append(errs, fmt.Errorf("--standalone-port: %d is not a port", o.Port))
	}
	if _, err := o.ranges(); err != nil {
		errs = append(errs, fmt.Errorf("--service-cluster-ip-range: %w", err))
	}
	if r := o.ServiceNodePortRange; r.Size < 1 || r.Base < 1 || r.Base+r.Size-1 > 65535 {
		errs = append(errs, fmt.Errorf("--service-node-port-range: %s is not a range of ports", r.String()))
	}
	if o.EventTTL <= 0 {
		errs = append(errs, fmt.Errorf("--event-ttl: %s is not a positive duration", o.EventTTL))
	}
	return errs
}

func (o *Standalone) ranges() ([]netip.Prefix, error) {
	var ranges []netip.Prefix
	for _, text := range strings.Split(o.ServiceClusterIPRange, ",") {
		r, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		ranges = append(ranges, r)
	}
	return ranges, standalone.ValidateServiceClusterIPRanges(ranges)
}

// StandaloneConfig opens the port of the embedded API server.
func (c Completed) StandaloneConfig() (*standalone.Config, error) {
	if !c.Standalone.Enabled {
		return nil, errors.New("--standalone: not given")
	}
	ranges, err := c.Standalone.ranges()
	if err != nil {
		return nil, fmt.Errorf("--service-cluster-ip-range: %w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(c.SecureServing.BindAddress.String(), strconv.Itoa(c.Standalone.Port)))
	if err != nil {
		return nil, fmt.Errorf("--bind-address, --standalone-port: %w", err)
	}
	return &standalone.Config{
		SecureServing: &genericapiserver.SecureServingInfo{Listener: listener}, DataDir: c.DataDir,
		ServiceClusterIPRanges: ranges, ServiceNodePortRange: c.Standalone.ServiceNodePortRange,
		EventTTL: c.Standalone.EventTTL, CustomResources: c.Standalone.CustomResources,
	}, nil
}
