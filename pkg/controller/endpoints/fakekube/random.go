// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package fakekube

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Random does random things to a cluster, the same for the same seed.
type Random struct {
	*rand.Rand
	cluster *Cluster
	// OnEndpoints and OnSlices say what other writers disturb.
	OnEndpoints, OnSlices bool
	// ByHand has users write Endpoints instead of pods.
	ByHand bool
	// Steady has no lag, no failures and no pods without a node.
	Steady bool

	count int
}

// NewRandom returns one for a cluster, which gets two nodes.
func NewRandom(cluster *Cluster, seed uint64) *Random {
	cluster.Put(Node("node1", "zone1"))
	cluster.Put(Node("node2", ""))
	return &Random{Rand: rand.New(rand.NewPCG(seed, 1)), cluster: cluster} //nolint:gosec // to be replayed
}

// pick returns one of the values.
func pick[T any](r *Random, values ...T) T {
	return values[r.IntN(len(values))]
}

// oneIn says yes with a probability of 1/n.
func (r *Random) oneIn(n int) bool {
	return r.IntN(n) == 0
}

func (r *Random) serviceName() string { return fmt.Sprint("s", r.IntN(4)) }

// Step does one thing and says which.
func (r *Random) Step() string {
	n := r.IntN(100)
	if r.Steady {
		n = r.IntN(60)
	}
	switch {
	case n < 40 && r.ByHand:
		return r.endpoints()
	case n < 40:
		return r.pod()
	case n < 55:
		return r.service()
	case n < 60:
		name := r.serviceName()
		r.removeService(name)
		return "remove service " + name
	case n < 65 && r.OnEndpoints:
		return r.disturbEndpoints()
	case n < 70 && r.OnSlices:
		return r.disturbSlice()
	case n < 85:
		return r.lag()
	case n < 90:
		r.failures(pick(r, 0, 0, 2, 5))
		return "change the rate of failures"
	}
	d := time.Duration(r.IntN(500)) * time.Millisecond
	if r.oneIn(10) {
		d *= 100
	}
	Pass(d)
	return fmt.Sprint("pass ", d)
}

// Calm ends lag and failures.
func (r *Random) Calm() {
	for _, resource := range Resources {
		r.cluster.Release(resource)
	}
	r.failures(0)
}

func (r *Random) lag() string {
	resource := pick(r, Resources...)
	switch r.IntN(4) {
	case 0:
		r.cluster.Hold(resource)
		return "hold " + resource
	case 1:
		r.cluster.Release(resource)
		return "release " + resource
	}
	r.cluster.Show(resource, 1+r.IntN(3))
	return "show some " + resource
}

func (r *Random) failures(oneIn int) {
	if oneIn == 0 {
		r.cluster.Fail(nil)
		return
	}
	random := rand.New(rand.NewPCG(r.Uint64(), 2)) //nolint:gosec // to be replayed
	r.cluster.Fail(func(string, string) error {
		if random.IntN(oneIn) == 0 {
			return apierrors.NewInternalError(errors.New("as the test wants"))
		}
		return nil
	})
}

func (r *Random) pod() string {
	r.count++
	name := fmt.Sprint("p", r.IntN(10))
	old := Get[*corev1.Pod](r.cluster, "pods", Namespace, name)
	if old != nil && r.oneIn(4) {
		r.cluster.Remove("pods", Namespace, name)
		if r.oneIn(2) {
			return "remove pod " + name
		}
		old = nil
	}
	ip := fmt.Sprint("10.0.0.", r.IntN(200))
	pod := Pod(name, pick(r, "a", "b", "c"), ip)
	pod.UID = types.UID(fmt.Sprint("pod-", r.count))
	pod.Spec.NodeName = pick(r, "node1", "node1", "node2", "")
	if r.Steady {
		pod.Spec.NodeName = "node1"
	}
	if r.oneIn(10) {
		pod.Spec.NodeName = "unknown"
	}
	pod.Labels["tier"] = pick(r, "x", "y")
	if !r.oneIn(3) {
		NamedPort("web", pick[int32](r, 80, 8080))(pod)
	}
	if r.oneIn(3) {
		pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: fmt.Sprintf("fd00::%x", 1+r.IntN(200))})
	}
	if r.oneIn(5) {
		pod.Spec.Hostname, pod.Spec.Subdomain = "host-"+name, r.serviceName()
	}
	if old != nil {
		// What a pod cannot change. Its labels, state and addresses can.
		pod.Spec.Containers, pod.Spec.Hostname, pod.Spec.Subdomain = old.Spec.Containers, old.Spec.Hostname, old.Spec.Subdomain
		if old.Spec.NodeName != "" {
			pod.Spec.NodeName = old.Spec.NodeName
		}
		pod.DeletionTimestamp = old.DeletionTimestamp
		if r.oneIn(2) {
			pod.Labels, pod.Status.PodIPs = old.Labels, old.Status.PodIPs
		}
	}
	switch r.IntN(8) {
	case 0, 1:
		Unready(pod)
	case 2:
		Terminating(pod)
	case 3:
		pod.Status.Phase = pick(r, corev1.PodSucceeded, corev1.PodFailed)
	case 4:
		pod.Status.PodIP, pod.Status.PodIPs = "", nil
	}
	r.cluster.Put(pod)
	return "put pod " + name
}

