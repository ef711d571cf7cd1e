// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"context"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
)

// The resources that are served locally.
var (
	Services       = schema.GroupResource{Resource: "services"}
	Endpoints      = schema.GroupResource{Resource: "endpoints"}
	EndpointSlices = schema.GroupResource{Group: discoveryv1.GroupName, Resource: "endpointslices"}
	Nodes          = schema.GroupResource{Resource: "nodes"}
	Namespaces     = schema.GroupResource{Resource: "namespaces"}
	ServiceCIDRs   = schema.GroupResource{Group: networkingv1.GroupName, Resource: "servicecidrs"}
)

// Memory is what a Feed keeps over restarts of the process.
type Memory interface {
	NodeLabels(name string) (map[string]string, bool, error)
	SetNodeLabels(name string, labels map[string]string) error
	Requested(resource string) (bool, error)
	SetRequested(resource string) error
}

// FeedConfig is what a Feed is made of. All fields are required.
type FeedConfig struct {
	NodeName string
	// Client and Metadata talk to upstream without a timeout of their own.
	Client   kubernetes.Interface
	Metadata metadata.Interface
	Memory   Memory
	View     *View
	Domains  *NodeDomains
	// Mirrors of the resources that are served as upstream has them.
	Nodes, Namespaces, ServiceCIDRs *Mirror
}

// Feed follows upstream and tells the view and the mirrors what happens there.
type Feed struct {
	cfg     FeedConfig
	sources map[schema.GroupResource]*source
	// kubernetes is the source of the annotations of default/kubernetes.
	kubernetes *source

	requestEndpoints sync.Once
	endpoints        chan struct{} // closed when Endpoints have been asked for
	endpointsAtStart atomic.Bool   // an earlier process was asked for them

	rememberEndpoints sync.Once

	// labels are those last persisted; only the own Node's reflector uses them.
	labels map[string]string
}

// NewFeed returns a feed that does nothing before Run.
func NewFeed(cfg FeedConfig) *Feed {
	f := &Feed{cfg: cfg, kubernetes: &source{resource: "endpoints"}, endpoints: make(chan struct{}), sources: map[schema.GroupResource]*source{}}
	for _, gr := range []schema.GroupResource{Services, Endpoints, EndpointSlices, Nodes, Namespaces, ServiceCIDRs} {
		// Upstreams before Kubernetes 1.33 lack ServiceCIDRs.
		f.sources[gr] = &source{resource: gr.Resource, optional: gr == ServiceCIDRs}
	}
	return f
}

// Run follows upstream until ctx ends, and returns when all its watches have
// ended. It is called once.
func (f *Feed) Run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	if requested, err := f.cfg.Memory.Requested(Endpoints.Resource); err != nil {
		logger.Error(err, "Cannot tell whether Endpoints were in use, waiting for the first request")
	} else if requested {
		f.endpointsAtStart.Store(true)
		f.RequestEndpoints()
	}
	core := f.cfg.Client.CoreV1()
	view := f.cfg.View
	var wg sync.WaitGroup
	wg.Go(func() { f.followOwnNode(ctx) })
	wg.Go(func() {
		follow(ctx, f.sources[Services], core.Services(metav1.NamespaceAll), metav1.ListOptions{}, &corev1.Service{}, receiver[*corev1.Service]{
			set:     view.SetService,
			remove:  func(s *corev1.Service) { view.DeleteService(nameOf(&s.ObjectMeta), s.ResourceVersion) },
			replace: func(all []*corev1.Service, _ string) { view.ReplaceServices(all) },
		})
	})
	wg.Go(func() {
		follow(ctx, f.sources[EndpointSlices], f.cfg.Client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll), metav1.ListOptions{}, &discoveryv1.EndpointSlice{}, receiver[*discoveryv1.EndpointSlice]{
			set:     view.SetEndpointSlice,
			remove:  func(s *discoveryv1.EndpointSlice) { view.DeleteEndpointSlice(nameOf(&s.ObjectMeta), s.ResourceVersion) },
			replace: func(all []*discoveryv1.EndpointSlice, _ string) { view.ReplaceEndpointSlices(all) },
		})
	})
	wg.Go(func() { f.followEndpoints(ctx) })
	wg.Go(func() { f.followKubernetes(ctx) })
	wg.Go(func() {
		follow(ctx, f.sources[Namespaces], core.Namespaces(), metav1.ListOptions{}, &corev1.Namespace{}, mirrored[*corev1.Namespace](f.cfg.Namespaces))
	})
	wg.Go(func() {
		follow(ctx, f.sources[ServiceCIDRs], f.cfg.Client.NetworkingV1().ServiceCIDRs(), metav1.ListOptions{}, &networkingv1.ServiceCIDR{}, mirrored[*networkingv1.ServiceCIDR](f.cfg.ServiceCIDRs))
	})
	wg.Wait()
	f.cfg.Domains.Wait()
}

