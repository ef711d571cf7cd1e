// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
)

// reviewsFunc makes the reviews of impersonation.
type reviewsFunc func(verb, name string) (authorizer.Decision, error)

func (f reviewsFunc) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, err := f(a.GetVerb(), a.GetName())
	return decision, "as the test wants", err
}

func listAs(handler http.Handler, name string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/services", nil)
	r.Header.Set("Impersonate-User", name)
	ctx := request.WithUser(r.Context(), &user.DefaultInfo{Name: "robot"})
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Verb: "list", Path: "/api/v1/services", APIVersion: "v1", Resource: "services"})
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r.WithContext(ctx))
	return w
}

// The filter tries several ways of being allowed, and remembers which one was. A way that could not be reviewed must not
// spoil the answer when another one is remembered.
func TestRememberedImpersonationAnswersOnceInAnOutage(t *testing.T) {
	outage := false
	handler := WithImpersonation(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "list") }),
		reviewsFunc(func(verb, name string) (authorizer.Decision, error) {
			switch {
			case outage:
				return authorizer.DecisionDeny, unavailable("SubjectAccessReview", errors.New("outage"))
			case verb == "impersonate":
				return decisionIf(name == "v"), nil
			}
			return decisionIf(name != "v" || !strings.HasPrefix(verb, "impersonate:")), nil
		}), scheme.Codecs.WithoutConversion())
	for _, name := range []string{"u", "v", "u", "v"} {
		if w := listAs(handler, name); w.Body.String() != "list" {
			t.Errorf("as %s: answer %d %s", name, w.Code, w.Body)
		}
		outage = name == "v"
	}
}

func TestDenialBesideAnOutageOfReviewsIsUnavailable(t *testing.T) {
	handler := WithImpersonation(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("passed") }),
		reviewsFunc(func(verb, _ string) (authorizer.Decision, error) {
			if verb == "impersonate" {
				return authorizer.DecisionNoOpinion, nil
			}
			return authorizer.DecisionDeny, unavailable("SubjectAccessReview", errors.New("outage"))
		}), scheme.Codecs.WithoutConversion())
	if w := listAs(handler, "u"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("answer %d, want 503: %s", w.Code, w.Body)
	}
}

func decisionIf(allowed bool) authorizer.Decision {
	if allowed {
		return authorizer.DecisionAllow
	}
	return authorizer.DecisionNoOpinion
}
