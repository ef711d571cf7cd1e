// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
)

// Client names the holder of a client certificate: the user and the groups that
// it is authenticated as.
type Client struct {
	User   string
	Groups []string
}

// KubeProxy is the local identity. RBAC's default bindings know kube-proxy by its
// user name; the group is the one that hand-made clusters put into its certificate.
var KubeProxy = Client{User: user.KubeProxy, Groups: []string{"system:node-proxier"}}

// serverURL is how a client on this node reaches the server. A server that
// listens on all addresses is reached through loopback.
func serverURL(bind net.IP, port int) string {
	host := "127.0.0.1"
	if bind != nil && !bind.IsUnspecified() {
		host = bind.String()
	}
	u := url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(port))}
	return u.String()
}

// WriteClientKubeconfig writes to path a kubeconfig with which client reaches
// server, an https URL of this server. The client certificate is one of the local
// client CA. An existing file is kept as it is when it says the same, its
// certificate included; only the certificate is reused when something else
// differs. The file is replaced in one step and has mode 0600.
//
// It may be called concurrently with all other methods, but not for one path.
func (i *Identity) WriteClientKubeconfig(ctx context.Context, path string, client Client, server string) error {
	now := i.clock.Now()
	var existing []byte
	var credential *pair
	if _, err := readFile(ctx, path, func(content []byte) (err error) {
		existing = content
		credential, err = credentialOf(content)
		return err
	}); err != nil {
		return err
	}
	if credential != nil && !i.keeps(credential, client, now) {
		klog.FromContext(ctx).Info("The client certificate is renewed; its holder must load the file again", "path", path, "user", client.User, "notAfter", credential.cert.NotAfter)
		credential = nil
	}
	if credential == nil {
		var err error
		if credential, err = newClient(i.clientCA, client, now); err != nil {
			return err
		}
	}
	content, err := kubeconfig(server, i.servingCA.certPEM, client.User, &clientcmdapi.AuthInfo{
		ClientCertificateData: credential.certPEM,
		ClientKeyData:         credential.keyPEM,
	})
	if err != nil {
		return fmt.Errorf("kubeconfig %q: %w", path, err)
	}
	if bytes.Equal(content, existing) {
		return nil
	}
	return writeFile(path, content)
}

// keeps decides whether an existing client certificate is used further.
func (i *Identity) keeps(p *pair, client Client, now time.Time) bool {
	return p.issuedBy(i.clientCA) &&
		p.cert.Subject.CommonName == client.User &&
		slices.Equal(p.cert.Subject.Organization, client.Groups) &&
		slices.Contains(p.cert.ExtKeyUsage, x509.ExtKeyUsageClientAuth) &&
		// One that lasts as long as its CA cannot be renewed any further.
		(p.remaining(now) > clientRenewBefore || !p.cert.NotAfter.Before(i.clientCA.cert.NotAfter))
}

// credentialOf takes the client certificate out of a kubeconfig.
func credentialOf(content []byte) (*pair, error) {
	config, err := clientcmd.Load(content)
	if err != nil {
		return nil, err
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, errors.New("the kubeconfig has no current context")
	}
	user, ok := config.AuthInfos[current.AuthInfo]
	if !ok {
		return nil, errors.New("the kubeconfig has no credential")
	}
	return parsePair(user.ClientCertificateData, user.ClientKeyData)
}

// WriteTokenKubeconfig writes to path a kubeconfig with which user, who has a bearer
// token, reaches server, an https URL of this server. A file that says the same
// already is left alone, another one is replaced in one step. The mode is 0600. It
// may be called concurrently with all other methods, but not for one path.
func (i *Identity) WriteTokenKubeconfig(ctx context.Context, path, user, token, server string) error {
	content, err := kubeconfig(server, i.servingCA.certPEM, user, &clientcmdapi.AuthInfo{Token: token})
	if err != nil {
		return fmt.Errorf("kubeconfig %q: %w", path, err)
	}
	var existing []byte
	if _, err := readFile(ctx, path, func(content []byte) error {
		existing = content
		return nil
	}); err != nil {
		return err
	}
	if bytes.Equal(content, existing) {
		return nil
	}
	return writeFile(path, content)
}

// ClientConfig is how a client on this node reaches the server; it has no
// credential. It is known once there is a port.
func (i *Identity) ClientConfig() *rest.Config {
	i.lock.Lock()
	defer i.lock.Unlock()
	return &rest.Config{
		Host:            serverURL(i.bind, i.port),
		TLSClientConfig: rest.TLSClientConfig{CAData: i.ServingCA(), ServerName: serverName},
	}
}

func kubeconfig(server string, ca []byte, user string, credential *clientcmdapi.AuthInfo) ([]byte, error) {
	const name = "grid-apiserver"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server:                   server,
			CertificateAuthorityData: ca,
			// By the reserved name the server answers these clients with its
			// own certificate also where the operator's is the default one.
			TLSServerName: serverName,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: credential},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: user}},
		CurrentContext: name,
	})
}
