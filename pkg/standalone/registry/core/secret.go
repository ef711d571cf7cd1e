// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

func newSecrets(getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	return resource.NewStorage(getter, resource.Kind[*corev1.Secret]{
		Version:      corev1.SchemeGroupVersion,
		Kind:         "Secret",
		Resource:     "secrets",
		Singular:     "secret",
		Namespaced:   true,
		New:          func() *corev1.Secret { return &corev1.Secret{} },
		NewList:      func() runtime.Object { return &corev1.SecretList{} },
		Table:        NewSecretTable(clock.RealClock{}),
		Attrs:        secretAttrs,
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Rules: resource.Rules[*corev1.Secret]{
			PrepareForUpdate: func(_ context.Context, secret, old *corev1.Secret) {
				if secret.Type == "" {
					secret.Type = old.Type
				}
			},
			Validate:       validateSecret,
			ValidateUpdate: validateSecretUpdate,
			Warnings: func(_ context.Context, secret, _ *corev1.Secret) []string {
				if secret.Type != corev1.SecretTypeTLS {
					return nil
				}
				if _, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]); err != nil {
					return []string{err.Error()}
				}
				return nil
			},
		},
	})
}

func secretAttrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	secret, ok := obj.(*corev1.Secret)
	if !ok {
		return nil, nil, fmt.Errorf("not a Secret: %T", obj)
	}
	return secret.Labels, fields.Set{
		"metadata.name": secret.Name, "metadata.namespace": secret.Namespace, "type": string(secret.Type),
	}, nil
}

func validateSecret(_ context.Context, secret *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	data := field.NewPath("data")
	size := 0
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		errs = append(errs, resource.Invalid(data.Key(key), key, validation.IsConfigMapKey(key))...)
		size += len(secret.Data[key])
	}
	if size > maxDataSize {
		errs = append(errs, field.TooLong(data, "", maxDataSize))
	}
	return append(errs, validateSecretType(secret, data)...)
}

// validateSecretType checks that a Secret has what its type promises.
func validateSecretType(secret *corev1.Secret, data *field.Path) field.ErrorList {
	has := func(key string) bool { _, ok := secret.Data[key]; return ok }
	required := func(key string) *field.Error { return field.Required(data.Key(key), "") }
	var errs field.ErrorList
	switch secret.Type {
	case corev1.SecretTypeServiceAccountToken:
		if secret.Annotations[corev1.ServiceAccountNameKey] == "" {
			errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeDockercfg:
		errs = append(errs, validateJSONObject(secret, corev1.DockerConfigKey, data)...)
	case corev1.SecretTypeDockerConfigJson:
		errs = append(errs, validateJSONObject(secret, corev1.DockerConfigJsonKey, data)...)
	case corev1.SecretTypeBasicAuth:
		if !has(corev1.BasicAuthUsernameKey) && !has(corev1.BasicAuthPasswordKey) {
			errs = append(errs, required(corev1.BasicAuthUsernameKey), required(corev1.BasicAuthPasswordKey))
		}
	case corev1.SecretTypeSSHAuth:
		if len(secret.Data[corev1.SSHAuthPrivateKey]) == 0 {
			errs = append(errs, required(corev1.SSHAuthPrivateKey))
		}
	case corev1.SecretTypeTLS:
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			if !has(key) {
				errs = append(errs, required(key))
			}
		}
	}
	return errs
}

// validateJSONObject never shows what the Secret holds.
func validateJSONObject(secret *corev1.Secret, key string, data *field.Path) field.ErrorList {
	value, ok := secret.Data[key]
	if !ok {
		return field.ErrorList{field.Required(data.Key(key), "")}
	}
	if err := json.Unmarshal(value, &map[string]any{}); err != nil {
		return field.ErrorList{field.Invalid(data.Key(key), "<secret contents redacted>", err.Error())}
	}
	return nil
}

func validateSecretUpdate(ctx context.Context, secret, old *corev1.Secret) field.ErrorList {
	errs := apivalidation.ValidateImmutableField(secret.Type, old.Type, field.NewPath("type"))
	if old.Immutable != nil && *old.Immutable {
		if secret.Immutable == nil || !*secret.Immutable {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutableMessage))
		}
		if !apiequality.Semantic.DeepEqual(secret.Data, old.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), immutableMessage))
		}
	}
	return append(errs, validateSecret(ctx, secret)...)
}

// NewSecretTable returns the convertor behind "kubectl get secrets".
func NewSecretTable(clk clock.PassiveClock) rest.TableConvertor {
	doc := corev1.Secret{}.SwaggerDoc()
	return table.NewConvertor(clk, []metav1.TableColumnDefinition{
		table.NameColumn(),
		{Name: "Type", Type: "string", Description: doc["type"]},
		{Name: "Data", Type: "string", Description: doc["data"]},
		table.AgeColumn(),
	}, func(secret *corev1.Secret, now time.Time) []any {
		return []any{secret.Name, string(secret.Type), int64(len(secret.Data)), table.Age(secret.CreationTimestamp, now)}
	})
}
