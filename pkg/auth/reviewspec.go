// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// reviewSpec is the question whether the user of attributes may do what they say.
func reviewSpec(attributes authorizer.Attributes) authorizationv1.SubjectAccessReviewSpec {
	u := attributes.GetUser()
	spec := authorizationv1.SubjectAccessReviewSpec{User: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	if extra := u.GetExtra(); len(extra) > 0 {
		spec.Extra = make(map[string]authorizationv1.ExtraValue, len(extra))
		for key, values := range extra {
			spec.Extra[key] = values
		}
	}
	if !attributes.IsResourceRequest() {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: attributes.GetPath(), Verb: attributes.GetVerb()}
		return spec
	}
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Namespace:   attributes.GetNamespace(),
		Verb:        attributes.GetVerb(),
		Group:       attributes.GetAPIGroup(),
		Version:     attributes.GetAPIVersion(),
		Resource:    attributes.GetResource(),
		Subresource: attributes.GetSubresource(),
		Name:        attributes.GetName(),
	}
	// Selectors narrow a request. Leaving out what cannot be parsed asks for the
	// broader right, which is safe.
	if requirements, _ := attributes.GetFieldSelector(); len(requirements) > 0 {
		if asked := fieldRequirements(requirements); len(asked) > 0 {
			spec.ResourceAttributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: asked}
		}
	}
	if requirements, _ := attributes.GetLabelSelector(); len(requirements) > 0 {
		if asked := labelRequirements(requirements); len(asked) > 0 {
			spec.ResourceAttributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{Requirements: asked}
		}
	}
	return spec
}

func fieldRequirements(requirements fields.Requirements) []metav1.FieldSelectorRequirement {
	var asked []metav1.FieldSelectorRequirement
	for _, r := range requirements {
		operator := metav1.FieldSelectorOpIn
		switch r.Operator {
		case selection.Equals, selection.DoubleEquals, selection.In:
		case selection.NotEquals, selection.NotIn:
			operator = metav1.FieldSelectorOpNotIn
		default:
			continue
		}
		asked = append(asked, metav1.FieldSelectorRequirement{Key: r.Field, Operator: operator, Values: []string{r.Value}})
	}
	return asked
}

func labelRequirements(requirements labels.Requirements) []metav1.LabelSelectorRequirement {
	operators := map[selection.Operator]metav1.LabelSelectorOperator{
		selection.Equals:       metav1.LabelSelectorOpIn,
		selection.DoubleEquals: metav1.LabelSelectorOpIn,
		selection.In:           metav1.LabelSelectorOpIn,
		selection.NotEquals:    metav1.LabelSelectorOpNotIn,
		selection.NotIn:        metav1.LabelSelectorOpNotIn,
		selection.Exists:       metav1.LabelSelectorOpExists,
		selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
	}
	var asked []metav1.LabelSelectorRequirement
	for _, r := range requirements {
		operator, ok := operators[r.Operator()]
		if !ok {
			continue
		}
		// Sorted, or one question would be remembered under several keys.
		asked = append(asked, metav1.LabelSelectorRequirement{Key: r.Key(), Operator: operator, Values: r.Values().List()})
	}
	return asked
}
