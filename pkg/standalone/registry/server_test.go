// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericapi "k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/backend"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/service"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/scheme"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// It ends by itself, three seconds after a read that had to wait for the cache.
		goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"))
}

// server serves all kinds over HTTP, without authentication, admission and
// controllers.
type server struct {
	config  *restclient.Config
	dynamic dynamic.Interface
	clients kubernetes.Interface
}

func newServer(t *testing.T) *server {
	t.Helper()
	s, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	codecs := scheme.NewCodecs(s)
	stored := backend.New(backend.Options{
		Codec: func(resource schema.GroupResource) (runtime.Codec, error) {
			mediaType := runtime.ContentTypeProtobuf
			if resource.Group == superedgev1.GroupName {
				mediaType = runtime.ContentTypeJSON
			}
			return backend.NewCodec(codecs, mediaType, schema.GroupVersion{Group: resource.Group, Version: "v1"})
		},
		Uncached: []schema.GroupResource{corev1.Resource("events")},
	})
	t.Cleanup(stored.Stop)
	storage, err := registry.New(stored, registry.Config{
		Service: service.Config{
			ClusterIPRanges: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
			NodePortRange:   utilnet.PortRange{Base: 30000, Size: 2768},
		},
		EventTTL: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}

	config := genericapiserver.NewConfig(codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.ExternalAddress = "127.0.0.1:443"
	config.LoopbackClientConfig = &restclient.Config{}
	config.Authentication.Authenticator = anonymous.NewAuthenticator(nil)
	config.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	config.SkipOpenAPIInstallation = true
	generic, err := config.Complete(nil).New("test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(generic.Destroy)
	for version, resources := range storage {
		install(t, generic, s, codecs, version, resources)
	}
	waitReady(t, stored)

	web := httptest.NewServer(generic.Handler)
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	client := &restclient.Config{Host: web.URL, QPS: -1}
	clients, err := kubernetes.NewForConfig(client)
	if err != nil {
		t.Fatal(err)
	}
	dynamicClient, err := dynamic.NewForConfig(client)
	if err != nil {
		t.Fatal(err)
	}
	return &server{config: client, clients: clients, dynamic: dynamicClient}
}

func install(t *testing.T, generic *genericapiserver.GenericAPIServer, s *runtime.Scheme, codecs runtime.NegotiatedSerializer,
	version schema.GroupVersion, resources map[string]rest.Storage,
) {
	t.Helper()
	root := genericapiserver.APIGroupPrefix
	if version.Group == "" {
		root = genericapiserver.DefaultLegacyAPIPrefix
	}
	group := &genericapi.APIGroupVersion{
		Storage:                    resources,
		Root:                       root,
		GroupVersion:               version,
		OptionsExternalVersion:     &schema.GroupVersion{Version: "v1"},
		Serializer:                 codecs,
		ParameterCodec:             runtime.NewParameterCodec(s),
		Typer:                      s,
		Creater:                    s,
		Convertor:                  s,
		ConvertabilityChecker:      s,
		Defaulter:                  s,
		Namer:                      runtime.Namer(meta.NewAccessor()),
		UnsafeConvertor:            runtime.UnsafeObjectConvertor(s),
		TypeConverter:              managedfields.NewDeducedTypeConverter(),
		EquivalentResourceRegistry: runtime.NewEquivalentResourceRegistry(),
		Authorizer:                 generic.Authorizer,
		MinRequestTimeout:          time.Minute,
		MaxRequestBodyBytes:        3 << 20,
	}
	if _, _, err := group.InstallREST(generic.Handler.GoRestfulContainer); err != nil {
		t.Fatalf("%s: %v", version, err)
	}
	t.Cleanup(func() {
		for _, storage := range resources {
			storage.Destroy()
		}
	})
}

func waitReady(t *testing.T, stored *backend.Backend) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		last = stored.ReadinessCheck()
		return last == nil, nil
	})
	if err != nil {
		t.Fatal(last)
	}
}

// example returns an example of a kind, as a user would write it.
func example(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "scheme", "testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// exampleNames are those of all examples.
func exampleNames(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "scheme", "testdata", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	return names
}

// resource returns the client of an object's resource.
func (s *server) resource(object *unstructured.Unstructured) dynamic.ResourceInterface {
	plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	if object.GetKind() == "Endpoints" {
		plural.Resource = "endpoints"
	}
	if object.GetNamespace() == "" {
		return s.dynamic.Resource(plural)
	}
	return s.dynamic.Resource(plural).Namespace(object.GetNamespace())
}

func (s *server) create(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	created, err := s.resource(object).Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}
