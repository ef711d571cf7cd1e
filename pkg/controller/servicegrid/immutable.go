// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// immutableChange says what of the template cannot be had by an update of the live Service, or "" if all can. The API
// server would refuse the update, or undo it silently (a headless Service whose template no longer says so). A user who
// wants it nevertheless deletes the Service, and with it its addresses, so that it is made anew.
func immutableChange(template, live *corev1.ServiceSpec) string {
	wanted := desiredSpec(template, live)
	var field, want, is string
	switch {
	case wanted.Type == corev1.ServiceTypeExternalName || live.Type == corev1.ServiceTypeExternalName:
		return ""
	case template.ClusterIP == "" && live.ClusterIP == corev1.ClusterIPNone:
		field, want, is = "clusterIP", "an address", corev1.ClusterIPNone
	case live.ClusterIP != "" && wanted.ClusterIP != live.ClusterIP:
		field, want, is = "clusterIP", wanted.ClusterIP, live.ClusterIP
	case len(wanted.IPFamilies) > 0 && len(live.IPFamilies) > 0 && wanted.IPFamilies[0] != live.IPFamilies[0]:
		field, want, is = "ipFamilies[0]", string(wanted.IPFamilies[0]), string(live.IPFamilies[0])
	case needsHealthCheckNodePort(wanted) && needsHealthCheckNodePort(live) && wanted.HealthCheckNodePort != live.HealthCheckNodePort:
		field, want, is = "healthCheckNodePort", fmt.Sprint(wanted.HealthCheckNodePort), fmt.Sprint(live.HealthCheckNodePort)
	case wanted.Type == corev1.ServiceTypeLoadBalancer && live.Type == corev1.ServiceTypeLoadBalancer && class(wanted) != class(live):
		field, want, is = "loadBalancerClass", class(wanted), class(live)
	default:
		return ""
	}
	return fmt.Sprintf("spec.template.%s: the template wants %q, the Service has %q, and a Service cannot change it; "+
		"to get it, delete the Service, and it is made anew", field, want, is)
}

func class(spec *corev1.ServiceSpec) string {
	if spec.LoadBalancerClass == nil {
		return ""
	}
	return *spec.LoadBalancerClass
}
