// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	openapicommon "k8s.io/kube-openapi/pkg/common"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/backing"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/install"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/scheme"
	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
	"github.com/grid-apiserver/grid-apiserver/pkg/watchcache"
)

// upstream stands for kube-apiserver: it serves the resources that the view is
// made of from memory, reviews tokens and access, and answers and records
// everything else. Its revisions are small and count over all resources, as
// etcd's do.
type upstream struct {
	stores  map[schema.GroupResource]*memory.Store
	handler http.Handler
	server  *http.Server
	address string
	ca      []byte

	writes sync.Mutex // serialises put and remove

	mu       sync.Mutex
	link     *link // nil while stopped
	revision uint64
	requests []seen
	lacks    map[string]bool
	expired  uint64        // watches from below it get 410
	held     chan struct{} // not nil: requests wait until it is closed
}

// object is what the stored types have in common.
type object interface {
	runtime.Object
	metav1.Object
}

var (
	newObjects = map[schema.GroupResource][2]runtime.Object{
		watchcache.Services:       {&corev1.Service{}, &corev1.ServiceList{}},
		watchcache.Endpoints:      {&corev1.Endpoints{}, &corev1.EndpointsList{}},
		watchcache.EndpointSlices: {&discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{}},
		watchcache.Nodes:          {&corev1.Node{}, &corev1.NodeList{}},
		watchcache.Namespaces:     {&corev1.Namespace{}, &corev1.NamespaceList{}},
		watchcache.ServiceCIDRs:   {&networkingv1.ServiceCIDR{}, &networkingv1.ServiceCIDRList{}},
	}
	created = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
)

// newUpstream returns an upstream that serves nobody yet, with objects in it.
func newUpstream(t testing.TB, objects ...object) *upstream {
	t.Helper()
	u := &upstream{
		stores: map[schema.GroupResource]*memory.Store{}, address: "127.0.0.1:0",
		revision: 100, lacks: map[string]bool{},
	}
	for gr, examples := range newObjects {
		store, err := memory.New(memory.Config{
			GroupResource: gr, ResourcePrefix: "/" + gr.Resource,
			NewFunc: examples[0].DeepCopyObject, NewListFunc: examples[1].DeepCopyObject, InitialRevision: u.revision,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Stop)
		u.stores[gr] = store
	}
	u.handler = u.newResources(t)
	certificate, ca := selfSigned(t)
	u.ca = ca
	u.server = &http.Server{
		Handler: u, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
	}
	t.Cleanup(func() {
		u.release()
		u.stop()
		u.server.Close()
	})
	u.put(t, objects...)
	return u
}

// startUpstream returns an upstream that serves objects.
func startUpstream(t testing.TB, objects ...object) *upstream {
	t.Helper()
	u := newUpstream(t, objects...)
	u.start(t)
	return u
}

func (u *upstream) newResources(t testing.TB) http.Handler {
	t.Helper()
	apis, err := scheme.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	codecs := scheme.NewCodecs(apis)
	getter := backing.NewOptionsGetter(scheme.NewStorageCodec(codecs), u.stores, nil)
	config := genericapiserver.NewConfig(codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.ExternalAddress = "127.0.0.1:443"
	config.LoopbackClientConfig = &rest.Config{}
	config.Authentication.Authenticator = anonymous.NewAuthenticator(nil)
	config.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(
		func(openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition { return nil },
		openapi.NewDefinitionNamer(apis))
	config.OpenAPIV3Config.IgnorePrefixes = install.IgnorePrefixes()
	infos, readiness, err := install.NewAPIGroupInfos(apis, codecs, runtime.NewParameterCodec(apis), getter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(readiness.Destroy)
	generic, err := config.Complete(nil).New("upstream", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(generic.Destroy)
	if err := install.Install(generic, infos); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := readiness.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	return generic.Handler
}

// start listens: on a new port at first, on the same one later.
func (u *upstream) start(t testing.TB) {
	t.Helper()
	l := &link{Listener: listen(t, u.address), conns: map[net.Conn]struct{}{}}
	u.address = l.Addr().String()
	u.mu.Lock()
	u.link = l
	u.mu.Unlock()
	go func() { _ = u.server.ServeTLS(l, "", "") }()
}

// stop closes all connections; new ones are refused by the kernel.
func (u *upstream) stop() {
	u.mu.Lock()
	l := u.link
	u.link = nil
	u.mu.Unlock()
	if l != nil {
		l.Close()
		l.setCut(true)
	}
}

// cut ends all connections, and each new one at once, until heal.
func (u *upstream) cut()  { u.current().setCut(true) }
func (u *upstream) heal() { u.current().setCut(false) }

func (u *upstream) current() *link {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.link
}

// hold lets requests that come from now on wait until release.
func (u *upstream) hold() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.held = make(chan struct{})
}

func (u *upstream) release() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.held != nil {
		close(u.held)
		u.held = nil
	}
}

// forget makes upstream answer 410 to watches from before now.
func (u *upstream) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.expired = u.revision
}

// put stores copies of objects, each under a new revision.
func (u *upstream) put(t testing.TB, objects ...object) {
	t.Helper()
	for _, o := range objects {
		o := o.DeepCopyObject().(object)
		if o.GetUID() == "" {
			o.SetUID(types.UID(o.GetNamespace() + "." + o.GetName()))
		}
		o.SetCreationTimestamp(created)
		u.commit(t, o, o)
	}
}

// remove deletes objects, each under a new revision.
func (u *upstream) remove(t testing.TB, objects ...object) {
	t.Helper()
	for _, o := range objects {
		u.commit(t, o, nil)
	}
}

func (u *upstream) commit(t testing.TB, o object, stored runtime.Object) {
	t.Helper()
	u.writes.Lock()
	defer u.writes.Unlock()
	u.mu.Lock()
	u.revision++
	revision := u.revision
	u.mu.Unlock()
	gr := resourceOf(o)
	key := "/" + gr.Resource + "/" + o.GetName()
	if o.GetNamespace() != "" {
		key = "/" + gr.Resource + "/" + o.GetNamespace() + "/" + o.GetName()
	}
	if _, err := u.stores[gr].Apply(memory.Change{Key: key, Object: stored, Revision: revision}); err != nil {
		t.Fatal(err)
	}
	for other, store := range u.stores {
		if other != gr {
			store.Advance(revision)
		}
	}
}

func resourceOf(o runtime.Object) schema.GroupResource {
	switch o.(type) {
	case *corev1.Service:
		return watchcache.Services
	case *corev1.Endpoints:
		return watchcache.Endpoints
	case *discoveryv1.EndpointSlice:
		return watchcache.EndpointSlices
	case *corev1.Node:
		return watchcache.Nodes
	case *corev1.Namespace:
		return watchcache.Namespaces
	}
	return watchcache.ServiceCIDRs
}

// config is the connection to upstream of a holder of token.
func (u *upstream) config(token string) *rest.Config {
	return &rest.Config{
		Host: "https://" + u.address, BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: u.ca},
	}
}

func (u *upstream) client(t testing.TB) kubernetes.Interface {
	t.Helper()
	return newClient(t, u.config(adminToken))
}

func selfSigned(t testing.TB) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "upstream"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
