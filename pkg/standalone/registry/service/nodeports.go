// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// allocateNodePorts gives the ports of a new Service their node ports, and the
// Service its health check node port. Ports with the same number (53/TCP and
// 53/UDP) share the node port that one of them asks for, or the one they get.
func allocateNodePorts(service *corev1.Service, r *reservation) error {
	if !mayHaveNodePorts(service) {
		return nil
	}
	ports := service.Spec.Ports
	byNumber := map[int32]int32{}
	// Those that are asked for come first: no other port must pick them.
	for i := range ports {
		nodePort := ports[i].NodePort
		first, known := byNumber[ports[i].Port]
		if nodePort == 0 || known && nodePort == first {
			continue
		}
		if err := reserveNodePort(service, i, r); err != nil {
			return err
		}
		if !known {
			byNumber[ports[i].Port] = nodePort
		}
	}
	if wantsNodePorts(service) {
		for i := range ports {
			if ports[i].NodePort != 0 {
				continue
			}
			ports[i].NodePort = byNumber[ports[i].Port]
			if ports[i].NodePort != 0 {
				continue
			}
			if err := pickNodePort(service, i, r); err != nil {
				return err
			}
			byNumber[ports[i].Port] = ports[i].NodePort
		}
	}
	if needsHealthCheckNodePort(service) {
		return allocateHealthCheckNodePort(service, r)
	}
	return nil
}

// updateNodePorts reserves what the new Service has in addition to the old one.
// Here, unlike on create, two ports share a node port only if both name it.
func updateNodePorts(service, old *corev1.Service, r *reservation) error {
	if mayHaveNodePorts(service) {
		have := sets.New[int32]()
		if mayHaveNodePorts(old) {
			have = nodePortsOf(old)
		}
		ports := service.Spec.Ports
		for i := range ports {
			if ports[i].NodePort == 0 || have.Has(ports[i].NodePort) {
				continue
			}
			if err := reserveNodePort(service, i, r); err != nil {
				return err
			}
			have.Insert(ports[i].NodePort)
		}
		for i := range ports {
			if ports[i].NodePort != 0 || !wantsNodePorts(service) {
				continue
			}
			if err := pickNodePort(service, i, r); err != nil {
				return err
			}
		}
	}
	if needsHealthCheckNodePort(service) && !needsHealthCheckNodePort(old) {
		return allocateHealthCheckNodePort(service, r)
	}
	return nil
}

// reserveNodePort reserves the node port that ports[i] asks for.
func reserveNodePort(service *corev1.Service, i int, r *reservation) error {
	nodePort := service.Spec.Ports[i].NodePort
	if err := r.takePort(nodePort); err != nil {
		return invalid(service, field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), nodePort, err.Error()))
	}
	return nil
}

// pickNodePort gives ports[i] a node port.
func pickNodePort(service *corev1.Service, i int, r *reservation) error {
	nodePort, err := r.nextPort()
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("failed to allocate a nodePort: %w", err))
	}
	service.Spec.Ports[i].NodePort = nodePort
	return nil
}

func allocateHealthCheckNodePort(service *corev1.Service, r *reservation) error {
	if requested := service.Spec.HealthCheckNodePort; requested != 0 {
		if err := r.takePort(requested); err != nil {
			return apierrors.NewInternalError(fmt.Errorf("failed to allocate requested HealthCheck NodePort %d: %w", requested, err))
		}
		return nil
	}
	nodePort, err := r.nextPort()
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("failed to allocate a HealthCheck NodePort: %w", err))
	}
	service.Spec.HealthCheckNodePort = nodePort
	return nil
}

func nodePortsOf(service *corev1.Service) sets.Set[int32] {
	nodePorts := sets.New[int32]()
	for i := range service.Spec.Ports {
		if nodePort := service.Spec.Ports[i].NodePort; nodePort != 0 {
			nodePorts.Insert(nodePort)
		}
	}
	return nodePorts
}
