// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"
	testclock "k8s.io/utils/clock/testing"
)

var testNow = time.Date(2027, time.March, 1, 12, 0, 0, 0, time.UTC)

func options(dir string) Options {
	return Options{
		Dir:         dir,
		NodeName:    "node-1.example",
		BindAddress: net.IPv4(127, 0, 0, 1),
		Port:        51006,
		Clock:       testclock.NewFakeClock(testNow),
	}
}

func ensure(t *testing.T, o Options) *Identity {
	t.Helper()
	i, err := Ensure(t.Context(), o)
	if err != nil {
		t.Fatalf("Ensure: %v", err)
	}
	check(t, i, o)
	return i
}

// check verifies that everything of i fits together at the clock's time.
func check(t *testing.T, i *Identity, o Options) {
	t.Helper()
	now := i.clock.Now()
	certPEM, keyPEM := i.Serving().CurrentCertKeyContent()
	serving, err := parsePair(certPEM, keyPEM)
	if err != nil {
		t.Fatalf("serving certificate: %v", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(i.ServingCA()) {
		t.Fatal("no certificate in the serving CA")
	}
	for _, name := range []string{"127.0.0.1", "::1", "localhost", serverName, o.NodeName} {
		if _, err := serving.cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			t.Errorf("serving certificate for %q: %v", name, err)
		}
	}
	if names := slices.Clone(serving.cert.DNSNames); len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Errorf("serving certificate has a name twice: %q", names)
	}
	config, err := clientcmd.LoadFromFile(i.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	user := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
	client, err := parsePair(user.ClientCertificateData, user.ClientKeyData)
	if err != nil {
		t.Fatalf("client certificate: %v", err)
	}
	verify, _ := i.ClientCA().VerifyOptions()
	verify.CurrentTime = now
	if _, err := client.cert.Verify(verify); err != nil {
		t.Errorf("client certificate: %v", err)
	}
	if got, want := client.cert.Subject.String(), "CN=system:kube-proxy,O=system:node-proxier"; got != want {
		t.Errorf("subject of the client certificate is %q, want %q", got, want)
	}
	cluster := config.Clusters[config.Contexts[config.CurrentContext].Cluster]
	if diff := cmp.Diff(string(i.ServingCA()), string(cluster.CertificateAuthorityData)); diff != "" {
		t.Errorf("CA in the kubeconfig (-want +got):\n%s", diff)
	}
}

func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary one, which has got its name
		}
		name, _ := filepath.Rel(dir, path)
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func changed(before, after map[string]string) []string {
	var names []string
	for _, name := range []string{"pki/serving-ca.pem", "pki/serving.pem", "pki/client-ca.pem", "kube-proxy.kubeconfig"} {
		if before[name] != after[name] {
			names = append(names, name)
		}
	}
	return names
}

func TestFilesArePrivateAndReused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing", "data")
	ensure(t, options(dir))
	before := snapshot(t, dir)
	if len(before) != 4 {
		t.Errorf("got %d files, want 4", len(before))
	}
	for name := range before {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	for _, name := range []string{"", "pki"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o700 {
			t.Errorf("directory %q has mode %v", name, info.Mode())
		}
	}
	ensure(t, options(dir))
	if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
		t.Errorf("the second start changed files:\n%s", diff)
	}
}

