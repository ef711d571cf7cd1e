// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"testing"
	"time"
)

type testCA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// testCAs are the server's own client CA, that of --client-ca-file, and one that the
// server does not know.
type testCAs struct {
	local, operator, foreign *testCA
}

func newTestCAs(t *testing.T) *testCAs {
	return &testCAs{local: newTestCA(t), operator: newTestCA(t), foreign: newTestCA(t)}
}

func sign(t *testing.T, template *x509.Certificate, ca *testCA) *testCA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	parent, signer := template, key
	if ca != nil {
		parent, signer = ca.cert, ca.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &testCA{cert: cert, key: key}
}

func newTestCA(t *testing.T) *testCA {
	return sign(t, &x509.Certificate{
		Subject:  pkix.Name{CommonName: "ca"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
}

func (c *testCA) verify() (x509.VerifyOptions, bool) {
	roots := x509.NewCertPool()
	roots.AddCert(c.cert)
	return x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
}

func (c *testCA) client(t *testing.T, user string, groups ...string) *x509.Certificate {
	return sign(t, &x509.Certificate{
		Subject:  pkix.Name{CommonName: user, Organization: groups},
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, c).cert
}

// expired is valid but for its time.
func (c *testCA) expired(t *testing.T, user string) *x509.Certificate {
	return sign(t, &x509.Certificate{
		Subject:  pkix.Name{CommonName: user},
		NotAfter: time.Now().Add(-time.Minute), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, c).cert
}

// serverOnly is valid but for its usage.
func (c *testCA) serverOnly(t *testing.T, user string) *x509.Certificate {
	return sign(t, &x509.Certificate{
		Subject:  pkix.Name{CommonName: user},
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, c).cert
}

func withCertificate(req *http.Request, cert *x509.Certificate) *http.Request {
	req.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	return req
}

func pemOf(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}
