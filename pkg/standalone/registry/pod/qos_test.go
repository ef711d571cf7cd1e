// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestQOSClass(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if text != "" {
				out[name] = resource.MustParse(text)
			}
		}
		return out
	}
	container := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	guaranteed := container(list("1", "1Gi"), list("1", "1Gi"))
	for _, test := range []struct {
		name       string
		init, main []corev1.Container
		pod        *corev1.ResourceRequirements
		want       corev1.PodQOSClass
	}{
		{name: "nothing", main: []corev1.Container{{}}, want: corev1.PodQOSBestEffort},
		{name: "zero", main: []corev1.Container{container(list("0", ""), nil)}, want: corev1.PodQOSBestEffort},
		{name: "all limited", main: []corev1.Container{guaranteed, guaranteed}, want: corev1.PodQOSGuaranteed},
		{name: "one not limited", main: []corev1.Container{guaranteed, {}}, want: corev1.PodQOSBurstable},
		{name: "init container not limited", init: []corev1.Container{{}}, main: []corev1.Container{guaranteed}, want: corev1.PodQOSBurstable},
		{name: "only CPU limited", main: []corev1.Container{container(list("1", ""), list("1", ""))}, want: corev1.PodQOSBurstable},
		{name: "requests below limits", main: []corev1.Container{container(list("1", "1Gi"), list("2", "1Gi"))}, want: corev1.PodQOSBurstable},
		{name: "equal, written otherwise", main: []corev1.Container{container(list("1000m", "1024Mi"), list("1", "1Gi"))}, want: corev1.PodQOSGuaranteed},
		{name: "requests only", main: []corev1.Container{container(list("1", ""), nil)}, want: corev1.PodQOSBurstable},
		{name: "for the whole pod", main: []corev1.Container{{}}, pod: &guaranteed.Resources, want: corev1.PodQOSGuaranteed},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := qosClass(&corev1.PodSpec{InitContainers: test.init, Containers: test.main, Resources: test.pod}); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
