// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/common"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/backing"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/install"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/scheme"
	"github.com/grid-apiserver/grid-apiserver/pkg/storage/memory"
)

// initialRevision is in the range that a node's view has, far from 0 and 1.
const initialRevision uint64 = 1_800_000_000_000_000

const (
	asJSON     = "application/json"
	asProtobuf = "application/vnd.kubernetes.protobuf"
	asTable    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asPartial  = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	asPartials = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

var (
	servicesResource = schema.GroupResource{Resource: "services"}
	slicesResource   = schema.GroupResource{Group: discoveryv1.GroupName, Resource: "endpointslices"}
)

// server is a generic API server over stores in memory, with what it was asked.
type server struct {
	*httptest.Server
	stores map[schema.GroupResource]*memory.Store

	mu       sync.Mutex
	requests []*url.URL
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{stores: newStores(t)}
	apiScheme, err := scheme.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	codecs := scheme.NewCodecs(apiScheme)
	getter := backing.NewOptionsGetter(scheme.NewStorageCodec(codecs), s.stores, nil)

	config := genericapiserver.NewConfig(codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.ExternalAddress = "127.0.0.1:443"
	config.LoopbackClientConfig = &restclient.Config{}
	config.Authentication.Authenticator = anonymous.NewAuthenticator(nil)
	config.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(
		func(common.ReferenceCallback) map[string]common.OpenAPIDefinition { return nil },
		openapinamer.NewDefinitionNamer(apiScheme))
	config.OpenAPIV3Config.IgnorePrefixes = install.IgnorePrefixes()

	infos, readiness, err := install.NewAPIGroupInfos(apiScheme, codecs, runtime.NewParameterCodec(apiScheme), getter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(readiness.Destroy)
	generic, err := config.Complete(nil).New("test", genericapiserver.NewEmptyDelegate())
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

	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.URL)
		s.mu.Unlock()
		generic.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s
}

func newStores(t *testing.T) map[schema.GroupResource]*memory.Store {
	t.Helper()
	types := map[string][2]runtime.Object{
		"services":       {&corev1.Service{}, &corev1.ServiceList{}},
		"endpoints":      {&corev1.Endpoints{}, &corev1.EndpointsList{}},
		"endpointslices": {&discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{}},
		"nodes":          {&corev1.Node{}, &corev1.NodeList{}},
		"namespaces":     {&corev1.Namespace{}, &corev1.NamespaceList{}},
		"servicecidrs":   {&networkingv1.ServiceCIDR{}, &networkingv1.ServiceCIDRList{}},
	}
	stores := map[schema.GroupResource]*memory.Store{}
	for _, resource := range install.Resources() {
		examples := types[resource.Resource]
		store, err := memory.New(memory.Config{
			GroupResource:   resource,
			ResourcePrefix:  "/" + resource.Resource,
			NewFunc:         examples[0].DeepCopyObject,
			NewListFunc:     examples[1].DeepCopyObject,
			InitialRevision: initialRevision,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Stop)
		stores[resource] = store
	}
	return stores
}

// put stores the object as a controller of the view does: the store owns it
// from now on. A nil object deletes the key.
func (s *server) put(t *testing.T, resource schema.GroupResource, key string, object runtime.Object) uint64 {
	t.Helper()
	revision, err := s.stores[resource].Apply(memory.Change{Key: "/" + resource.Resource + "/" + key, Object: object})
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func (s *server) client(t *testing.T, contentType string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(&restclient.Config{
		Host:          s.URL,
		QPS:           -1,
		ContentConfig: restclient.ContentConfig{ContentType: contentType},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// lists counts the LIST requests so far.
func (s *server) lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, u := range s.requests {
		if watching, _ := strconv.ParseBool(u.Query().Get("watch")); !watching {
			count++
		}
	}
	return count
}

// request sends a request and returns the response with its whole body.
func (s *server) request(t *testing.T, method, path, accept string) (*http.Response, []byte) {
	t.Helper()
	response := s.open(t, t.Context(), method, path, accept)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, body
}

func (s *server) open(t *testing.T, ctx context.Context, method, path, accept string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := s.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// get decodes the JSON answer to a GET and fails the test unless it is a 200.
func get[T any](t *testing.T, s *server, path, accept string) T {
	t.Helper()
	response, body := s.request(t, http.MethodGet, path, accept)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s: %s", path, response.Status, body)
	}
	var result T
	if err := json.Unmarshal(body, &result); err != nil {
		t.Fatalf("GET %s: %v in %s", path, err, body)
	}
	return result
}

// getStatus decodes the Status of a GET that must fail with the code.
func getStatus(t *testing.T, s *server, path string, code int) (metav1.Status, http.Header) {
	t.Helper()
	response, body := s.request(t, http.MethodGet, path, asJSON)
	if response.StatusCode != code {
		t.Fatalf("GET %s: got %s, want %d: %s", path, response.Status, code, body)
	}
	var status metav1.Status
	if err := json.Unmarshal(body, &status); err != nil {
		t.Fatalf("GET %s: %v in %s", path, err, body)
	}
	if int(status.Code) != code {
		t.Errorf("GET %s: the Status says %d, the header %d", path, status.Code, code)
	}
	return status, response.Header
}

// event is one event of a watch in JSON.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

func (e event) metadata(t *testing.T) metav1.PartialObjectMetadata {
	t.Helper()
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(e.Object, &object); err != nil {
		t.Fatalf("%v in %s", err, e.Object)
	}
	return object
}

// stream is a watch in JSON. next waits for an event, at most five seconds.
type stream struct {
	t      *testing.T
	events chan event
}

func (s *server) watch(t *testing.T, path, accept string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	response := s.open(t, ctx, http.MethodGet, path+separator+"watch=1", accept)
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		t.Fatalf("WATCH %s: %s: %s", path, response.Status, body)
	}
	w := &stream{t: t, events: make(chan event)}
	go func() {
		defer close(w.events)
		defer response.Body.Close()
		for decoder := json.NewDecoder(response.Body); ; {
			var e event
			if decoder.Decode(&e) != nil {
				return
			}
			select {
			case w.events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return w
}

func (w *stream) next() event {
	w.t.Helper()
	select {
	case e, ok := <-w.events:
		if !ok {
			w.t.Fatal("the watch has ended")
		}
		return e
	case <-time.After(30 * time.Second):
		w.t.Fatal("no event within 30 s")
	}
	return event{}
}

func service(name string, change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         "default",
			Name:              name,
			UID:               "f3b0a5d2-0000-4000-8000-000000000000",
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
			Labels:            map[string]string{"app": name},
			Annotations:       map[string]string{"topologyKeys": `["zone1"]`},
		},
		Spec: corev1.ServiceSpec{
			Type:       corev1.ServiceTypeClusterIP,
			ClusterIP:  "10.96.0.10",
			ClusterIPs: []string{"10.96.0.10"},
			Ports:      []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}},
			Selector:   map[string]string{"app": name},
		},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

func labelled(key, value string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Labels[key] = value }
}
