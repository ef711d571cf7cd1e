// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/util/dryrun"
)

// allocator is what the Store calls around its writes.
type allocator struct {
	pools *pools
}

func (a *allocator) beginCreate(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
	service := obj.(*corev1.Service)
	linkClusterIPs(service, nil)
	r := a.pools.reserve(service.UID, newHeld(), dryrun.IsDryRun(options.DryRun))
	return begin(ctx, r, service, func() error {
		if err := a.pools.completeFamilies(service, nil); err != nil {
			return err
		}
		if err := allocateClusterIPs(service, r); err != nil {
			return err
		}
		return allocateNodePorts(service, r)
	})
}

func (a *allocator) beginUpdate(ctx context.Context, obj, oldObj runtime.Object, options *metav1.UpdateOptions) (genericregistry.FinishFunc, error) {
	service, old := obj.(*corev1.Service), oldObj.(*corev1.Service)
	carryOverAllocated(service, old)
	linkClusterIPs(service, old)
	r := a.pools.reserve(old.UID, heldBy(old), dryrun.IsDryRun(options.DryRun))
	return begin(ctx, r, service, func() error {
		if err := a.pools.completeFamilies(service, old); err != nil {
			return err
		}
		if err := updateClusterIPs(service, old, r); err != nil {
			return err
		}
		return updateNodePorts(service, old, r)
	})
}

// afterDelete is called once a Service is gone, or would be in a dry run; twice,
// if two writes have taken its last finalizer away.
func (a *allocator) afterDelete(obj runtime.Object, options *metav1.DeleteOptions) {
	if options != nil && dryrun.IsDryRun(options.DryRun) {
		return
	}
	service := obj.(*corev1.Service)
	a.pools.release(heldBy(service), service.UID)
}

// begin runs allocate and returns what ends the reservation. For an update that
// is not yet the end: see attempt.
func begin(ctx context.Context, r *reservation, service *corev1.Service, allocate func() error) (genericregistry.FinishFunc, error) {
	update := attemptFrom(ctx)
	if update != nil {
		// Another round. What the one before has reserved, it had no use for.
		update.settle(false)
	}
	if err := allocate(); err != nil {
		r.revert()
		return nil, err
	}
	return func(_ context.Context, success bool) {
		switch {
		case !success:
			r.revert()
		case update != nil:
			update.open, update.after = r, heldBy(service)
		default:
			r.commit(heldBy(service))
		}
	}, nil
}

// attempt carries a reservation past the end of the hooks to the end of an
// update. It belongs to one request and is not safe for concurrent use.
type attempt struct {
	// open is a reservation whose Service is valid and about to be written.
	open *reservation
	// after is what that Service holds.
	after held
}

type attemptKey struct{}

func withAttempt(ctx context.Context) (context.Context, *attempt) {
	a := &attempt{}
	return context.WithValue(ctx, attemptKey{}, a), a
}

func attemptFrom(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// settle ends the open reservation, if there is one.
func (a *attempt) settle(written bool) {
	switch {
	case a.open == nil:
	case written:
		a.open.commit(a.after)
	default:
		a.open.revert()
	}
	a.open = nil
}

// carryOverAllocated fills in what was allocated for the stored Service and is
// absent from the new one, so that the manifest a Service was created from can
// be applied again.
func carryOverAllocated(service, old *corev1.Service) {
	if needsClusterIP(old) && needsClusterIP(service) {
		if service.Spec.ClusterIP == "" {
			service.Spec.ClusterIP = old.Spec.ClusterIP
		}
		if len(service.Spec.ClusterIPs) == 0 {
			service.Spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
		}
	}
	if wantsNodePorts(old) && wantsNodePorts(service) {
		carryOverNodePorts(service.Spec.Ports, old.Spec.Ports)
	}
	if needsHealthCheckNodePort(old) && needsHealthCheckNodePort(service) && service.Spec.HealthCheckNodePort == 0 {
		service.Spec.HealthCheckNodePort = old.Spec.HealthCheckNodePort
	}
}

// carryOverNodePorts goes by the names of the ports. A node port that the new
// Service names already stays where it was put.
func carryOverNodePorts(ports, oldPorts []corev1.ServicePort) {
	byName := map[string]int32{}
	for i := range oldPorts {
		byName[oldPorts[i].Name] = oldPorts[i].NodePort
	}
	named := func(nodePort int32) bool {
		return slices.ContainsFunc(ports, func(port corev1.ServicePort) bool { return port.NodePort == nodePort })
	}
	carried := make([]int32, len(ports))
	for i := range ports {
		if nodePort := byName[ports[i].Name]; ports[i].NodePort == 0 && !named(nodePort) {
			carried[i] = nodePort
		}
	}
	for i, nodePort := range carried {
		if nodePort != 0 {
			ports[i].NodePort = nodePort
		}
	}
}