func TestOptionsAndTimeDecideWhatIsRenewed(t *testing.T) {
	at := func(now time.Time) func(*Options) {
		return func(o *Options) { o.Clock = testclock.NewFakeClock(now) }
	}
	for _, tc := range []struct {
		name   string
		change func(*Options)
		want   []string
	}{
		{"nothing", func(*Options) {}, nil},
		{"node name", func(o *Options) { o.NodeName = "node-2" }, []string{"pki/serving.pem"}},
		{"node name that is in the certificate anyway", func(o *Options) { o.NodeName = "localhost" }, []string{"pki/serving.pem"}},
		{"node name that is the reserved one", func(o *Options) { o.NodeName = serverName }, []string{"pki/serving.pem"}},
		{"node name that is an address", func(o *Options) { o.NodeName = "192.0.2.7" }, []string{"pki/serving.pem"}},
		{"bind address", func(o *Options) { o.BindAddress = net.ParseIP("169.254.20.10") }, []string{"pki/serving.pem", "kube-proxy.kubeconfig"}},
		{"IPv6 bind address", func(o *Options) { o.BindAddress = net.ParseIP("fd00::1") }, []string{"pki/serving.pem", "kube-proxy.kubeconfig"}},
		{"all addresses", func(o *Options) { o.BindAddress = net.IPv4zero }, nil},
		{"port", func(o *Options) { o.Port = 6443 }, []string{"kube-proxy.kubeconfig"}},
		{"serving certificate not yet due", at(testNow.Add(servingLifetime - servingRenewBefore - time.Hour)), nil},
		{"serving certificate due", at(testNow.Add(servingLifetime - servingRenewBefore)), []string{"pki/serving.pem"}},
		{"serving certificate expired", at(testNow.Add(2 * year)), []string{"pki/serving.pem"}},
		{"client certificate due", at(testNow.Add(clientLifetime - clientRenewBefore)), []string{"pki/serving.pem", "kube-proxy.kubeconfig"}},
		{"CAs due", at(testNow.Add(caLifetime - caRenewBefore)), []string{"pki/serving-ca.pem", "pki/serving.pem", "pki/client-ca.pem", "kube-proxy.kubeconfig"}},
		{"clock set back to 1970", at(time.Unix(10, 0)), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			ensure(t, options(dir))
			before := snapshot(t, dir)
			o := options(dir)
			tc.change(&o)
			ensure(t, o)
			if diff := cmp.Diff(tc.want, changed(before, snapshot(t, dir))); diff != "" {
				t.Errorf("changed files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPortChangeKeepsTheClientCertificate(t *testing.T) {
	o := options(t.TempDir())
	i := ensure(t, o)
	before, err := clientcmd.LoadFromFile(i.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	if err := i.WriteKubeconfig(t.Context(), 12345); err != nil {
		t.Fatal(err)
	}
	after, err := clientcmd.LoadFromFile(i.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	before.Clusters["grid-apiserver"].Server = "https://127.0.0.1:12345"
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("kubeconfig (-want +got):\n%s", diff)
	}
}

func TestMadeWithAClockInThePastIsValidLater(t *testing.T) {
	o := options(t.TempDir())
	o.Clock = testclock.NewFakeClock(time.Unix(5, 0))
	i := ensure(t, o)
	i.clock = testclock.NewFakeClock(clockFloor.Add(servingLifetime - time.Hour))
	check(t, i, o)
}

func rsaCA(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "rsa"}, NotAfter: testNow.Add(caLifetime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) + string(keyPEM)
}

func TestDamagedFilesAreSetAsideAndMadeAnew(t *testing.T) {
	other := t.TempDir()
	ensure(t, options(other))
	foreign := snapshot(t, other)
	rsaPair := rsaCA(t)

	damages := []struct {
		name   string
		damage func(name, content string) string
	}{
		{"empty", func(string, string) string { return "" }},
		{"truncated", func(_, content string) string { return content[:len(content)/2] }},
		{"zeros", func(_, content string) string { return strings.Repeat("\x00", len(content)) }},
		{"not PEM or YAML", func(string, string) string { return "\t{garbage" }},
		{"RSA", func(string, string) string { return rsaPair }},
		{"serving pair in its place", func(name, _ string) string {
			if name == "pki/serving.pem" {
				return "x"
			}
			return foreign["pki/serving.pem"]
		}},
		{"certificate and key of different pairs", func(name, content string) string {
			if i := strings.Index(content, "-----BEGIN EC"); i >= 0 {
				return content[:i] + foreign[name][strings.Index(foreign[name], "-----BEGIN EC"):]
			}
			return "current-context: none"
		}},
	}
	for _, file := range []string{"pki/serving-ca.pem", "pki/serving.pem", "pki/client-ca.pem", "kube-proxy.kubeconfig"} {
		for _, d := range damages {
			t.Run(file+" "+d.name, func(t *testing.T) {
				dir := t.TempDir()
				ensure(t, options(dir))
				path := filepath.Join(dir, file)
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				damaged := d.damage(file, string(content))
				if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
					t.Fatal(err)
				}
				ensure(t, options(dir))
				aside, err := os.ReadFile(path + ".damaged")
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(damaged, string(aside)); diff != "" {
					t.Errorf("file set aside (-want +got):\n%s", diff)
				}
				before := snapshot(t, dir)
				ensure(t, options(dir))
				if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
					t.Errorf("the start after the repair changed files:\n%s", diff)
				}
			})
		}
		t.Run(file+" is a directory", func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, file)
			for range 2 { // the second has the leftover of the first in its way
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(filepath.Join(path, "sub"), 0o700); err != nil {
					t.Fatal(err)
				}
				ensure(t, options(dir))
			}
		})
		t.Run(file+" of another installation", func(t *testing.T) {
			dir := t.TempDir()
			ensure(t, options(dir))
			if err := os.WriteFile(filepath.Join(dir, file), []byte(foreign[file]), 0o600); err != nil {
				t.Fatal(err)
			}
			ensure(t, options(dir))
		})
	}
}

func TestUnusableDirectoryIsNamedInTheError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pki := t.TempDir()
	if err := os.WriteFile(filepath.Join(pki, "pki"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, dir, want string }{
		{"a file", file, "not a directory"},
		{"below a file", filepath.Join(file, "data"), "not a directory"},
		{"nothing may be created there", "/proc/grid-apiserver", "/proc/grid-apiserver"},
		{"a file in place of the sub-directory", pki, "not a directory"},
		{"none", "", "no data directory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Ensure(t.Context(), options(tc.dir))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.dir) {
				t.Errorf("got error %v, want one with %q and %q", err, tc.want, tc.dir)
			}
			if tc.dir == pki {
				return // the directory itself is there
			}
			err = MakeDirectory(tc.dir)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.dir) {
				t.Errorf("MakeDirectory: got error %v, want one with %q and %q", err, tc.want, tc.dir)
			}
			if prefix := fmt.Sprintf("data directory %q cannot be used: ", tc.dir); tc.dir != "" && err != nil && !strings.HasPrefix(err.Error(), prefix) {
				t.Errorf("MakeDirectory: got error %v, want one that begins with %s", err, prefix)
			}
		})
	}
}

