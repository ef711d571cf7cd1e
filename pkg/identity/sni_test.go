// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// operatorCertificate is one of a CA that is not ours, for all names that clients use.
func operatorCertificate(t *testing.T, names subjectNames) dynamiccertificates.CertKeyContentProvider {
	t.Helper()
	now := time.Now()
	ca, err := newCA("operator-ca", now)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "operator"}, NotAfter: now.Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: names.dns, IPAddresses: names.ips,
	}, ca)
	if err != nil {
		t.Fatal(err)
	}
	provider, err := dynamiccertificates.NewStaticCertKeyContent("operator", cert.certPEM, cert.keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return provider
}

// listen serves TLS as the server does, and names the client in its answer.
func listen(t *testing.T, i *Identity, operator dynamiccertificates.CertKeyContentProvider) string {
	t.Helper()
	cert := operator
	var sni []dynamiccertificates.SNICertKeyContentProvider
	if operator == nil {
		cert = i.Serving()
	} else {
		sni = append(sni, i.Serving())
	}
	base := &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert}
	controller := dynamiccertificates.NewDynamicServingCertificateController(base, i.ClientCA(), cert, sni, nil)
	if err := controller.RunOnce(); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			for _, peer := range req.TLS.PeerCertificates {
				_, _ = io.WriteString(w, peer.Subject.CommonName)
			}
		}),
	}
	var running sync.WaitGroup
	stop := make(chan struct{})
	running.Go(func() { controller.Run(1, stop) }) // only its end frees what it has
	running.Go(func() {
		_ = server.Serve(tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: controller.GetConfigForClient}))
	})
	t.Cleanup(func() {
		close(stop)
		_ = server.Close()
		running.Wait()
	})
	return listener.Addr().String()
}

func TestWhoIsShownWhichCertificate(t *testing.T) {
	const own, operators = "grid-apiserver", "operator"
	everyName := newSubjectNames("node-1.example", nil)
	everyName.dns = []string{"localhost", "node-1.example", "other.example"}
	for _, tc := range []struct {
		name       string
		serverName string // sent as SNI, nothing for an IP address
		want       string // beside the operator's certificate
	}{
		{"IP address", "", operators},
		{"localhost", "localhost", operators},
		{"node name", "node-1.example", operators},
		{"name that only the operator knows", "other.example", operators},
		{"name that nobody knows", "unknown.example", operators},
		{"reserved name", serverName, own},
	} {
		for _, withOperator := range []bool{true, false} {
			name, want := tc.name+", beside the operator's", tc.want
			if !withOperator {
				name, want = tc.name+", alone", own
			}
			t.Run(name, func(t *testing.T) {
				o := options(t.TempDir())
				o.Clock = nil
				i, err := Ensure(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				var operator dynamiccertificates.CertKeyContentProvider
				if withOperator {
					operator = operatorCertificate(t, everyName)
				}
				conn, err := tls.Dial("tcp", listen(t, i, operator), &tls.Config{ServerName: tc.serverName, InsecureSkipVerify: true}) //nolint:gosec // which certificate is shown is the question
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if got := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; got != want {
					t.Errorf("got the certificate of %q, want that of %q", got, want)
				}
			})
		}
	}
}

func TestKubeconfigReachesTheServerBesideAnyCertificate(t *testing.T) {
	for _, tc := range []struct {
		name     string
		operator func(*testing.T) dynamiccertificates.CertKeyContentProvider
	}{
		{"alone", func(*testing.T) dynamiccertificates.CertKeyContentProvider { return nil }},
		{"operator's for other names", func(t *testing.T) dynamiccertificates.CertKeyContentProvider {
			return operatorCertificate(t, subjectNames{dns: []string{"other.example"}})
		}},
		{"operator's for the same names", func(t *testing.T) dynamiccertificates.CertKeyContentProvider {
			return operatorCertificate(t, newSubjectNames("node-1.example", nil))
		}},
		{"operator's for all names of a domain", func(t *testing.T) dynamiccertificates.CertKeyContentProvider {
			return operatorCertificate(t, subjectNames{dns: []string{"*.grid-apiserver", "localhost"}})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := options(t.TempDir())
			o.Clock, o.Port = nil, 0
			i, err := Ensure(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			address, err := net.ResolveTCPAddr("tcp", listen(t, i, tc.operator(t)))
			if err != nil {
				t.Fatal(err)
			}
			if err := i.WriteKubeconfig(t.Context(), address.Port); err != nil {
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
			if body, err := io.ReadAll(response.Body); err != nil || string(body) != KubeProxy.User {
				t.Errorf("got %q, %v", body, err)
			}
		})
	}
}
