// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
)

// writeCertificate writes a self-signed client certificate for name and its key.
func writeCertificate(t *testing.T, certFile, keyFile, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der},
		keyFile:  {Type: "EC PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestServersCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names := []string{"seen"}
		for _, certificate := range r.TLS.PeerCertificates {
			names = append(names, certificate.Subject.CommonName)
		}
		_, _ = io.WriteString(w, strings.Join(names, " "))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)

	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	writeCertificate(t, certFile, keyFile, "server-of-node1")
	clock := testingclock.NewFakeClock(time.Now())
	front := newFront(t, HandlerConfig{Clock: clock, Upstream: &rest.Config{
		Host:            server.URL,
		TLSClientConfig: rest.TLSClientConfig{CAData: certificatePEM(server.Certificate()), CertFile: certFile, KeyFile: keyFile},
	}})
	ask := func(header ...string) string {
		t.Helper()
		_, body := front.do(t, "GET", "/api/v1/nodes", "", header...)
		return body
	}
	upgrade := []string{"Authorization", clientAuthorization, "Connection", "Upgrade", "Upgrade", "SPDY/3.1"}

	if got := ask(asLocalIdentity, "1"); got != "seen server-of-node1" {
		t.Errorf("for the local identity: %q", got)
	}
	if got := ask("Authorization", clientAuthorization); got != "seen" {
		t.Errorf("with a client's token: %q", got)
	}
	if got := ask(upgrade...); got != "seen" {
		t.Errorf("for an upgrade with a client's token: %q", got)
	}

	writeCertificate(t, certFile, keyFile, "server-of-node1-renewed")
	later := time.Now().Add(time.Minute) // whatever the resolution of the file system's clock
	for _, file := range []string{certFile, keyFile} {
		if err := os.Chtimes(file, later, later); err != nil {
			t.Fatal(err)
		}
	}
	clock.Step(certificateCheckInterval)
	if got := ask(asLocalIdentity, "1"); got != "seen server-of-node1-renewed" {
		t.Errorf("after the renewal: %q", got)
	}

	if err := os.WriteFile(certFile, []byte("half written"), 0o600); err != nil {
		t.Fatal(err)
	}
	clock.Step(certificateCheckInterval)
	if got := ask(asLocalIdentity, "1"); got != "seen server-of-node1-renewed" {
		t.Errorf("with a damaged file: %q", got)
	}
}

func TestNewHandlerRejectsBadConfigurations(t *testing.T) {
	for name, upstream := range map[string]*rest.Config{
		"none":          nil,
		"bad host":      {Host: "https://exa mple"},
		"bad CA":        {Host: "https://example.com", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("x")}},
		"no such file":  {Host: "https://example.com", TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(t.TempDir(), "ca.crt")}},
		"contradiction": {Host: "https://example.com", TLSClientConfig: rest.TLSClientConfig{Insecure: true, CAData: []byte("x")}},
	} {
		if _, err := NewHandler(HandlerConfig{Upstream: upstream}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
