// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

const (
	userAgent = "likeness/1"
	// exchangeTimeout bounds one request; the slowest waits three seconds for a revision that is too large.
	exchangeTimeout = 30 * time.Second
)

// side is one of the two ways of a request.
type side struct {
	// id is part of the names of what the side makes. It is one byte on both sides, as the width of columns depends on it.
	id    string
	title string
	host  *lab.Host
	base  string
	// http2 is what clients get without asking for anything.
	http2, http1 *http.Transport
	kubeconfig   string
}

func newSide(id, title string, host *lab.Host, config *rest.Config) (*side, error) {
	s := &side{id: id, title: title, host: host, base: config.Host, kubeconfig: filepath.Join(cluster.Dir, "likeness-"+id+".kubeconfig")}
	anonymous := rest.AnonymousClientConfig(config)
	tlsConfig, err := rest.TLSConfigFor(anonymous)
	if err != nil {
		return nil, err
	}
	transport := func() *http.Transport {
		return &http.Transport{DialContext: config.Dial, TLSClientConfig: tlsConfig.Clone(), DisableCompression: true}
	}
	s.http1, s.http2 = transport(), transport()
	s.http1.TLSClientConfig.NextProtos = []string{"http/1.1"}
	s.http1.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	s.http2.ForceAttemptHTTP2 = true

	file := clientcmdapi.NewConfig()
	file.Clusters["cluster"] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile,
	}
	file.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: lab.AdminToken}
	file.Contexts["context"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	file.CurrentContext = "context"
	return s, clientcmd.WriteToFile(*file, s.kubeconfig)
}

// open sends a request and returns its answer as soon as the headers are there. Redirects are not followed.
func (s *side) open(ctx context.Context, r request) (*http.Response, error) {
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	httpRequest, err := http.NewRequestWithContext(ctx, r.method, s.base+r.path, body)
	if err != nil {
		return nil, err
	}
	httpRequest.Header.Set("User-Agent", userAgent)
	if r.token != "" {
		httpRequest.Header.Set("Authorization", "Bearer "+r.token)
	}
	if r.body != "" {
		httpRequest.Header.Set("Content-Type", "application/json")
	}
	for _, header := range r.headers {
		name, value, _ := strings.Cut(header, ":")
		if value = strings.TrimSpace(value); value == "" {
			httpRequest.Header.Del(name)
		} else {
			httpRequest.Header.Set(name, value)
		}
	}
	if r.http1 {
		return s.http1.RoundTrip(httpRequest)
	}
	return s.http2.RoundTrip(httpRequest)
}

// request is what is sent, with nothing left to fill in.
type request struct {
	method, path string
	headers      []string
	body         string
	token        string
	http1        bool
}
