// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	pkiDirectory        = "pki"
	servingCAFile       = "serving-ca.pem"
	servingFile         = "serving.pem"
	clientCAFile        = "client-ca.pem"
	kubeProxyKubeconfig = "kube-proxy.kubeconfig"
)

// Options say whose certificates these are.
type Options struct {
	// Dir is the data directory. It is created if it is missing, as
	// MakeDirectory does.
	Dir string
	// NodeName is put into the serving certificate.
	NodeName string
	// BindAddress is the address that the server listens on; nil or unspecified
	// for all of them.
	BindAddress net.IP
	// Port is put into the kubeconfig. With 0 the kubeconfig is written by
	// WriteKubeconfig, when the port is known.
	Port int
	// Clock is the real clock if nil.
	Clock clock.WithTicker
}

// Identity is the server's certificates. Its methods may be called concurrently.
type Identity struct {
	dir   string
	bind  net.IP
	names subjectNames
	clock clock.WithTicker

	// The CAs do not change while running: clients hold copies of them.
	servingCA *pair
	clientCA  *pair
	verifier  dynamiccertificates.CAContentProvider
	serving   servingContent

	// lock guards port and the writing of the kubeconfig.
	lock sync.Mutex
	port int
}

// Ensure loads the certificates from the data directory, and makes or renews what
// is missing, damaged, about to expire, or does not fit the options. Errors name
// the path. A directory that can only be read is enough when nothing has to change.
//
// It assumes that no other process uses the data directory, from before the call
// and for as long as the Identity is in use: two that start at once would replace
// each other's CAs, and remove each other's temporary files. The caller holds a lock
// on the directory, which MakeDirectory makes for it.
func Ensure(ctx context.Context, options Options) (*Identity, error) {
	if options.Dir == "" {
		return nil, errNoDirectory
	}
	i := &Identity{
		dir:   options.Dir,
		bind:  options.BindAddress,
		names: newSubjectNames(options.NodeName, options.BindAddress),
		clock: options.Clock,
	}
	if i.clock == nil {
		i.clock = clock.RealClock{}
	}
	if err := i.ensure(ctx); err != nil {
		return nil, unusable(options.Dir, err)
	}
	if options.Port != 0 {
		if err := i.WriteKubeconfig(ctx, options.Port); err != nil {
			return nil, unusable(options.Dir, err)
		}
	}
	return i, nil
}

func (i *Identity) ensure(ctx context.Context) error {
	pki := filepath.Join(i.dir, pkiDirectory)
	if err := makeDirectory(pki); err != nil {
		return err
	}
	removeTemporaries(ctx, pki, servingCAFile, servingFile, clientCAFile)
	removeTemporaries(ctx, i.dir, kubeProxyKubeconfig)

	now := i.clock.Now()
	var err error
	if i.servingCA, err = ensureCA(ctx, i.path(servingCAFile), "grid-apiserver-serving-ca", now); err != nil {
		return err
	}
	if i.clientCA, err = ensureCA(ctx, i.path(clientCAFile), "grid-apiserver-client-ca", now); err != nil {
		return err
	}
	if i.verifier, err = dynamiccertificates.NewStaticCAContent("grid-apiserver-client-ca", i.clientCA.certPEM); err != nil {
		return err
	}
	return i.ensureServing(ctx, now)
}

func ensureCA(ctx context.Context, path, commonName string, now time.Time) (*pair, error) {
	var ca *pair
	if _, err := readFile(ctx, path, func(content []byte) (err error) {
		ca, err = parseCAFile(content)
		return err
	}); err != nil {
		return nil, err
	}
	logger := klog.FromContext(ctx)
	if ca != nil {
		if ca.remaining(now) > caRenewBefore {
			return ca, nil
		}
		logger.Info("A CA is near its expiry and is replaced; all that trust it must load it again", "path", path, "notAfter", ca.cert.NotAfter)
	}
	made, err := newCA(commonName, now)
	if err != nil {
		return nil, err
	}
	if err := writeFile(path, made.file()); err != nil {
		if ca != nil && ca.remaining(now) > 0 {
			logger.Error(err, "The CA could not be replaced and is used further", "notAfter", ca.cert.NotAfter)
			return ca, nil
		}
		return nil, err
	}
	logger.V(2).Info("Made a CA", "path", path, "notAfter", made.cert.NotAfter)
	return made, nil
}

func (i *Identity) ensureServing(ctx context.Context, now time.Time) error {
	var p *pair
	if _, err := readFile(ctx, i.path(servingFile), func(content []byte) (err error) {
		p, err = parseFile(content)
		return err
	}); err != nil {
		return err
	}
	if p != nil && p.issuedBy(i.servingCA) && i.names.equal(p.cert.DNSNames, p.cert.IPAddresses) && p.remaining(now) > servingRenewBefore {
		i.serving.set(p)
		return nil
	}
	return i.renewServing(ctx, now)
}

// renewServing makes a serving certificate and uses it even if it cannot be
// written: it is signed by a CA that is on disk, so clients accept it all the same,
// and the next start makes another one.
func (i *Identity) renewServing(ctx context.Context, now time.Time) error {
	p, err := newServing(i.servingCA, i.names, now)
	if err != nil {
		return err
	}
	i.serving.set(p)
	logger := klog.FromContext(ctx)
	if err := writeFile(i.path(servingFile), p.file()); err != nil {
		logger.Error(err, "The new serving certificate is in use but could not be kept")
		return nil
	}
	logger.V(2).Info("Made a serving certificate", "path", i.path(servingFile), "notAfter", p.cert.NotAfter)
	return nil
}

func (i *Identity) path(name string) string {
	return filepath.Join(i.dir, pkiDirectory, name)
}

// Serving is the serving certificate for genericapiserver's
// SecureServingInfo.Cert. Beside an operator's own certificate (loaded with
// dynamiccertificates.NewDynamicServingContentFromFiles) it belongs into
// SNICerts: the kubeconfigs of this package ask for it by name.
func (i *Identity) Serving() dynamiccertificates.SNICertKeyContentProvider { return &i.serving }

// ServingCA is the PEM of the CA that signs the serving certificate.
func (i *Identity) ServingCA() []byte { return append([]byte{}, i.servingCA.certPEM...) }

// ClientCA verifies client certificates of the local identity. It also belongs
// into SecureServingInfo.ClientCA, or clients are not asked for a certificate.
func (i *Identity) ClientCA() dynamiccertificates.CAContentProvider { return i.verifier }

// KubeconfigPath is where WriteKubeconfig writes.
func (i *Identity) KubeconfigPath() string { return filepath.Join(i.dir, kubeProxyKubeconfig) }

// WriteKubeconfig writes the kubeconfig of the local identity for a server that
// listens on port. A file that says the same already is left alone.
func (i *Identity) WriteKubeconfig(ctx context.Context, port int) error {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.port = port
	return i.writeKubeconfigLocked(ctx)
}

func (i *Identity) writeKubeconfigLocked(ctx context.Context) error {
	return i.WriteClientKubeconfig(ctx, i.KubeconfigPath(), KubeProxy, serverURL(i.bind, i.port))
}
