// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// parse sets flags as the command does.
func parse(t *testing.T, args ...string) (*Options, error) {
	t.Helper()
	o := New()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	sections := o.Flags()
	for _, section := range sections.FlagSets {
		fs.AddFlagSet(section)
	}
	return o, fs.Parse(args)
}

func complete(t *testing.T, args ...string) Completed {
	t.Helper()
	o, err := parse(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	completed, err := o.Complete()
	if err != nil {
		t.Fatal(err)
	}
	return completed
}

// single returns the message of an error that reports one thing.
func single(t *testing.T, err error) string {
	t.Helper()
	// Not errors.As: the cause of one error may be an aggregate of clientcmd.
	if aggregate, ok := err.(utilerrors.Aggregate); ok && len(aggregate.Errors()) != 1 { //nolint:errorlint // as above
		t.Errorf("%d errors, want one: %v", len(aggregate.Errors()), err)
	}
	if err == nil {
		t.Fatal("no error")
	}
	return err.Error()
}

func TestEveryBadValueIsOneErrorThatNamesItsFlag(t *testing.T) {
	for _, c := range []struct{ name, flag, value string }{
		{"upper case", "--node-name", "Node1"},
		{"underscore", "--node-name", "node_1"},
		{"too long", "--node-name", strings.Repeat("n", 254)},
		{"empty", "--data-dir", ""},
		{"without a port", "--local-endpoint", "10.0.0.1"},
		{"a host name", "--local-endpoint", "localhost:6443"},
		{"port 0", "--local-endpoint", "10.0.0.1:0"},
		{"port too large", "--local-endpoint", "10.0.0.1:65536"},
		{"no port", "--secure-port", "0"},
		{"negative port", "--secure-port", "-1"},
		{"port too large", "--secure-port", "65536"},
		{"certificate without a key", "--tls-cert-file", "cert.pem"},
		{"key without a certificate", "--tls-private-key-file", "key.pem"},
	} {
		t.Run(c.flag+" "+c.name, func(t *testing.T) {
			err := complete(t, c.flag+"="+c.value).Validate()
			name := strings.TrimPrefix(c.flag, "--")
			if message := single(t, err); !strings.Contains(message, name) {
				t.Errorf("%q does not name --%s", message, name)
			}
		})
	}
}

func TestValuesThatCannotBeReadAreNamed(t *testing.T) {
	for _, arg := range []string{"--secure-port=many", "--bind-address=here", "--no-such-flag=1", "--cert-dir=/tmp"} {
		_, err := parse(t, arg)
		name, _, _ := strings.Cut(arg, "=")
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

func TestAllBadValuesAreReportedTogether(t *testing.T) {
	err := complete(t, "--node-name=-", "--data-dir=", "--local-endpoint=x", "--secure-port=0").Validate()
	for _, flag := range []string{"--node-name", "--data-dir", "--local-endpoint", "secure-port"} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s is not named: %v", flag, err)
		}
	}
}

func TestEqualPortsAreNamed(t *testing.T) {
	equal := []string{"--node-name=n1", "--secure-port=51006", "--standalone-port=51006"}
	if err := complete(t, equal...).Validate(); err != nil {
		t.Errorf("without --standalone: %v", err)
	}
	message := single(t, complete(t, append(equal, "--standalone")...).Validate())
	for _, part := range []string{"--standalone-port", "--secure-port", "51006"} {
		if !strings.Contains(message, part) {
			t.Errorf("%q does not name %s", message, part)
		}
	}
}

func TestDefaultsAreValid(t *testing.T) {
	t.Setenv(nodeNameEnv, "from-environment")
	c := complete(t)
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.NodeName != "from-environment" || c.DataDir != "/var/lib/grid-apiserver" || c.SecureServing.BindPort != 51006 || !c.SecureServing.BindAddress.IsLoopback() {
		t.Errorf("defaults are %+v", c.Options)
	}
	if c := complete(t, "--node-name=from-flag"); c.NodeName != "from-flag" {
		t.Errorf("the flag does not win: %s", c.NodeName)
	}
	t.Setenv(nodeNameEnv, "")
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if c := complete(t); c.NodeName != strings.ToLower(hostname) {
		t.Errorf("the node name is %q, want the host's %q", c.NodeName, hostname)
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKubeconfigThatCannotBeUsedIsNamed(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	missing := filepath.Join(t.TempDir(), "missing")
	directory := t.TempDir() // unreadable also for root
	for _, c := range []struct{ name, path string }{
		{"none and not in a pod", ""},
		{"missing", missing},
		{"unreadable", directory},
		{"unparsable", write(t, "kubeconfig", "clusters: {")},
		{"of another kind", write(t, "kubeconfig", "apiVersion: v1\nkind: Pod\n")},
		{"server that is no address", write(t, "kubeconfig", strings.Replace(kubeconfig, "https://127.0.0.1:1", "https://127.0.0.1:1:2", 1))},
		{"without a cluster", write(t, "kubeconfig", "apiVersion: v1\nkind: Config\n")},
		{"context that is not there", write(t, "kubeconfig", strings.Replace(kubeconfig, "current-context: c", "current-context: x", 1))},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := complete(t, "--node-name=n1", "--kubeconfig="+c.path).Config(t.Context())
			message := single(t, err)
			if !strings.Contains(message, "--kubeconfig") || !strings.Contains(message, c.path) {
				t.Errorf("%q does not name --kubeconfig and %q", message, c.path)
			}
		})
	}
}

func TestAddressInUseIsNamed(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	path := write(t, "kubeconfig", kubeconfig)
	_, err = complete(t, "--node-name=n1", "--kubeconfig="+path, "--secure-port="+port).Config(t.Context())
	message := single(t, err)
	if !strings.Contains(message, "--secure-port") || !strings.Contains(message, port) {
		t.Errorf("%q does not name --secure-port and %s", message, port)
	}
}

func TestBadTLSSettingsAreNamed(t *testing.T) {
	path := write(t, "kubeconfig", kubeconfig)
	for _, arg := range []string{"--tls-min-version=VersionTLS99", "--tls-cipher-suites=none"} {
		completed := complete(t, "--node-name=n1", "--kubeconfig="+path, arg)
		err := completed.Validate()
		if err == nil {
			free, listenErr := net.Listen("tcp", "127.0.0.1:0")
			if listenErr != nil {
				t.Fatal(listenErr)
			}
			completed.SecureServing.BindPort = free.Addr().(*net.TCPAddr).Port
			free.Close()
			_, err = completed.Config(t.Context())
		}
		if message := single(t, err); !strings.Contains(message, "--tls-") {
			t.Errorf("%s: %q names no flag", arg, message)
		}
	}
}

func TestStandaloneFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string // part of the error, "" for none
	}{
		"defaults":             {[]string{"--standalone"}, ""},
		"one range":            {[]string{"--standalone", "--service-cluster-ip-range=10.0.0.0/24"}, ""},
		"two families":         {[]string{"--standalone", "--service-cluster-ip-range=fd00::/112,10.0.0.0/24"}, ""},
		"with an upstream":     {[]string{"--standalone", "--kubeconfig=/file"}, "--standalone, --kubeconfig"},
		"no port":              {[]string{"--standalone", "--standalone-port=65536"}, "--standalone-port"},
		"no range":             {[]string{"--standalone", "--service-cluster-ip-range=10.0.0.0"}, "--service-cluster-ip-range"},
		"an empty range":       {[]string{"--standalone", "--service-cluster-ip-range="}, "--service-cluster-ip-range"},
		"a family twice":       {[]string{"--standalone", "--service-cluster-ip-range=10.0.0.0/24,10.1.0.0/24"}, "--service-cluster-ip-range"},
		"too few addresses":    {[]string{"--standalone", "--service-cluster-ip-range=10.0.0.0/31"}, "--service-cluster-ip-range"},
		"ports beyond the end": {[]string{"--standalone", "--service-node-port-range=65000-65536"}, "--service-node-port-range"},
		"no time for events":   {[]string{"--standalone", "--event-ttl=0s"}, "--event-ttl"},
	} {
		t.Run(name, func(t *testing.T) {
			o := New()
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			for _, section := range o.Flags().FlagSets {
				flags.AddFlagSet(section)
			}
			err := flags.Parse(append(test.args, "--node-name=n1", "--data-dir="+t.TempDir()))
			if err == nil {
				var completed Completed
				if completed, err = o.Complete(); err == nil {
					err = completed.Validate()
				}
			}
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("%v does not name %s", err, test.want)
			}
		})
	}
}
