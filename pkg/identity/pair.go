// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// Lifetimes. A client that is running holds the serving CA and its own client
// certificate in memory for as long as it runs, because both are embedded in its
// kubeconfig; the serving certificate is fetched anew with each handshake. So the
// serving certificate is short lived and changed while running, and the others
// have margins that are longer than a process may reasonably run.
const (
	// caLifetime and caRenewBefore: a CA is replaced at a start that finds less
	// than caRenewBefore left, never while running. The margin equals the
	// lifetime of a client certificate, so no certificate outlives its CA.
	caLifetime    = 30 * year
	caRenewBefore = 10 * year
	// clientLifetime and clientRenewBefore: whoever loaded the kubeconfig has
	// at least clientRenewBefore until it must be loaded again.
	clientLifetime    = 10 * year
	clientRenewBefore = 5 * year
	// servingLifetime and servingRenewBefore: a third of the lifetime is left
	// for a disk that cannot be written at the moment of the first attempt.
	servingLifetime    = 1 * year
	servingRenewBefore = servingLifetime / 3

	year = 365 * 24 * time.Hour
)

// Boards without a battery-backed clock start in the past, often in 1970, until
// the time is set over the network. The client on the same node shares that
// clock. notBefore makes every certificate valid at such a start, and
// clockFloor keeps what is made then from having expired once the clock is right.
var (
	notBefore  = time.Unix(0, 0).UTC()
	clockFloor = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
)

func expiry(now time.Time, lifetime time.Duration) time.Time {
	if now.Before(clockFloor) {
		now = clockFloor
	}
	return now.Add(lifetime)
}

// pair is a certificate with its private key. It is immutable.
type pair struct {
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	certPEM []byte
	keyPEM  []byte
}

// file is the content of the pair's file: the certificate, then the key.
func (p *pair) file() []byte {
	return append(append([]byte{}, p.certPEM...), p.keyPEM...)
}

// issuedBy reports whether ca signed the certificate of p.
func (p *pair) issuedBy(ca *pair) bool {
	return p.cert.CheckSignatureFrom(ca.cert) == nil
}

func (p *pair) remaining(now time.Time) time.Duration {
	return p.cert.NotAfter.Sub(now)
}

func newCA(commonName string, now time.Time) (*pair, error) {
	return issue(&x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		NotAfter:              expiry(now, caLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}, nil)
}

func newServing(ca *pair, sans subjectNames, now time.Time) (*pair, error) {
	return issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "grid-apiserver"},
		NotAfter:    expiry(now, servingLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    sans.dns,
		IPAddresses: sans.ips,
	}, ca)
}

func newClient(ca *pair, client Client, now time.Time) (*pair, error) {
	return issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: client.User, Organization: client.Groups},
		NotAfter:    expiry(now, clientLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca)
}

// issue makes a key and has the certificate signed by ca, or by itself if ca is nil.
func issue(template *x509.Certificate, ca *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("generate serial number: %w", err)
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	template.NotBefore = notBefore
	parent, signer := template, key
	if ca != nil {
		parent, signer = ca.cert, ca.key
		if template.NotAfter.After(ca.cert.NotAfter) {
			template.NotAfter = ca.cert.NotAfter
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("sign certificate for %q: %w", template.Subject, err)
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return parsePair(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM)
}

// parsePair accepts what this package writes: one certificate and its P-256 key.
// An RSA key is refused; a handshake with it is too slow for small boards.
func parsePair(certPEM, keyPEM []byte) (*pair, error) {
	both, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	key, ok := both.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("the private key is not ECDSA P-256")
	}
	cert, err := x509.ParseCertificate(both.Certificate[0])
	if err != nil {
		return nil, err
	}
	return &pair{cert: cert, key: key, certPEM: certPEM, keyPEM: keyPEM}, nil
}

// parseFile splits the content of a pair's file.
func parseFile(content []byte) (*pair, error) {
	var certPEM, keyPEM []byte
	for {
		var block *pem.Block
		if block, content = pem.Decode(content); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			certPEM = append(certPEM, pem.EncodeToMemory(block)...)
		} else {
			keyPEM = append(keyPEM, pem.EncodeToMemory(block)...)
		}
	}
	return parsePair(certPEM, keyPEM)
}

func parseCAFile(content []byte) (*pair, error) {
	ca, err := parseFile(content)
	if err != nil {
		return nil, err
	}
	if !ca.cert.BasicConstraintsValid || !ca.cert.IsCA || ca.cert.KeyUsage&x509.KeyUsageCertSign == 0 {
		return nil, errors.New("the certificate is not one of a CA")
	}
	if !ca.issuedBy(ca) {
		return nil, errors.New("the signature of the CA certificate does not verify")
	}
	return ca, nil
}
