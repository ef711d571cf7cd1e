// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
)

// check compares what there is in the end with what there should be, which it works out in its own way: from the
// ServiceGrids, and from what other writers have done to the Services.
func (r *run) check() error {
	for _, key := range r.api.keys(gridsResource) {
		if err := r.checkGrid(r.api.grid(key)); err != nil {
			return fmt.Errorf("grid %s: %w", key.Name, err)
		}
	}
	return r.checkOthers()
}

func (r *run) checkGrid(grid *superedgev1.ServiceGrid) error {
	service := r.api.service(types.NamespacedName{Namespace: namespace, Name: grid.Name + "-svc"})
	if key := grid.Spec.GridUniqKey; key == "" || strings.Contains(key, " ") {
		return checkStatus(grid, service, "InvalidKey")
	}
	if service == nil {
		return fmt.Errorf("there is no Service, status %+v", grid.Status)
	}
	controlled := metav1.GetControllerOf(service)
	labelled := service.Labels["superedge.io/grid-selector"] == grid.Name
	if !labelled || controlled != nil && controlled.UID == "other" {
		if controlled != nil && controlled.UID == grid.UID {
			return fmt.Errorf("%s was not released", service.Name)
		}
		return checkStatus(grid, service, "ServiceConflict")
	}
	if diff := cmp.Diff([]metav1.OwnerReference{ownerOf(grid)}, service.OwnerReferences); diff != "" {
		return fmt.Errorf("owners (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(r.modelLabels(grid, service), service.Labels); diff != "" {
		return fmt.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(r.modelAnnotations(grid, service), service.Annotations); diff != "" {
		return fmt.Errorf("annotations (-want +got):\n%s", diff)
	}
	want := &corev1.Service{Spec: *grid.Spec.Template.DeepCopy()}
	defaultService(want)
	if err := checkAllocated(service); err != nil {
		return err
	}
	if diff := cmp.Diff(withoutAllocated(want.Spec), withoutAllocated(service.Spec), cmpopts.EquateEmpty()); diff != "" {
		return fmt.Errorf("spec (-want +got):\n%s", diff)
	}
	return checkStatus(grid, service, "ServiceReady")
}

func (r *run) modelLabels(grid *superedgev1.ServiceGrid, service *corev1.Service) map[string]string {
	want := map[string]string{}
	for k, v := range r.others[service.UID] {
		want[k] = v
	}
	for k, v := range grid.Labels {
		want[k] = v
	}
	want["superedge.io/grid-selector"] = grid.Name
	want["superedge.io/grid-uniq-key"] = strings.ReplaceAll(grid.Spec.GridUniqKey, "/", ".")
	return want
}

func (r *run) modelAnnotations(grid *superedgev1.ServiceGrid, service *corev1.Service) map[string]string {
	want := map[string]string{}
	for k, v := range r.others[service.UID] {
		want[k] = v
	}
	var keys struct {
		Labels      []string `json:"labels,omitempty"`
		Annotations []string `json:"annotations,omitempty"`
	}
	for k := range grid.Labels {
		keys.Labels = append(keys.Labels, k)
	}
	for k, v := range grid.Annotations {
		if k != "kubectl.kubernetes.io/last-applied-configuration" {
			want[k] = v
			keys.Annotations = append(keys.Annotations, k)
		}
	}
	sort.Strings(keys.Labels)
	sort.Strings(keys.Annotations)
	if len(keys.Labels)+len(keys.Annotations) > 0 {
		data, _ := json.Marshal(keys)
		want["superedge.io/carried-keys"] = string(data)
	}
	want["topologyKeys"] = `["` + grid.Spec.GridUniqKey + `"]`
	return want
}

// checkAllocated says what a Service lacks that the API server allocates for its type, or has without need.
func checkAllocated(service *corev1.Service) error {
	spec := service.Spec
	if isExternalName(service) == (spec.ClusterIP != "") {
		return fmt.Errorf("cluster IP %q, type %s", spec.ClusterIP, spec.Type)
	}
	for _, port := range spec.Ports {
		if needsPorts(service) != (port.NodePort != 0) {
			return fmt.Errorf("port %s has nodePort %d, type %s", port.Name, port.NodePort, spec.Type)
		}
	}
	if needsHealthPort(service) != (spec.HealthCheckNodePort != 0) {
		return fmt.Errorf("healthCheckNodePort %d, type %s", spec.HealthCheckNodePort, spec.Type)
	}
	return nil
}

func withoutAllocated(spec corev1.ServiceSpec) corev1.ServiceSpec {
	spec = *spec.DeepCopy()
	if spec.ClusterIP != corev1.ClusterIPNone {
		spec.ClusterIP = ""
	}
	spec.ClusterIPs, spec.IPFamilies, spec.IPFamilyPolicy, spec.HealthCheckNodePort = nil, nil, nil, 0
	for i := range spec.Ports {
		spec.Ports[i].NodePort = 0
	}
	return spec
}

func checkStatus(grid *superedgev1.ServiceGrid, service *corev1.Service, reason string) error {
	want := superedgev1.ServiceGridStatus{ObservedGeneration: grid.Generation}
	status := metav1.ConditionFalse
	if reason == "ServiceReady" {
		status = metav1.ConditionTrue
	}
	want.Conditions = []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, ObservedGeneration: grid.Generation}}
	if service != nil && service.Labels["superedge.io/grid-selector"] == grid.Name && slices.ContainsFunc(service.OwnerReferences,
		func(o metav1.OwnerReference) bool { return o.UID == grid.UID && *o.Controller }) {
		want.ServiceName, want.ClusterIP = service.Name, service.Spec.ClusterIP
	}
	if diff := cmp.Diff(want, grid.Status, cmpopts.IgnoreFields(metav1.Condition{}, "Message", "LastTransitionTime")); diff != "" {
		return fmt.Errorf("status (-want +got):\n%s", diff)
	}
	return nil
}

// checkOthers looks at the copies: nobody's are left alone, the surplus ones are gone.
func (r *run) checkOthers() error {
	wrong := map[types.UID]bool{}
	for _, key := range r.api.keys(gridsResource) {
		if grid := r.api.grid(key); !strings.Contains(grid.Spec.GridUniqKey, " ") && grid.Spec.GridUniqKey != "" {
			wrong[grid.UID] = true
		}
	}
	for _, key := range r.api.keys(servicesResource) {
		service := r.api.service(key)
		if controller := metav1.GetControllerOf(service); strings.HasPrefix(key.Name, "copy-") && controller != nil && wrong[controller.UID] {
			return fmt.Errorf("the surplus or unlabelled %s still belongs to %s", key.Name, controller.Name)
		}
	}
	return nil
}
