// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

type accessReviewer struct{ access Authorizer }

func (r accessReviewer) reviewSubject(ctx context.Context, review *authorizationv1.SubjectAccessReview) error {
	attributes, err := subjectAttributes(review.Spec)
	if err != nil {
		return err
	}
	review.Status = r.decide(ctx, attributes)
	return nil
}

func (r accessReviewer) reviewLocalSubject(ctx context.Context, review *authorizationv1.LocalSubjectAccessReview) error {
	namespace, _ := request.NamespaceFrom(ctx)
	if review.Spec.ResourceAttributes == nil || review.Spec.NonResourceAttributes != nil {
		return apierrors.NewBadRequest("spec.resourceAttributes: a LocalSubjectAccessReview asks for a resource of its namespace")
	}
	if review.Spec.ResourceAttributes.Namespace != namespace {
		return apierrors.NewBadRequest("spec.resourceAttributes.namespace: must match the namespace of the request, " + namespace)
	}
	attributes, err := subjectAttributes(review.Spec)
	if err != nil {
		return err
	}
	review.Status = r.decide(ctx, attributes)
	return nil
}

func (r accessReviewer) reviewSelf(ctx context.Context, review *authorizationv1.SelfSubjectAccessReview) error {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewBadRequest("there is no user on the request")
	}
	attributes, err := attributesOf(caller, review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	if err != nil {
		return err
	}
	review.Status = r.decide(ctx, attributes)
	return nil
}

func (r accessReviewer) reviewRules(ctx context.Context, review *authorizationv1.SelfSubjectRulesReview) error {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewBadRequest("there is no user on the request")
	}
	if review.Spec.Namespace == "" {
		return apierrors.NewBadRequest("no namespace on request")
	}
	resources, others, incomplete, err := r.access.RulesFor(ctx, caller, review.Spec.Namespace)
	review.Status = authorizationv1.SubjectRulesReviewStatus{
		// Clients require the lists, also when they are empty.
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
		Incomplete: incomplete,
	}
	if err != nil {
		review.Status.EvaluationError = err.Error()
	}
	for _, rule := range resources {
		review.Status.ResourceRules = append(review.Status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: rule.GetVerbs(), APIGroups: rule.GetAPIGroups(), Resources: rule.GetResources(), ResourceNames: rule.GetResourceNames(),
		})
	}
	for _, rule := range others {
		review.Status.NonResourceRules = append(review.Status.NonResourceRules, authorizationv1.NonResourceRule{
			Verbs: rule.GetVerbs(), NonResourceURLs: rule.GetNonResourceURLs(),
		})
	}
	return nil
}

func (r accessReviewer) decide(ctx context.Context, attributes authorizer.Attributes) authorizationv1.SubjectAccessReviewStatus {
	decision, reason, err := r.access.Authorize(ctx, attributes)
	status := authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason,
	}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return status
}

func subjectAttributes(spec authorizationv1.SubjectAccessReviewSpec) (authorizer.Attributes, error) {
	if spec.User == "" && len(spec.Groups) == 0 {
		return nil, apierrors.NewBadRequest("spec.user: at least one of user or group must be specified")
	}
	subject := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	for key, values := range spec.Extra {
		if subject.Extra == nil {
			subject.Extra = map[string][]string{}
		}
		subject.Extra[key] = values
	}
	return attributesOf(subject, spec.ResourceAttributes, spec.NonResourceAttributes)
}

func attributesOf(subject user.Info, resource *authorizationv1.ResourceAttributes, other *authorizationv1.NonResourceAttributes) (authorizer.Attributes, error) {
	switch {
	case resource != nil && other != nil:
		return nil, apierrors.NewBadRequest("spec: only one of resourceAttributes and nonResourceAttributes may be given")
	case resource != nil:
		return authorizer.AttributesRecord{
			User: subject, ResourceRequest: true, Verb: resource.Verb, Namespace: resource.Namespace,
			APIGroup: resource.Group, APIVersion: matchAll(resource.Version), Resource: resource.Resource,
			Subresource: resource.Subresource, Name: resource.Name,
		}, nil
	case other != nil:
		return authorizer.AttributesRecord{User: subject, Verb: other.Verb, Path: other.Path}, nil
	default:
		return nil, apierrors.NewBadRequest("spec: one of resourceAttributes and nonResourceAttributes is required")
	}
}

// matchAll is what a review that names no version stands for.
func matchAll(version string) string {
	if version == "" {
		return "*"
	}
	return version
}