func TestMakeDirectoryIsForTheOwnerAndKeepsWhatIsThere(t *testing.T) {
	existing := t.TempDir()
	if err := os.Chmod(existing, 0o750); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing", "data")
	for _, tc := range []struct {
		name, dir string
		want      fs.FileMode
	}{
		{"existing", existing, 0o750},
		{"missing", missing, 0o700},
		{"made above it", filepath.Dir(missing), 0o700},
		{"made before", missing, 0o700},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := MakeDirectory(tc.dir); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(tc.dir)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != tc.want {
				t.Errorf("mode is %v, want %v", info.Mode().Perm(), tc.want)
			}
		})
	}
	ensure(t, options(missing))
}

func TestLeftoversAndModesAreRepaired(t *testing.T) {
	dir := t.TempDir()
	i := ensure(t, options(dir))
	leftovers := []string{filepath.Join(dir, ".kube-proxy.kubeconfig.tmp-1"), filepath.Join(dir, "pki", ".serving.pem.tmp-23")}
	for _, path := range leftovers {
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(i.KubeconfigPath(), 0o644); err != nil {
		t.Fatal(err)
	}
	ensure(t, options(dir))
	for _, path := range leftovers {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	info, err := os.Stat(i.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig has mode %v", info.Mode())
	}
}

type enqueued chan struct{}

func (e enqueued) Enqueue() { e <- struct{}{} }

func TestRunRenewsBeforeExpiry(t *testing.T) {
	for _, tc := range []struct {
		name  string
		after time.Duration
		want  []string
	}{
		{"serving certificate", servingLifetime - servingRenewBefore, []string{"pki/serving.pem"}},
		{"both certificates", clientLifetime - clientRenewBefore, []string{"pki/serving.pem", "kube-proxy.kubeconfig"}},
		{"clock leaps forward by years", 8 * year, []string{"pki/serving.pem", "kube-proxy.kubeconfig"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := options(t.TempDir())
			fake := testclock.NewFakeClock(testNow)
			o.Clock = fake
			i := ensure(t, o)
			before := snapshot(t, o.Dir)
			notified := make(enqueued, 10)
			i.Serving().AddListener(notified)

			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { i.Run(ctx); close(done) }()
			waitFor(t, fake.HasWaiters)
			fake.Step(tc.after)
			waitFor(t, func() bool { return cmp.Equal(tc.want, changed(before, snapshot(t, o.Dir))) })
			cancel()
			<-done
			select {
			case <-notified:
			default:
				t.Error("no listener was told of the new serving certificate")
			}
			check(t, i, o)
		})
	}
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return condition(), nil
	}); err != nil {
		t.Fatalf("condition not met: %v", err)
	}
}

func TestRenewedCertificateIsUsedWhenItCannotBeWritten(t *testing.T) {
	o := options(t.TempDir())
	i := ensure(t, o)
	old, _ := i.Serving().CurrentCertKeyContent()
	if err := os.RemoveAll(filepath.Join(o.Dir, "pki")); err != nil {
		t.Fatal(err)
	}
	i.renewServingIfDue(t.Context(), testNow.Add(servingLifetime))
	if now, _ := i.Serving().CurrentCertKeyContent(); string(now) == string(old) {
		t.Error("the expired certificate is still in use")
	}
}

func TestKubeconfigReachesTheServer(t *testing.T) {
	o := options(t.TempDir())
	o.Clock, o.Port = nil, 0
	i, err := Ensure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(i.KubeconfigPath()); err == nil {
		t.Error("there is a kubeconfig before the port is known")
	}
	roots, _ := i.ClientCA().VerifyOptions()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, req.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	server.TLS = &tls.Config{
		ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs:  roots.Roots,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if hello.ServerName != "local-identity.grid-apiserver" {
				t.Errorf("SNI is %q, want the reserved name", hello.ServerName)
			}
			pair, err := tls.X509KeyPair(i.Serving().CurrentCertKeyContent())
			return &pair, err
		},
	}
	server.StartTLS()
	defer server.Close()
	if err := i.WriteKubeconfig(t.Context(), server.Listener.Addr().(*net.TCPAddr).Port); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", i.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	response, err := client.Get(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "system:kube-proxy" {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestServerURL(t *testing.T) {
	for _, tc := range []struct{ bind, want string }{
		{"", "https://127.0.0.1:1"},
		{"0.0.0.0", "https://127.0.0.1:1"},
		{"::", "https://127.0.0.1:1"},
		{"127.0.0.1", "https://127.0.0.1:1"},
		{"169.254.20.10", "https://169.254.20.10:1"},
		{"fd00::1", "https://[fd00::1]:1"},
	} {
		t.Run(tc.bind, func(t *testing.T) {
			if got := serverURL(net.ParseIP(tc.bind), 1); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