// mirrored returns the receiver that keeps a mirror.
func mirrored[T object](m *Mirror) receiver[T] {
	return receiver[T]{
		set:    func(t T) { m.Set(t) },
		remove: func(t T) { m.Delete(t) },
		replace: func(all []T, resourceVersion string) {
			objects := make([]object, 0, len(all))
			for _, t := range all {
				objects = append(objects, t)
			}
			m.Replace(objects, resourceVersion)
		},
		progress: m.Progress,
	}
}

func (f *Feed) followEndpoints(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-f.endpoints:
	}
	view := f.cfg.View
	follow(ctx, f.sources[Endpoints], f.cfg.Client.CoreV1().Endpoints(metav1.NamespaceAll), metav1.ListOptions{}, &corev1.Endpoints{}, receiver[*corev1.Endpoints]{
		set:    view.SetEndpoints,
		remove: func(e *corev1.Endpoints) { view.DeleteEndpoints(nameOf(&e.ObjectMeta), e.ResourceVersion) },
		replace: func(all []*corev1.Endpoints, _ string) {
			view.ReplaceEndpoints(all)
			f.endpointsArrived(ctx)
		},
	})
}

// endpointsArrived remembers for the next process that Endpoints are in use, now
// that they are known to be there.
func (f *Feed) endpointsArrived(ctx context.Context) {
	if f.endpointsAtStart.Load() {
		return
	}
	f.rememberEndpoints.Do(func() {
		if err := f.cfg.Memory.SetRequested(Endpoints.Resource); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot record that Endpoints are in use")
		}
	})
}

// followKubernetes follows the annotations of the Endpoints object
// default/kubernetes, also while nobody has asked for Endpoints.
func (f *Feed) followKubernetes(ctx context.Context) {
	view := f.cfg.View
	follow(ctx, f.kubernetes, f.cfg.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("endpoints")).Namespace(kubernetesService.Namespace),
		fieldName(kubernetesService.Name), &metav1.PartialObjectMetadata{}, receiver[*metav1.PartialObjectMetadata]{
			set:    func(m *metav1.PartialObjectMetadata) { view.SetKubernetesAnnotations(m.Annotations) },
			remove: func(*metav1.PartialObjectMetadata) { view.SetKubernetesAnnotations(nil) },
			replace: func(all []*metav1.PartialObjectMetadata, _ string) {
				if len(all) == 0 {
					view.SetKubernetesAnnotations(nil)
					return
				}
				view.SetKubernetesAnnotations(all[0].Annotations)
			},
		})
}

// RequestEndpoints starts to follow Endpoints, which most nodes never need.
func (f *Feed) RequestEndpoints() {
	f.requestEndpoints.Do(func() { close(f.endpoints) })
}

// EndpointsExpected reports whether an earlier process was asked for Endpoints:
// then this one is not complete without them.
func (f *Feed) EndpointsExpected() bool { return f.endpointsAtStart.Load() }

// Serves reports whether upstream has the resource, as far as is known.
func (f *Feed) Serves(gr schema.GroupResource) bool {
	s, ok := f.sources[gr]
	return ok && !s.Absent()
}

func fieldName(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
}
