// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

func validateContainers(spec *corev1.PodSpec, volumes map[string]bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	list := path.Child("containers")
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(list, ""))
	}
	seen := map[string]bool{}
	for i := range spec.Containers {
		container, item := &spec.Containers[i], list.Index(i)
		errs = append(errs, validateContainer(container, volumes, item)...)
		errs = append(errs, uniqueName(seen, container.Name, item.Child("name"))...)
		errs = append(errs, validateRunning(container, item)...)
	}
	errs = append(errs, validateHostPorts(spec.Containers, list)...)

	list = path.Child("initContainers")
	for i := range spec.InitContainers {
		container, item := &spec.InitContainers[i], list.Index(i)
		errs = append(errs, validateContainer(container, volumes, item)...)
		errs = append(errs, uniqueName(seen, container.Name, item.Child("name"))...)
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			errs = append(errs, validateRunning(container, item)...)
		} else {
			errs = append(errs, validateOnlyOnce(container, item)...)
		}
	}

	list = path.Child("ephemeralContainers")
	for i := range spec.EphemeralContainers {
		container := (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)
		errs = append(errs, validateContainer(container, volumes, list.Index(i))...)
		errs = append(errs, uniqueName(seen, container.Name, list.Index(i).Child("name"))...)
	}
	return errs
}

func uniqueName(seen map[string]bool, name string, path *field.Path) field.ErrorList {
	if name != "" && seen[name] {
		return field.ErrorList{field.Duplicate(path, name)}
	}
	seen[name] = true
	return nil
}

func validateContainer(container *corev1.Container, volumes map[string]bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if container.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		errs = append(errs, resource.DNSLabel(path.Child("name"), container.Name)...)
	}
	if container.Image == "" {
		errs = append(errs, field.Required(path.Child("image"), ""))
	}
	errs = append(errs, resource.OneOf(path.Child("terminationMessagePolicy"), container.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, validateContainerPorts(container.Ports, path.Child("ports"))...)
	errs = append(errs, validateEnv(container, path)...)
	errs = append(errs, validateMounts(container, volumes, path)...)
	errs = append(errs, resource.OneOf(path.Child("imagePullPolicy"), container.ImagePullPolicy,
		corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	return append(errs, validateResources(&container.Resources, path.Child("resources"))...)
}

func validateContainerPorts(ports []corev1.ContainerPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range ports {
		port, item := &ports[i], path.Index(i)
		if port.Name != "" {
			if messages := validation.IsValidPortName(port.Name); len(messages) > 0 {
				errs = append(errs, resource.Invalid(item.Child("name"), port.Name, messages)...)
			} else {
				errs = append(errs, uniqueName(seen, port.Name, item.Child("name"))...)
			}
		}
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(item.Child("containerPort"), ""))
		} else {
			errs = append(errs, resource.Invalid(item.Child("containerPort"), port.ContainerPort, validation.IsValidPortNum(int(port.ContainerPort)))...)
		}
		if port.HostPort != 0 {
			errs = append(errs, resource.Invalid(item.Child("hostPort"), port.HostPort, validation.IsValidPortNum(int(port.HostPort)))...)
		}
		errs = append(errs, resource.Protocol(item.Child("protocol"), port.Protocol)...)
	}
	return errs
}

// validateHostPorts refuses to give one port of the host to two containers.
func validateHostPorts(containers []corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range containers {
		for j := range containers[i].Ports {
			port := &containers[i].Ports[j]
			if port.HostPort == 0 {
				continue
			}
			key := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort)
			if seen[key] {
				errs = append(errs, field.Duplicate(path.Index(i).Child("ports").Index(j).Child("hostPort"), key))
			}
			seen[key] = true
		}
	}
	return errs
}

func validateEnv(container *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range container.Env {
		env, item := &container.Env[i], path.Child("env").Index(i)
		if env.Name == "" {
			errs = append(errs, field.Required(item.Child("name"), ""))
		} else {
			errs = append(errs, resource.Invalid(item.Child("name"), env.Name, validation.IsRelaxedEnvVarName(env.Name))...)
		}
		if env.ValueFrom != nil {
			errs = append(errs, validateEnvSource(env, item.Child("valueFrom"))...)
		}
	}
	for i := range container.EnvFrom {
		from, list := &container.EnvFrom[i], path.Child("envFrom")
		if (from.ConfigMapRef == nil) == (from.SecretRef == nil) {
			errs = append(errs, field.Invalid(list, "", "must specify one of: `configMapRef` or `secretRef`"))
		}
		if from.ConfigMapRef != nil && from.ConfigMapRef.Name == "" {
			errs = append(errs, field.Required(list.Index(i).Child("configMapRef", "name"), ""))
		}
		if from.SecretRef != nil && from.SecretRef.Name == "" {
			errs = append(errs, field.Required(list.Index(i).Child("secretRef", "name"), ""))
		}
	}
	return errs
}