// endpoints writes a set of Endpoints, no address twice.
func (r *Random) endpoints() string {
	name := r.serviceName()
	if r.oneIn(5) {
		r.cluster.Remove("endpoints", Namespace, name)
		r.cluster.CollectGarbage()
		return "remove endpoints " + name
	}
	endpoints := Endpoints(name, func(e *corev1.Endpoints) { e.Subsets = nil })
	for _, port := range []int32{80, 81, 82}[:r.IntN(4)] {
		var subset corev1.EndpointSubset
		for i := range r.IntN(4) {
			address := corev1.EndpointAddress{IP: fmt.Sprintf("10.0.%d.%d", i, r.IntN(3))}
			if r.oneIn(3) {
				address.IP = fmt.Sprintf("fd00::%x:%x", 1+i, 1+r.IntN(3))
			}
			if r.oneIn(3) {
				subset.NotReadyAddresses = append(subset.NotReadyAddresses, address)
			} else {
				subset.Addresses = append(subset.Addresses, address)
			}
		}
		subset.Ports = []corev1.EndpointPort{{Name: "p", Port: port, Protocol: corev1.ProtocolTCP}}
		if len(subset.Addresses)+len(subset.NotReadyAddresses) > 0 {
			endpoints.Subsets = append(endpoints.Subsets, subset)
		}
	}
	switch r.IntN(8) {
	case 0:
		endpoints.Labels = map[string]string{discoveryv1.LabelSkipMirror: "true"}
	case 1:
		endpoints.Annotations = map[string]string{resourcelock.LeaderElectionRecordAnnotationKey: "{}"}
	case 2:
		endpoints.Labels = map[string]string{"team": "blue"}
		endpoints.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-01-01T00:00:00Z"}
	}
	r.cluster.Put(endpoints)
	return "put endpoints " + name
}

func (r *Random) service() string {
	name := r.serviceName()
	service := Service(name)
	r.count++
	service.UID = types.UID(fmt.Sprint("service-", r.count))
	service.Spec.Selector = map[string]string{"app": pick(r, "a", "b", "c")}
	if r.oneIn(2) {
		service.Spec.Selector["tier"] = pick(r, "x", "y")
	}
	if r.oneIn(2) {
		service.Labels = map[string]string{"team": pick(r, "red", "blue")}
	}
	switch r.IntN(4) {
	case 0:
		service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
	case 1:
		service.Spec.IPFamilies = pick(r, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol})
	}
	if r.oneIn(2) {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: "web", Port: 81, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromString("web"),
		})
	}
	service.Spec.PublishNotReadyAddresses = r.oneIn(4)
	switch r.IntN(8) {
	case 0:
		service.Spec.Type, service.Spec.ClusterIP = corev1.ServiceTypeExternalName, ""
	case 1, 2:
		service.Spec.Selector = nil
	case 3:
		service.Spec.ClusterIP = corev1.ClusterIPNone
		if r.oneIn(2) {
			service.Spec.Ports = nil
		}
	}
	if r.oneIn(6) {
		r.removeService(name)
		if r.Steady {
			Pass(time.Second)
		}
	}
	r.cluster.Put(service)
	return "put service " + name
}

// removeService also does what a garbage collector does.
func (r *Random) removeService(name string) {
	r.cluster.Remove("services", Namespace, name)
	r.cluster.CollectGarbage()
}

// CollectGarbage deletes the slices whose owner does not exist.
func (c *Cluster) CollectGarbage() {
	c.lock.Lock()
	defer c.lock.Unlock()
	owners := map[types.UID]bool{}
	for _, resource := range []string{"services", "endpoints"} {
		for _, object := range c.resources[resource].stored {
			owners[object.GetUID()] = true
		}
	}
	for key, slice := range c.resources["endpointslices"].stored {
		if references := slice.GetOwnerReferences(); len(references) > 0 && !owners[references[0].UID] {
			if err := c.delete("endpointslices", key); err != nil {
				panic(err) // it was there
			}
		}
	}
}

func (r *Random) disturbEndpoints() string {
	name := r.serviceName()
	endpoints := Get[*corev1.Endpoints](r.cluster, "endpoints", Namespace, name)
	if endpoints == nil {
		return "disturb nothing"
	}
	switch r.IntN(3) {
	case 0:
		r.cluster.Remove("endpoints", Namespace, name)
		return "delete endpoints " + name
	case 1:
		endpoints.Labels = map[string]string{"strange": "label"}
	default:
		endpoints.Subsets = Endpoints(name).Subsets
	}
	r.cluster.Put(endpoints)
	return "disturb endpoints " + name
}

func (r *Random) disturbSlice() string {
	slices := All[*discoveryv1.EndpointSlice](r.cluster, "endpointslices")
	keys := sortedKeys(slices)
	if len(keys) == 0 {
		return "disturb nothing"
	}
	slice := slices[pick(r, keys...)]
	switch r.IntN(4) {
	case 0:
		r.cluster.Remove("endpointslices", Namespace, slice.Name)
		return "delete slice " + slice.Name
	case 1:
		slice.Endpoints = nil
	case 2:
		slice.Labels[discoveryv1.LabelServiceName] = r.serviceName()
	default:
		slice.Labels["strange"] = "label"
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"192.0.2.9", "192.0.2.1"}})
	}
	r.cluster.Put(slice)
	return "disturb slice " + slice.Name
}
