// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// maxDataSize is how much a ConfigMap or a Secret may hold: 1 MiB, as in
// kube-apiserver, where it keeps one object from filling a node's memory.
const maxDataSize = corev1.MaxSecretSize

const immutableMessage = "field is immutable when `immutable` is set"

func newConfigMaps(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*corev1.ConfigMap]{
		Version:      corev1.SchemeGroupVersion,
		Kind:         "ConfigMap",
		Resource:     "configmaps",
		Singular:     "configmap",
		ShortNames:   []string{"cm"},
		Namespaced:   true,
		New:          func() *corev1.ConfigMap { return &corev1.ConfigMap{} },
		NewList:      func() runtime.Object { return &corev1.ConfigMapList{} },
		Table:        NewConfigMapTable(clock.RealClock{}),
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Rules: resource.Rules[*corev1.ConfigMap]{
			Validate:       validateConfigMap,
			ValidateUpdate: validateConfigMapUpdate,
		},
	})
}

func validateConfigMap(_ context.Context, configMap *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for _, key := range slices.Sorted(maps.Keys(configMap.Data)) {
		path := field.NewPath("data").Key(key)
		errs = append(errs, resource.Invalid(path, key, validation.IsConfigMapKey(key))...)
		if _, ok := configMap.BinaryData[key]; ok {
			errs = append(errs, field.Invalid(path, key, "duplicate of key present in binaryData"))
		}
		size += len(configMap.Data[key])
	}
	for _, key := range slices.Sorted(maps.Keys(configMap.BinaryData)) {
		errs = append(errs, resource.Invalid(field.NewPath("binaryData").Key(key), key, validation.IsConfigMapKey(key))...)
		size += len(configMap.BinaryData[key])
	}
	if size > maxDataSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", maxDataSize))
	}
	return errs
}

func validateConfigMapUpdate(ctx context.Context, configMap, old *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	if old.Immutable != nil && *old.Immutable {
		if configMap.Immutable == nil || !*configMap.Immutable {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutableMessage))
		}
		if !apiequality.Semantic.DeepEqual(configMap.Data, old.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), immutableMessage))
		}
		if !apiequality.Semantic.DeepEqual(configMap.BinaryData, old.BinaryData) {
			errs = append(errs, field.Forbidden(field.NewPath("binaryData"), immutableMessage))
		}
	}
	return append(errs, validateConfigMap(ctx, configMap)...)
}

// NewConfigMapTable returns the convertor behind "kubectl get configmaps".
func NewConfigMapTable(clk clock.PassiveClock) rest.TableConvertor {
	return table.NewConvertor(clk, []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Data", Type: "string", Description: corev1.ConfigMap{}.SwaggerDoc()["data"]},
		table.AgeColumn(),
	}, func(configMap *corev1.ConfigMap, now time.Time) []any {
		return []any{
			configMap.Name,
			int64(len(configMap.Data) + len(configMap.BinaryData)),
			table.Age(configMap.CreationTimestamp, now),
		}
	})
}