func validateEnvSource(env *corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var sources int
	source := env.ValueFrom
	if source.FieldRef != nil {
		sources++
		if source.FieldRef.FieldPath == "" {
			errs = append(errs, field.Required(path.Child("fieldRef", "fieldPath"), ""))
		}
	}
	if source.ResourceFieldRef != nil {
		sources++
		if source.ResourceFieldRef.Resource == "" {
			errs = append(errs, field.Required(path.Child("resourceFieldRef", "resource"), ""))
		}
	}
	if ref := source.ConfigMapKeyRef; ref != nil {
		sources++
		errs = append(errs, validateKeyRef(ref.Name, ref.Key, path.Child("configMapKeyRef"))...)
	}
	if ref := source.SecretKeyRef; ref != nil {
		sources++
		errs = append(errs, validateKeyRef(ref.Name, ref.Key, path.Child("secretKeyRef"))...)
	}
	if source.FileKeyRef != nil {
		sources++
	}
	switch {
	case sources == 0:
		errs = append(errs, field.Invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case env.Value != "":
		errs = append(errs, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
	}
	return errs
}

func validateKeyRef(name, key string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if key == "" {
		return append(errs, field.Required(path.Child("key"), ""))
	}
	return append(errs, resource.Invalid(path.Child("key"), key, validation.IsConfigMapKey(key))...)
}

// validateOnlyOnce refuses what makes no sense for a container that runs to its
// end before the others begin.
func validateOnlyOnce(container *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(name string, set bool) {
		if set {
			errs = append(errs, field.Forbidden(path.Child(name), "may not be set for init containers without restartPolicy=Always"))
		}
	}
	refuse("lifecycle", container.Lifecycle != nil)
	refuse("livenessProbe", container.LivenessProbe != nil)
	refuse("readinessProbe", container.ReadinessProbe != nil)
	refuse("startupProbe", container.StartupProbe != nil)
	return errs
}

// validateRunning checks how a container that goes on running is looked after.
func validateRunning(container *corev1.Container, path *field.Path) field.ErrorList {
	errs := validateProbe(container.LivenessProbe, path.Child("livenessProbe"))
	errs = append(errs, validateProbe(container.ReadinessProbe, path.Child("readinessProbe"))...)
	errs = append(errs, validateProbe(container.StartupProbe, path.Child("startupProbe"))...)
	succeedsOnce := func(name string, probe *corev1.Probe) {
		if probe != nil && probe.SuccessThreshold != 1 {
			errs = append(errs, field.Invalid(path.Child(name, "successThreshold"), probe.SuccessThreshold, "must be 1"))
		}
	}
	succeedsOnce("livenessProbe", container.LivenessProbe)
	succeedsOnce("startupProbe", container.StartupProbe)
	if lifecycle := container.Lifecycle; lifecycle != nil {
		errs = append(errs, validateLifecycle(lifecycle.PostStart, path.Child("lifecycle", "postStart"))...)
		errs = append(errs, validateLifecycle(lifecycle.PreStop, path.Child("lifecycle", "preStop"))...)
	}
	return errs
}

func validateLifecycle(handler *corev1.LifecycleHandler, path *field.Path) field.ErrorList {
	if handler == nil {
		return nil
	}
	return validateHandler(path, handler.Exec, handler.HTTPGet, handler.TCPSocket, nil, handler.Sleep)
}

func validateProbe(probe *corev1.Probe, path *field.Path) field.ErrorList {
	if probe == nil {
		return nil
	}
	errs := validateHandler(path, probe.Exec, probe.HTTPGet, probe.TCPSocket, probe.GRPC, nil)
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(probe.InitialDelaySeconds), path.Child("initialDelaySeconds"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(probe.TimeoutSeconds), path.Child("timeoutSeconds"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(probe.PeriodSeconds), path.Child("periodSeconds"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(probe.SuccessThreshold), path.Child("successThreshold"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(probe.FailureThreshold), path.Child("failureThreshold"))...)
	if grace := probe.TerminationGracePeriodSeconds; grace != nil && *grace <= 0 {
		errs = append(errs, field.Invalid(path.Child("terminationGracePeriodSeconds"), *grace, "must be greater than 0"))
	}
	return errs
}
