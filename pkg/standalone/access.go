// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	requestunion "k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// AdminUser is who the token of the administrator stands for.
const AdminUser = "kubernetes-admin"

// healthPaths are open to all: probes have no credentials.
var healthPaths = []string{"/healthz", "/livez", "/readyz"}

// newTokenAuthenticator knows the given tokens. Their users may do everything.
func newTokenAuthenticator(users map[string]string) authenticator.Token {
	tokens := map[string]*user.DefaultInfo{}
	for token, name := range users {
		tokens[token] = &user.DefaultInfo{Name: name, Groups: []string{user.SystemPrivilegedGroup}}
	}
	return group.NewTokenGroupAdder(tokenfile.New(tokens), []string{user.AllAuthenticated})
}

// newAuthenticator takes tokens, and lets anybody ask for the server's health.
func newAuthenticator(tokens authenticator.Token) authenticator.Request {
	conditions := make([]apiserver.AnonymousAuthCondition, 0, len(healthPaths))
	for _, path := range healthPaths {
		conditions = append(conditions, apiserver.AnonymousAuthCondition{Path: path})
	}
	return requestunion.NewFailOnError(bearertoken.New(tokens), anonymous.NewAuthenticator(conditions))
}

// access lets system:masters do everything, and nobody else anything but ask for
// the server's health. Roles and their bindings are stored, but nothing evaluates
// them: see docs/standalone.md.
type access struct{}

var (
	_ authorizer.Authorizer   = access{}
	_ authorizer.RuleResolver = access{}
)

// Authorize implements authorizer.Authorizer.
func (access) Authorize(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	switch {
	case privileged(attributes.GetUser()):
		return authorizer.DecisionAllow, "", nil
	case !attributes.IsResourceRequest() && slices.Contains(healthPaths, attributes.GetPath()):
		return authorizer.DecisionAllow, "health endpoints are open", nil
	default:
		return authorizer.DecisionNoOpinion, "a standalone server knows administrators only", nil
	}
}

// ConditionsAwareAuthorize implements authorizer.Authorizer; no decision has conditions.
func (a access) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(a.Authorize(ctx, attributes))
}

// EvaluateConditions implements authorizer.Authorizer.
func (access) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// RulesFor implements authorizer.RuleResolver.
func (access) RulesFor(_ context.Context, u user.Info, _ string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	all := []string{"*"}
	if privileged(u) {
		return []authorizer.ResourceRuleInfo{&authorizer.DefaultResourceRuleInfo{Verbs: all, APIGroups: all, Resources: all}},
			[]authorizer.NonResourceRuleInfo{&authorizer.DefaultNonResourceRuleInfo{Verbs: all, NonResourceURLs: all}}, false, nil
	}
	return nil, []authorizer.NonResourceRuleInfo{&authorizer.DefaultNonResourceRuleInfo{Verbs: []string{"get"}, NonResourceURLs: healthPaths}}, false, nil
}

func privileged(u user.Info) bool {
	return u != nil && slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup)
}
