// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reviews serves the virtual resources by which other servers, and
// kubectl auth, ask who a caller is and what it may do: the groups
// authentication.k8s.io and authorization.k8s.io. Nothing is stored; each answer
// comes from the authenticator and the authorizer of the server itself.
package reviews

import (
	"errors"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Authorizer decides, and lists what it would decide for kubectl auth can-i --list.
type Authorizer interface {
	authorizer.Authorizer
	authorizer.RuleResolver
}

// NewStorage returns the storage of both groups. Tokens are reviewed by tokens,
// access by access.
func NewStorage(tokens authenticator.Token, access Authorizer) (map[schema.GroupVersion]map[string]rest.Storage, error) {
	if tokens == nil || access == nil {
		return nil, errors.New("reviews need an authenticator and an authorizer")
	}
	return map[schema.GroupVersion]map[string]rest.Storage{
		authenticationv1.SchemeGroupVersion: {
			"tokenreviews": newREST("tokenreview", false, func() *authenticationv1.TokenReview { return &authenticationv1.TokenReview{} },
				tokenReviewer{tokens}.review),
			"selfsubjectreviews": newREST("selfsubjectreview", false, func() *authenticationv1.SelfSubjectReview { return &authenticationv1.SelfSubjectReview{} },
				reviewSelf),
		},
		authorizationv1.SchemeGroupVersion: {
			"subjectaccessreviews": newREST("subjectaccessreview", false, func() *authorizationv1.SubjectAccessReview { return &authorizationv1.SubjectAccessReview{} },
				accessReviewer{access}.reviewSubject),
			"localsubjectaccessreviews": newREST("localsubjectaccessreview", true, func() *authorizationv1.LocalSubjectAccessReview { return &authorizationv1.LocalSubjectAccessReview{} },
				accessReviewer{access}.reviewLocalSubject),
			"selfsubjectaccessreviews": newREST("selfsubjectaccessreview", false, func() *authorizationv1.SelfSubjectAccessReview { return &authorizationv1.SelfSubjectAccessReview{} },
				accessReviewer{access}.reviewSelf),
			"selfsubjectrulesreviews": newREST("selfsubjectrulesreview", false, func() *authorizationv1.SelfSubjectRulesReview { return &authorizationv1.SelfSubjectRulesReview{} },
				accessReviewer{access}.reviewRules),
		},
	}, nil
}
