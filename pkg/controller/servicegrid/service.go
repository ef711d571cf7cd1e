// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	superedgevalidation "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/validation"
)

const serviceSuffix = "-svc"

var gridKind = superedgev1.SchemeGroupVersion.WithKind("ServiceGrid")

// serviceName returns the name of the Service of a ServiceGrid.
func serviceName(grid string) string { return grid + serviceSuffix }

// nameProblem says why no Service can have the name that it would get, or "". Names of ServiceGrids can be longer and
// can have dots.
func nameProblem(grid string) string {
	name := serviceName(grid)
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Sprintf("metadata.name: the Service would be named %q, which no Service can be: %s", name, strings.Join(problems, "; "))
	}
	return ""
}

// keyProblem says why the key of a ServiceGrid is none, or "".
func keyProblem(key string) string {
	path := field.NewPath("spec", "gridUniqKey")
	if key == "" {
		return field.Required(path, "the key of a node label").Error()
	}
	if errs := superedgevalidation.ValidateGridUniqKey(key, path); len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	return ""
}

// keyLabel returns a key as the value of a label: without "/", and if it is too long, cut and with a digest of the
// whole, so that two keys do not share a value because they begin alike.
func keyLabel(key string) string {
	const digestLength = 10
	value := strings.ReplaceAll(key, "/", ".")
	if len(value) <= validation.LabelValueMaxLength {
		return value
	}
	digest := sha256.Sum256([]byte(key))
	return value[:validation.LabelValueMaxLength-1-digestLength] + "-" + hex.EncodeToString(digest[:])[:digestLength]
}

// selects reports whether service has the label of the ServiceGrid named grid.
func selects(grid string, service *corev1.Service) bool {
	return service.Labels[superedgev1.LabelGridSelector] == grid
}

// desiredService returns the Service that grid asks for. If there is a live one, it is live with the changes that are
// needed: labels, annotations, owner references and the rest of what others have written stay. The key and the name of
// grid must be valid. Neither argument is changed.
func desiredService(grid *superedgev1.ServiceGrid, live *corev1.Service) *corev1.Service {
	labels, annotations := maps.Clone(grid.Labels), maps.Clone(grid.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return notCarried[key] })
	carried := carriedKeys{Labels: sortedKeys(labels), Annotations: sortedKeys(annotations)}

	var service *corev1.Service
	var liveSpec *corev1.ServiceSpec
	if live == nil {
		service = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: serviceName(grid.Name), Namespace: grid.Namespace}}
	} else {
		service, liveSpec = live.DeepCopy(), &live.Spec
	}
	formerly := formerlyCarried(service.Annotations)
	service.Labels = carry(service.Labels, labels, formerly.Labels)
	service.Labels[superedgev1.LabelGridSelector] = grid.Name
	service.Labels[superedgev1.LabelGridUniqKey] = keyLabel(grid.Spec.GridUniqKey)
	service.Annotations = carry(service.Annotations, annotations, formerly.Annotations)
	service.Annotations[superedgev1.AnnotationTopologyKeys] = topologyKeys(grid.Spec.GridUniqKey)
	delete(service.Annotations, carriedAnnotation)
	if value := carried.encode(); value != "" {
		service.Annotations[carriedAnnotation] = value
	}
	if !metav1.IsControlledBy(service, grid) {
		service.OwnerReferences = append(withoutOwner(service.OwnerReferences, grid), *metav1.NewControllerRef(grid, gridKind))
	}
	service.Spec = *desiredSpec(&grid.Spec.Template, liveSpec)
	return service
}

// releasedService returns service without grid as an owner.
func releasedService(grid *superedgev1.ServiceGrid, service *corev1.Service) *corev1.Service {
	service = service.DeepCopy()
	service.OwnerReferences = withoutOwner(service.OwnerReferences, grid)
	return service
}

// withoutOwner returns references without those to grid. It works in the place of references.
func withoutOwner(references []metav1.OwnerReference, grid *superedgev1.ServiceGrid) []metav1.OwnerReference {
	return slices.DeleteFunc(references, func(r metav1.OwnerReference) bool { return r.UID == grid.UID })
}

// topologyKeys returns the value of the annotation of that name.
func topologyKeys(key string) string {
	data, err := json.Marshal([]string{key})
	if err != nil {
		// Strings always encode.
		panic(err)
	}
	return string(data)
}

// differences returns the paths of the fields of live that wanted changes, nil if there is nothing to write.
func differences(live, wanted *corev1.Service) []string {
	var paths []string
	compare := func(path string, a, b any) {
		// Empty and absent are equal here, as they are for the API server.
		if !equality.Semantic.DeepEqual(a, b) {
			paths = append(paths, path)
		}
	}
	compare("metadata.labels", live.Labels, wanted.Labels)
	compare("metadata.annotations", live.Annotations, wanted.Annotations)
	compare("metadata.ownerReferences", live.OwnerReferences, wanted.OwnerReferences)
	spec := live.Spec.DeepCopy()
	setDefaults(spec)
	a, b := reflect.ValueOf(*spec), reflect.ValueOf(wanted.Spec)
	for i := range a.NumField() {
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		compare("spec."+name, a.Field(i).Interface(), b.Field(i).Interface())
	}
	return paths
}
