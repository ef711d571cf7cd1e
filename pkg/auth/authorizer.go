// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// accessAllowedTTL: how long a withdrawn right lasts for reads of this node's
	// view. kube-apiserver's own webhook keeps 5 minutes, delegating servers 10 s.
	// A minute keeps clients that list every 30 s from paying a round trip over
	// a poor link each time, and is short enough to wait for.
	accessAllowedTTL = time.Minute
	// accessDeniedTTL only dampens retries: a right that was just granted should
	// work at the next try.
	accessDeniedTTL = 5 * time.Second
	// accessCacheSize entries of a few 100 bytes: 100 users with some 10 questions
	// each.
	accessCacheSize = 4096
	// accessShare of the slots is what one user gets, whatever it asks for. A
	// client that is behaved has two or three questions when it starts.
	accessShare = maxReviews / 4
	// accessQueue is for a program that reads 200 objects by name at once. It
	// stays below the server's limit of 400 requests in flight.
	accessQueue = 256
)

// LocalRule says what the local identity may do with what this server serves itself.
type LocalRule func(authorizer.Attributes) bool

// Authorizer decides about requests that are answered locally. It may be used
// concurrently. Its errors are those of IsReviewUnavailable.
type Authorizer struct {
	reviewer  SubjectAccessReviewer
	localRule LocalRule
	reviews   *reviews[authorizationv1.SubjectAccessReviewStatus]
}

var _ authorizer.Authorizer = (*Authorizer)(nil)

// NewAuthorizer asks reviewer about everybody but the local identity, to which
// localRule applies alone. Neither may be nil.
func NewAuthorizer(reviewer SubjectAccessReviewer, localRule LocalRule) (*Authorizer, error) {
	if reviewer == nil {
		return nil, errors.New("the access reviewer is missing")
	}
	if localRule == nil {
		return nil, errors.New("the rule for the local identity is missing")
	}
	return &Authorizer{
		reviewer:  reviewer,
		localRule: localRule,
		reviews: newReviews(policy[authorizationv1.SubjectAccessReviewStatus]{
			kind:        kindAccess,
			accepted:    func(s authorizationv1.SubjectAccessReviewStatus) bool { return s.Allowed && !s.Denied },
			acceptedTTL: accessAllowedTTL,
			rejectedTTL: accessDeniedTTL,
			memorySize:  accessCacheSize,
			share:       accessShare,
			queue:       accessQueue,
		}),
	}, nil
}

// Authorize implements authorizer.Authorizer.
func (a *Authorizer) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if isHealthRead(attributes.IsResourceRequest(), attributes.GetVerb(), attributes.GetPath()) {
		return authorizer.DecisionAllow, "health endpoints are open", nil
	}
	u := attributes.GetUser()
	switch {
	case u == nil || isAnonymous(u):
		return authorizer.DecisionDeny, "", nil
	case IsLocalIdentity(u) && a.localRule(attributes):
		return authorizer.DecisionAllow, "built-in right of the local identity", nil
	case IsLocalIdentity(u):
		return authorizer.DecisionDeny, "not a right of the local identity", nil
	}
	return a.review(ctx, attributes)
}

func (a *Authorizer) review(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	spec := reviewSpec(attributes)
	question, err := json.Marshal(spec)
	if err != nil {
		return authorizer.DecisionDeny, "", fmt.Errorf("access review: %w", err)
	}
	status, err := a.reviews.get(ctx, spec.User, question, func(ctx context.Context) (authorizationv1.SubjectAccessReviewStatus, error) {
		answer, err := a.reviewer.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			return authorizationv1.SubjectAccessReviewStatus{}, err
		}
		return answer.Status, nil
	})
	switch {
	case err != nil:
		return authorizer.DecisionDeny, "", err
	case status.Denied:
		return authorizer.DecisionDeny, status.Reason, nil
	case status.Allowed:
		return authorizer.DecisionAllow, status.Reason, nil
	default:
		return authorizer.DecisionNoOpinion, status.Reason, nil
	}
}

// ConditionsAwareAuthorize implements authorizer.Authorizer; no decision has
// conditions.
func (a *Authorizer) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, attributes))
}

// EvaluateConditions implements authorizer.Authorizer; there are none to evaluate.
func (a *Authorizer) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}
