// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// parse returns the options that a command line gives.
func parse(t *testing.T, args ...string) *Options {
	t.Helper()
	o := New()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	sections := o.Flags()
	for _, section := range sections.FlagSets {
		fs.AddFlagSet(section)
	}
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestEnabledControllers(t *testing.T) {
	for _, tc := range []struct {
		flag string
		want []string
	}{
		{"*", []string{"servicegrid"}},
		{"endpoints", []string{"endpoints"}},
		{"*,endpoints", []string{"endpoints", "servicegrid"}},
		{"*,endpointslice,endpointslicemirroring,-servicegrid", []string{"endpointslice", "endpointslicemirroring"}},
		{"servicegrid,-servicegrid", []string{"servicegrid"}},
		{"-endpoints,servicegrid,endpoints", []string{"servicegrid"}},
		{"-servicegrid", nil},
	} {
		if diff := cmp.Diff(tc.want, parse(t, "--controllers="+tc.flag).Enabled()); diff != "" {
			t.Errorf("--controllers=%s (-want +got):\n%s", tc.flag, diff)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, tc := range []struct {
		args string
		want []string
	}{
		{args: ""},
		{args: "--leader-elect=false --leader-elect-renew-deadline=0"},
		{args: "--secure-port=0 --resync-period=0"},
		{args: "--controllers=servicegrids", want: []string{"--controllers", "servicegrid, endpoints"}},
		{args: "--controllers=*,-servicegrid", want: []string{"--controllers", "leaves none"}},
		{args: "--concurrent-syncs=0 --resync-period=-1s", want: []string{"--concurrent-syncs", "--resync-period"}},
		{args: "--kube-api-qps=0 --kube-api-burst=-1", want: []string{"--kube-api-qps", "--kube-api-burst"}},
		{args: "--leader-elect-lease-duration=5s", want: []string{"--leader-elect", "leaseDuration"}},
		{args: "--leader-elect-resource-lock=endpoints", want: []string{"--leader-elect-resource-lock"}},
		{args: "--leader-elect-resource-namespace=", want: []string{"resourceNamespace"}},
		{args: "--secure-port=-1", want: []string{"--secure-port"}},
		{args: "--tls-min-version=1", want: []string{"--tls-min-version"}},
		{args: "--tls-cipher-suites=x", want: []string{"--tls-cipher-suites"}},
		{args: "--tls-cert-file=x", want: []string{"--tls-private-key-file"}},
	} {
		err := parse(t, strings.Fields(tc.args)...).Complete().Validate()
		if len(tc.want) == 0 && err != nil {
			t.Errorf("%q: %v", tc.args, err)
		}
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v does not name %s", tc.args, err, want)
			}
		}
	}
}

func TestConfigNamesTheFlag(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // that of a pod
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := writeKubeconfig(t, "https://127.0.0.1:1")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, taken, _ := net.SplitHostPort(listener.Addr().String())
	for _, tc := range []struct{ args, want string }{
		{"--secure-port=0", "--kubeconfig"},
		{"--secure-port=0 --kubeconfig=" + filepath.Join(dir, "missing"), "--kubeconfig"},
		{"--secure-port=0 --kubeconfig=" + broken, "--kubeconfig"},
		{"--kubeconfig=" + good + " --secure-port=" + taken, "--secure-port"},
	} {
		_, err := parse(t, strings.Fields(tc.args)...).Complete().Config()
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v does not name %s", tc.args, err, tc.want)
		}
	}
	config, err := parse(t, "--secure-port=0", "--kubeconfig="+good).Complete().Config()
	if err != nil {
		t.Fatal(err)
	}
	if config.SecureServing != nil || !strings.Contains(config.Client.UserAgent, Component) {
		t.Errorf("%+v", config)
	}
}

func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := strings.Join([]string{
		"apiVersion: v1", "kind: Config", "clusters: [{name: c, cluster: {server: \"" + server + "\"}}]",
		"contexts: [{name: c, context: {cluster: c}}]", "current-context: c", "",
	}, "\n")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSelfSignedCertificateServesItsAddress(t *testing.T) {
	provider, err := selfSigned(net.ParseIP("192.0.2.1"))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(provider.CurrentCertKeyContent())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(pair.Leaf)
	for _, name := range []string{"192.0.2.1", "127.0.0.1", "::1", "localhost"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
