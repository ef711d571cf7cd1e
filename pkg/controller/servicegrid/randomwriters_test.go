// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
)

// template returns a spec that the API server accepts. It sets nothing that the API server would allocate, because then
// the result would depend on what it has allocated before: the tables of desiredSpec are about that.
func (r *run) template(headless bool) corev1.ServiceSpec {
	spec := corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP}
	if headless {
		spec.ClusterIP = corev1.ClusterIPNone
	} else {
		spec.Type = pick(r, []corev1.ServiceType{
			corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName,
		})
	}
	for i := range 1 + r.IntN(3) {
		port := corev1.ServicePort{Name: fmt.Sprint("p", i), Port: int32(80 + i*10 + r.IntN(2))}
		if r.IntN(2) == 0 {
			port.Protocol = pick(r, []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP})
			port.TargetPort = pick(r, []intstr.IntOrString{intstr.FromInt32(8080), intstr.FromString("web")})
		}
		spec.Ports = append(spec.Ports, port)
	}
	spec.Selector = r.someOf("app", "tier")
	if r.IntN(2) == 0 {
		spec.SessionAffinity = pick(r, []corev1.ServiceAffinity{corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP})
	}
	spec.PublishNotReadyAddresses = r.IntN(2) == 0
	switch spec.Type {
	case corev1.ServiceTypeExternalName:
		spec.ExternalName = pick(r, []string{"example.com", "example.org"})
		return spec
	case corev1.ServiceTypeClusterIP:
		if r.IntN(3) == 0 && !headless {
			spec.ExternalIPs = []string{"192.0.2.1"}
		}
	case corev1.ServiceTypeLoadBalancer:
		if r.IntN(3) == 0 {
			spec.AllocateLoadBalancerNodePorts = new(r.IntN(2) == 0)
		}
		if r.IntN(2) == 0 {
			spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}
	}
	if r.IntN(3) == 0 {
		spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
	}
	if r.IntN(3) == 0 {
		spec.TrafficDistribution = new("PreferSameZone")
	}
	return spec
}

// otherWriter writes Services as users and other controllers do.
func (r *run) otherWriter() {
	grid := pick(r, gridNames)
	key := types.NamespacedName{Namespace: namespace, Name: grid + "-svc"}
	service := r.api.service(key)
	if service == nil {
		r.createForeign(key, grid)
		return
	}
	switch n := r.IntN(10); {
	case n < 2:
		r.trace("delete service %s", key.Name)
		r.must(r.api.remove(servicesResource, key))
	case n < 3:
		r.copyService(service)
	case n < 4:
		r.changeOwnership(key, grid)
	case n < 7:
		r.trace("label service %s", key.Name)
		name := pick(r, []string{"other1", "other2"})
		r.must(r.api.edit(servicesResource, key, func(obj metav1.Object) {
			if r.others[obj.GetUID()] == nil {
				r.others[obj.GetUID()] = map[string]string{}
			}
			value := pick(r, []string{"x", "y"})
			obj.SetLabels(with(obj.GetLabels(), name, value))
			obj.SetAnnotations(with(obj.GetAnnotations(), name, value))
			r.others[obj.GetUID()][name] = value
		}))
	default:
		r.trace("spoil service %s", key.Name)
		r.must(r.api.edit(servicesResource, key, func(obj metav1.Object) { r.spoil(obj.(*corev1.Service)) }))
	}
}

// spoil edits what the controller has written, if it has.
func (r *run) spoil(service *corev1.Service) {
	name := pick(r, []string{"l1", "l2", superedgev1.LabelGridUniqKey})
	if _, ok := service.Labels[name]; ok {
		service.Labels[name] = "spoilt"
	}
	for _, name := range []string{"a1", superedgev1.AnnotationTopologyKeys} {
		if _, ok := service.Annotations[name]; ok && r.IntN(2) == 0 {
			delete(service.Annotations, name)
		}
	}
	if r.IntN(2) == 0 {
		service.Spec.Selector = map[string]string{"spoilt": "true"}
	}
	if r.IntN(2) == 0 {
		service.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		service.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(7))}}
	}
	if len(service.Spec.Ports) > 0 && r.IntN(2) == 0 {
		service.Spec.Ports = service.Spec.Ports[:1]
		service.Spec.Ports[0].AppProtocol = new("spoilt")
	}
}

// createForeign creates a Service with the name of that of grid: one of somebody else, or one to be adopted.
func (r *run) createForeign(key types.NamespacedName, grid string) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	service.Spec = r.template(grid == gridNames[0])
	kind := pick(r, []string{"adoptable", "adoptable", "unlabelled", "controlled"})
	if kind != "unlabelled" {
		service.Labels = map[string]string{superedgev1.LabelGridSelector: grid}
	}
	if kind == "controlled" {
		service.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Other", Name: "x", UID: "other", Controller: new(true)}}
	}
	r.trace("create %s service %s", kind, key.Name)
	r.must(r.api.create(service))
}

// copyService creates a copy under another name, with all that it has copied. With its owner it is surplus.
func (r *run) copyService(service *corev1.Service) {
	service.Name = fmt.Sprintf("copy-%d", r.IntN(3))
	service.ResourceVersion, service.UID = "", ""
	service.Spec = corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}
	if r.IntN(3) == 0 {
		service.OwnerReferences = nil
	}
	if r.IntN(3) == 0 {
		delete(service.Labels, superedgev1.LabelGridSelector)
	}
	r.trace("create the copy %s, owners %d", service.Name, len(service.OwnerReferences))
	_ = r.api.create(service)
}

// changeOwnership takes the label from the Service or gives it, or takes the controller from it.
func (r *run) changeOwnership(key types.NamespacedName, grid string) {
	r.must(r.api.edit(servicesResource, key, func(obj metav1.Object) {
		_, labelled := obj.GetLabels()[superedgev1.LabelGridSelector]
		switch {
		case labelled && r.IntN(2) == 0:
			r.trace("take the owners of service %s", key.Name)
			obj.SetOwnerReferences(nil)
		case labelled:
			r.trace("take the label of service %s", key.Name)
			delete(obj.GetLabels(), superedgev1.LabelGridSelector)
		default:
			r.trace("give service %s the label", key.Name)
			obj.SetLabels(with(obj.GetLabels(), superedgev1.LabelGridSelector, grid))
		}
	}))
}

func with(m map[string]string, key, value string) map[string]string {
	result := map[string]string{key: value}
	for k, v := range m {
		if k != key {
			result[k] = v
		}
	}
	return result
}

// collectGarbage deletes the Services whose ServiceGrid is gone. It returns false if there are none.
func (r *run) collectGarbage() bool {
	uids := map[types.UID]bool{}
	for _, key := range r.api.keys(gridsResource) {
		uids[r.api.grid(key).UID] = true
	}
	found := false
	for _, key := range r.api.keys(servicesResource) {
		controller := metav1.GetControllerOf(r.api.service(key))
		if controller != nil && controller.Kind == "ServiceGrid" && !uids[controller.UID] {
			r.trace("collect service %s", key.Name)
			r.must(r.api.remove(servicesResource, key))
			found = true
		}
	}
	return found
}
