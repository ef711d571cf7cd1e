// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// The rules, the fields they blame and their texts are those of kube-apiserver
// 1.37 with its default feature gates.

func validateCreate(service *corev1.Service) field.ErrorList {
	// KEP-5311: since 1.36 a name may begin with a digit.
	metadata := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&service.ObjectMeta, true, apivalidation.NameIsDNSLabel, metadata)
	errs = append(errs, resource.FinalizerNames(metadata, service.Finalizers)...)
	return append(errs, validateService(service, nil)...)
}

// validateUpdate leaves the metadata to rest.BeforeUpdate, which compares them
// for all resources.
func validateUpdate(service, old *corev1.Service) field.ErrorList {
	errs := resource.FinalizerNames(field.NewPath("metadata"), service.Finalizers)
	errs = append(errs, validateClusterIPsUpdate(service, old)...)
	errs = append(errs, validateIPFamiliesUpdate(service, old)...)
	errs = append(errs, validateLoadBalancerUpdate(service, old)...)
	return append(errs, validateService(service, old)...)
}

// validateService holds for create and update. old is nil on create; values
// that it has already are not judged anew.
func validateService(service, old *corev1.Service) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	errs = append(errs, validateTopologyAnnotations(service)...)
	errs = append(errs, validateType(service, spec)...)
	errs = append(errs, validatePorts(service, spec.Child("ports"))...)
	errs = append(errs, metav1validation.ValidateLabels(service.Spec.Selector, spec.Child("selector"))...)
	errs = append(errs, validateSessionAffinity(&service.Spec, spec)...)
	errs = append(errs, validateClusterIPs(service, old)...)
	errs = append(errs, validateExternalIPs(service, old, spec.Child("externalIPs"))...)
	errs = append(errs, validateSourceRanges(service, old)...)
	errs = append(errs, validateLoadBalancer(service, spec)...)
	errs = append(errs, validateExternalTraffic(service, spec)...)
	errs = append(errs, validateInternalTraffic(service, spec.Child("internalTrafficPolicy"))...)
	return append(errs, validateTrafficDistribution(service, spec.Child("trafficDistribution"))...)
}

func validateTopologyAnnotations(service *corev1.Service) field.ErrorList {
	hints, hasHints := service.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	mode, hasMode := service.Annotations[corev1.AnnotationTopologyMode]
	if !hasHints || !hasMode || hints == mode {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(corev1.AnnotationTopologyMode)
	return field.ErrorList{field.Invalid(path, mode,
		fmt.Sprintf("must match annotations[%s] when both are specified", corev1.DeprecatedAnnotationTopologyAwareHints))}
}

func validateType(service *corev1.Service, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch service.Spec.Type {
	case corev1.ServiceTypeClusterIP:
	case corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
		if isHeadless(service) {
			errs = append(errs, field.Invalid(spec.Child("clusterIPs").Index(0), corev1.ClusterIPNone,
				fmt.Sprintf("may not be set to 'None' for %s services", service.Spec.Type)))
		}
	case corev1.ServiceTypeExternalName:
		errs = append(errs, validateExternalName(service, spec)...)
	case "":
		errs = append(errs, field.Required(spec.Child("type"), ""))
	default:
		errs = append(errs, field.NotSupported(spec.Child("type"), service.Spec.Type, []corev1.ServiceType{
			corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort,
		}))
	}
	return errs
}

func validateExternalName(service *corev1.Service, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, linked := range []struct {
		field string
		set   bool
	}{
		{"clusterIPs", len(service.Spec.ClusterIPs) > 0},
		{"ipFamilies", len(service.Spec.IPFamilies) > 0},
		{"ipFamilyPolicy", service.Spec.IPFamilyPolicy != nil},
	} {
		if linked.set {
			errs = append(errs, field.Forbidden(spec.Child(linked.field), "may not be set for ExternalName services"))
		}
	}
	// A trailing dot says that the name is fully qualified.
	name := strings.TrimSuffix(service.Spec.ExternalName, ".")
	if name == "" {
		return append(errs, field.Required(spec.Child("externalName"), ""))
	}
	return append(errs, resource.Invalid(spec.Child("externalName"), name, validation.IsDNS1123Subdomain(name))...)
}

func validateSessionAffinity(service *corev1.ServiceSpec, spec *field.Path) field.ErrorList {
	path, config := spec.Child("sessionAffinity"), spec.Child("sessionAffinityConfig")
	required := fmt.Sprintf("when session affinity type is %s", corev1.ServiceAffinityClientIP)
	switch service.SessionAffinity {
	case "":
		return field.ErrorList{field.Required(path, "")}
	case corev1.ServiceAffinityNone:
		if service.SessionAffinityConfig != nil {
			return field.ErrorList{field.Forbidden(config, fmt.Sprintf("must not be set when session affinity is %s", corev1.ServiceAffinityNone))}
		}
		return nil
	case corev1.ServiceAffinityClientIP:
	default:
		return field.ErrorList{field.NotSupported(path, service.SessionAffinity, []corev1.ServiceAffinity{
			corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone,
		})}
	}
	clientIP := config.Child("clientIP")
	timeout := clientIP.Child("timeoutSeconds")
	switch c := service.SessionAffinityConfig; {
	case c == nil:
		return field.ErrorList{field.Required(config, required)}
	case c.ClientIP == nil:
		return field.ErrorList{field.Required(clientIP, required)}
	case c.ClientIP.TimeoutSeconds == nil:
		return field.ErrorList{field.Required(timeout, required)}
	case *c.ClientIP.TimeoutSeconds <= 0 || *c.ClientIP.TimeoutSeconds > maxAffinitySeconds:
		return field.ErrorList{field.Invalid(timeout, *c.ClientIP.TimeoutSeconds, fmt.Sprintf("must be greater than 0 and less than %d", maxAffinitySeconds))}
	}
	return nil
}

// maxAffinitySeconds is one day, as in the documentation of the field.
const maxAffinitySeconds = 86400
