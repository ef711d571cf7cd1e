// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds is an API server with a handful of kinds, for tests of
// controllers that work on the metadata of any kind. The handlers and the REST
// storage are those of k8s.io/apiserver, over stores in memory, so deletion with
// finalizers, preconditions and patches behave as on a real server. There is no
// authentication, no admission, and no validation beyond that of metadata.
package kinds

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	genericapi "k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	restclient "k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/namespace"
)

// Server is a running API server.
type Server struct {
	// Config is for clients; it has no limit of requests.
	Config *restclient.Config

	mu     sync.Mutex
	writes []string
}

// Writes returns the requests so far that were no reads, "PUT /api/v1/...".
func (s *Server) Writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.writes...)
}

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	getter := &getter{t: t, codecs: codecs, resources: resources()}

	storage := map[schema.GroupVersion]map[string]rest.Storage{}
	for resource, kind := range resources() {
		version := kind.version
		if storage[version] == nil {
			storage[version] = map[string]rest.Storage{}
		}
		if resource == corev1.Resource("namespaces") {
			namespaces, err := namespace.NewStorage(getter)
			if err != nil {
				t.Fatal(err)
			}
			for path, s := range namespaces {
				storage[version][path] = s
			}
			continue
		}
		if storage[version][resource.Resource], err = newStorage(getter, scheme, resource, kind); err != nil {
			t.Fatal(err)
		}
	}

	s := &Server{}
	handler := genericapiserver.NewAPIServerHandler("kinds", codecs, s.chain, http.NotFoundHandler())
	groups := discovery.NewRootAPIsHandler(discovery.DefaultAddresses{DefaultAddress: "127.0.0.1"}, codecs)
	for version, storage := range storage {
		group := newGroup(scheme, codecs, version, storage)
		if _, _, err := group.InstallREST(handler.GoRestfulContainer); err != nil {
			t.Fatal(err)
		}
		if version.Group != "" {
			served := metav1.GroupVersionForDiscovery{GroupVersion: version.String(), Version: version.Version}
			groups.AddGroup(metav1.APIGroup{Name: version.Group, Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served})
		}
	}
	handler.GoRestfulContainer.Add(groups.WebService())
	handler.GoRestfulContainer.Add(discovery.NewLegacyRootAPIHandler(discovery.DefaultAddresses{DefaultAddress: "127.0.0.1"}, codecs, "/api").WebService())

	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	s.Config = &restclient.Config{Host: server.URL, QPS: -1, Transport: transport}
	return s
}

// chain wraps the handlers in what they need to have been done before.
func (s *Server) chain(handler http.Handler) http.Handler {
	handler = genericapifilters.WithRequestInfo(handler, &request.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	})
	handler = genericapifilters.WithAuditInit(handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			s.mu.Lock()
			s.writes = append(s.writes, r.Method+" "+r.URL.Path)
			s.mu.Unlock()
		}
		ctx, cancel := context.WithCancel(request.WithReceivedTimestamp(r.Context(), time.Now()))
		defer cancel()
		handler.ServeHTTP(w, r.WithContext(ctx))
	})
}

func newGroup(scheme *runtime.Scheme, codecs serializer.CodecFactory, version schema.GroupVersion, storage map[string]rest.Storage) *genericapi.APIGroupVersion {
	root := genericapiserver.APIGroupPrefix
	if version.Group == "" {
		root = genericapiserver.DefaultLegacyAPIPrefix
	}
	served := map[string][]string{}
	for path := range storage {
		served[path] = []string{version.String()}
	}
	return &genericapi.APIGroupVersion{
		Storage: storage, Root: root, GroupVersion: version, AllServedVersionsByResource: served,
		OptionsExternalVersion: &schema.GroupVersion{Version: "v1"},
		Serializer:             codecs,
		ParameterCodec:         runtime.NewParameterCodec(scheme),
		Typer:                  scheme, Creater: scheme, Convertor: scheme, ConvertabilityChecker: scheme, Defaulter: scheme,
		Namer:                      runtime.Namer(meta.NewAccessor()),
		UnsafeConvertor:            runtime.UnsafeObjectConvertor(scheme),
		TypeConverter:              managedfields.NewDeducedTypeConverter(),
		EquivalentResourceRegistry: runtime.NewEquivalentResourceRegistry(),
		MaxRequestBodyBytes:        3 << 20,
		MinRequestTimeout:          time.Minute,
	}
}

// kind is what is stored as one resource.
type kind struct {
	version      schema.GroupVersion
	namespaced   bool
	object, list runtime.Object
}

func resources() map[schema.GroupResource]kind {
	return map[schema.GroupResource]kind{
		corev1.Resource("namespaces"):  {corev1.SchemeGroupVersion, false, &corev1.Namespace{}, &corev1.NamespaceList{}},
		corev1.Resource("nodes"):       {corev1.SchemeGroupVersion, false, &corev1.Node{}, &corev1.NodeList{}},
		corev1.Resource("pods"):        {corev1.SchemeGroupVersion, true, &corev1.Pod{}, &corev1.PodList{}},
		corev1.Resource("configmaps"):  {corev1.SchemeGroupVersion, true, &corev1.ConfigMap{}, &corev1.ConfigMapList{}},
		corev1.Resource("events"):      {corev1.SchemeGroupVersion, true, &corev1.Event{}, &corev1.EventList{}},
		appsv1.Resource("deployments"): {appsv1.SchemeGroupVersion, true, &appsv1.Deployment{}, &appsv1.DeploymentList{}},
		appsv1.Resource("replicasets"): {appsv1.SchemeGroupVersion, true, &appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{}},
	}
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, kind := range resources() {
		scheme.AddKnownTypes(kind.version, kind.object, kind.list)
		scheme.AddKnownTypes(schema.GroupVersion{Group: kind.version.Group, Version: runtime.APIVersionInternal}, kind.object, kind.list)
	}
	for _, version := range []schema.GroupVersion{corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion} {
		metav1.AddToGroupVersion(scheme, version)
		if err := scheme.SetVersionPriority(version); err != nil {
			return nil, err
		}
	}
	scheme.AddTypeDefaultingFunc(&corev1.Namespace{}, func(obj any) { namespace.SetDefaults(obj.(*corev1.Namespace)) })
	return scheme, metav1.AddMetaToScheme(scheme)
}

// prefix is where the objects of a resource are stored.
func prefix(resource schema.GroupResource) string {
	return "/" + strings.TrimPrefix(resource.Group+"/"+resource.Resource, "/")
}
