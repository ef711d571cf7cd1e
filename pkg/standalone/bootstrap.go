// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	kubernetesService = "kubernetes"
	// bootstrapRetry is how long to wait after a failed attempt. The server is
	// its own only client then; a failure is one of the first milliseconds.
	bootstrapRetry = 20 * time.Millisecond
	// bootstrapAgain is how long one of the first objects is missing after it was
	// deleted. kube-apiserver looks every ten seconds and, for namespaces, minutes.
	bootstrapAgain = time.Second
)

// firstObjects are those that every cluster has. What is there already is left
// alone, what is deleted comes back.
type firstObjects struct {
	client     kubernetes.Interface
	ranges     []netip.Prefix
	advertised netip.AddrPort
	// missing tells that one of them was deleted. Capacity 1.
	missing chan struct{}
}

func newFirstObjects(client kubernetes.Interface, ranges []netip.Prefix, advertised netip.AddrPort) *firstObjects {
	return &firstObjects{client: client, ranges: ranges, advertised: advertised, missing: make(chan struct{}, 1)}
}

// follow has deletions noticed. The informers are those of the server.
func (f *firstObjects) follow(core coreinformers.Interface) error {
	for _, informer := range []cache.SharedIndexInformer{core.Namespaces().Informer(), core.Services().Informer()} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: f.onDelete}); err != nil {
			return err
		}
	}
	return nil
}

func (f *firstObjects) onDelete(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	switch object := object.(type) {
	case *corev1.Namespace:
		if !slices.Contains(firstNamespaces(), object.Name) {
			return
		}
	case *corev1.Service:
		if object.Namespace != metav1.NamespaceDefault || object.Name != kubernetesService {
			return
		}
	default:
		return
	}
	select {
	case f.missing <- struct{}{}:
	default: // it is known
	}
}

// make returns when they are there, or ctx has ended. The server is not ready
// before.
func (f *firstObjects) make(ctx context.Context) {
	logger := klog.FromContext(ctx)
	said := ""
	_ = wait.PollUntilContextCancel(ctx, bootstrapRetry, true, func(ctx context.Context) (bool, error) {
		err := f.makeOnce(ctx)
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			logger.Error(err, "Cannot make the first objects yet")
		}
		return err == nil, nil
	})
}

// keep makes again what is deleted, until ctx ends.
func (f *firstObjects) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.missing:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(bootstrapAgain): // what goes with the deleted one has gone by then
		}
		f.make(ctx)
	}
}

func firstNamespaces() []string {
	return []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}
}

func (f *firstObjects) makeOnce(ctx context.Context) error {
	for _, name := range firstNamespaces() {
		_, err := f.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	if err := makeServiceCIDR(ctx, f.client, f.ranges); err != nil {
		return err
	}
	service := kubernetesServiceFor(f.ranges[0], f.advertised)
	_, err := f.client.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("service %s: %w", service.Name, err)
	}
	return makeKubernetesEndpoints(ctx, f.client, f.advertised)
}

// makeServiceCIDR shows the configured ranges; changing the object changes nothing.
func makeServiceCIDR(ctx context.Context, client kubernetes.Interface, ranges []netip.Prefix) error {
	cidr := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: kubernetesService}}
	for _, r := range ranges {
		cidr.Spec.CIDRs = append(cidr.Spec.CIDRs, r.String())
	}
	made, err := client.NetworkingV1().ServiceCIDRs().Create(ctx, cidr, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = client.NetworkingV1().ServiceCIDRs().Get(ctx, cidr.Name, metav1.GetOptions{})
	}
	if err != nil {
		return fmt.Errorf("servicecidr %s: %w", cidr.Name, err)
	}
	if meta.IsStatusConditionTrue(made.Status.Conditions, networkingv1.ServiceCIDRConditionReady) {
		return nil
	}
	made.Status.Conditions = []metav1.Condition{{
		Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue, Reason: "Ready",
		Message: "Kubernetes Service CIDR is ready", LastTransitionTime: made.CreationTimestamp,
	}}
	if _, err := client.NetworkingV1().ServiceCIDRs().UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("status of servicecidr %s: %w", cidr.Name, err)
	}
	return nil
}

// kubernetesServiceFor is how pods are told where the API server is.
func kubernetesServiceFor(primary netip.Prefix, advertised netip.AddrPort) *corev1.Service {
	port := int32(6443) // what most installers take, for a server whose port means nothing
	if advertised.IsValid() {
		port = int32(advertised.Port())
	}
	single := corev1.IPFamilyPolicySingleStack
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: kubernetesService, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{"provider": "kubernetes", "component": "apiserver"},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: primary.Addr().Next().String(), IPFamilyPolicy: &single,
			SessionAffinity: corev1.ServiceAffinityNone,
			Ports:           []corev1.ServicePort{{Name: "https", Protocol: corev1.ProtocolTCP, Port: 443, TargetPort: intstr.FromInt32(port)}},
		},
	}
}

// makeKubernetesEndpoints puts the address of the server behind the Service
// kubernetes. A loopback address is no endpoint: then there is none.
func makeKubernetesEndpoints(ctx context.Context, client kubernetes.Interface, advertised netip.AddrPort) error {
	address := advertised.Addr().Unmap()
	if !address.IsValid() || address.IsLoopback() || address.IsUnspecified() {
		return nil
	}
	endpoints := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{
			Name: kubernetesService, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"},
		},
		Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: address.String()}},
			Ports:     []corev1.EndpointPort{{Name: "https", Port: int32(advertised.Port()), Protocol: corev1.ProtocolTCP}},
		}},
	}
	_, err := client.CoreV1().Endpoints(endpoints.Namespace).Create(ctx, endpoints, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("endpoints %s: %w", endpoints.Name, err)
	}
	family := discoveryv1.AddressTypeIPv4
	if address.Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	name, ready, protocol, port := "https", true, corev1.ProtocolTCP, int32(advertised.Port())
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: kubernetesService, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{discoveryv1.LabelServiceName: kubernetesService},
		},
		AddressType: family,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Protocol: &protocol, Port: &port}},
	}
	_, err = client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("endpointslice %s: %w", slice.Name, err)
	}
	return nil
}
