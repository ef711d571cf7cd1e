// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/scheme"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/backend"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/crd"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The health check "log" of k8s.io/apiserver.
		goleak.IgnoreAnyFunction("k8s.io/apiserver/pkg/server/healthz.(*log).Check.func1.1"),
		goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/util/wait.Forever"),
		// The storage of a definition that went is kept for a second.
		goleak.IgnoreAnyFunction("k8s.io/apiextensions-apiserver/pkg/apiserver.(*crdHandler).tearDown"),
		goleak.IgnoreAnyFunction("k8s.io/apiextensions-apiserver/pkg/apiserver.(*crdHandler).tearDown.func1"),
		// A read at a resourceVersion leaves a timer of 3 s behind.
		goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"))
}

// certificate is one for all servers: making it takes longer than starting one.
var certificate = sync.OnceValues(func() (dynamiccertificates.SNICertKeyContentProvider, error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	return dynamiccertificates.NewStaticSNICertKeyContent("localhost", certificate, key)
})

// server is a front with nothing of its own, and what clients need.
type server struct {
	backend     *backend.Backend
	definitions apiextensionsclient.Interface
	objects     dynamic.Interface
	client      kubernetes.Interface
}

func start(t testing.TB) *server {
	t.Helper()
	serving, err := certificate()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	types, err := scheme.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{backend: backend.New(backend.Options{Codec: func(schema.GroupResource) (runtime.Codec, error) { panic("no resources") }})}
	t.Cleanup(s.backend.Stop)

	pem, _ := serving.CurrentCertKeyContent()
	loopback := &rest.Config{
		Host: "https://" + listener.Addr().String(), BearerToken: "secret", QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: pem, ServerName: "localhost"},
		WarningHandler:  rest.NoWarnings{},
	}
	config := genericapiserver.NewConfig(scheme.NewCodecs(types))
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.SecureServing = &genericapiserver.SecureServingInfo{Listener: listener, Cert: serving}
	config.LoopbackClientConfig = loopback
	config.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	config.ExternalAddress = listener.Addr().String()
	config.SkipOpenAPIInstallation = true
	extensions, err := crd.New(config, s.backend, genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	front, err := config.Complete(nil).New("front", extensions.GenericAPIServer)
	if err != nil {
		t.Fatal(err)
	}
	mux := front.Handler.NonGoRestfulMux
	static := cached.Static(&spec.Swagger{SwaggerProps: spec.SwaggerProps{Swagger: "2.0", Info: &spec.Info{}, Paths: &spec.Paths{}}}, "static")
	documents := crd.Front{Groups: front.DiscoveryGroupManager, V2: handler.NewOpenAPIServiceLazy(static), StaticV2: static, V3: handler3.NewOpenAPIService()}
	documents.V2.RegisterOpenAPIVersionedService("/openapi/v2", mux)
	if err := documents.V3.RegisterOpenAPIV3VersionedService("/openapi/v3", mux); err != nil {
		t.Fatal(err)
	}
	if err := extensions.Publish(documents); err != nil {
		t.Fatal(err)
	}
	s.run(t, front, extensions)

	s.definitions = apiextensionsclient.NewForConfigOrDie(loopback)
	s.objects = dynamic.NewForConfigOrDie(loopback)
	s.client = kubernetes.NewForConfigOrDie(loopback)
	began := time.Now()
	eventually(t, "ready", func(ctx context.Context) (bool, error) {
		_, err := s.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Raw()
		return err == nil && s.backend.ReadinessCheck() == nil, nil
	})
	t.Log("ready after", time.Since(began))
	return s
}

func (s *server) run(t testing.TB, front *genericapiserver.GenericAPIServer, extensions *crd.Server) {
	ctx, stop := context.WithCancel(context.Background())
	front.ShutdownTimeout = 50 * time.Millisecond
	done := make(chan error, 1)
	go func() { done <- front.PrepareRun().RunWithContext(ctx) }()
	t.Cleanup(func() {
		if s.client != nil { // all clients share one transport
			utilnet.CloseIdleConnectionsFor(s.client.CoreV1().RESTClient().(*rest.RESTClient).Client.Transport)
		}
		stop()
		if err := <-done; err != nil {
			t.Errorf("running the server: %v", err)
		}
		extensions.Stop()
	})
}

func eventually(t testing.TB, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 2*time.Millisecond, 20*time.Second, true, condition); err != nil {
		t.Fatalf("not %s: %v", what, err)
	}
}

// object parses YAML in its shortest form.
func object(apiVersion, name string, content map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "Widget"}}
	for key, value := range content {
		out.Object[key] = value
	}
	out.SetName(name)
	return out
}

// define creates a definition and waits until it counts.
func (s *server) define(t testing.TB, definition *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if _, err := s.definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), definition, createOptions); err != nil {
		t.Fatal(err)
	}
	s.waitServed(t, definition.Spec.Group)
}

// waitServed waits until clients can discover the group.
func (s *server) waitServed(t testing.TB, group string) {
	t.Helper()
	eventually(t, "served", func(context.Context) (bool, error) {
		_, err := s.client.Discovery().ServerResourcesForGroupVersion(group + "/v1")
		return err == nil, nil
	})
}
