// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func setContainerDefaults(container *corev1.Container) {
	defaultTo(&container.ImagePullPolicy, pullPolicy(container.Image))
	defaultTo(&container.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	defaultTo(&container.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range container.Ports {
		defaultTo(&container.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range container.Env {
		source := container.Env[i].ValueFrom
		if source == nil {
			continue
		}
		setFieldRefDefaults(source.FieldRef)
		if source.FileKeyRef != nil {
			defaultPointer(&source.FileKeyRef.Optional, false)
		}
	}
	roundResources(container.Resources.Limits)
	roundResources(container.Resources.Requests)
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe, container.StartupProbe} {
		if probe != nil {
			setProbeDefaults(probe)
		}
	}
	if container.Lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{container.Lifecycle.PostStart, container.Lifecycle.PreStop} {
			if handler != nil {
				setHTTPGetDefaults(handler.HTTPGet)
			}
		}
	}
}

func setProbeDefaults(probe *corev1.Probe) {
	defaultTo(&probe.TimeoutSeconds, 1)
	defaultTo(&probe.PeriodSeconds, 10)
	defaultTo(&probe.SuccessThreshold, 1)
	defaultTo(&probe.FailureThreshold, 3)
	setHTTPGetDefaults(probe.HTTPGet)
	if probe.GRPC != nil {
		defaultPointer(&probe.GRPC.Service, "")
	}
}

func setHTTPGetDefaults(action *corev1.HTTPGetAction) {
	if action != nil {
		defaultTo(&action.Path, "/")
		defaultTo(&action.Scheme, corev1.URISchemeHTTP)
	}
}

func setFieldRefDefaults(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		defaultTo(&ref.APIVersion, "v1")
	}
}

// pullPolicy is to pull always what may change under its name: the tag latest,
// which is also the tag of an image that names neither a tag nor a digest.
func pullPolicy(image string) corev1.PullPolicy {
	name, _, hasDigest := strings.Cut(image, "@")
	_, tag, hasTag := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	if image != "" && (tag == "latest" || !hasTag && !hasDigest) {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
