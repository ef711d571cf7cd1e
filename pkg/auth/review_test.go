// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
)

func hang(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func fail(context.Context) error { return errUpstream }

func checkUnavailable(t *testing.T, got result) {
	t.Helper()
	if got.code != http.StatusServiceUnavailable || got.status.Reason != metav1.StatusReasonServiceUnavailable || got.retryAfter == "" {
		t.Errorf("got %d %s, Retry-After %q, want 503 with Retry-After", got.code, got.status.Reason, got.retryAfter)
	}
	if got.took > 4*time.Second {
		t.Errorf("the answer took %v", got.took)
	}
}

// With real connections: what each kind of failure looks like to client-go.
func TestFailingUpstreamIsNeitherYesNorNo(t *testing.T) {
	for _, tc := range []struct {
		name   string
		config func(*testing.T) *rest.Config
	}{
		{"500", func(t *testing.T) *rest.Config {
			a := cluster()
			a.before = fail
			return newUpstream(t, a)
		}},
		{"hangs", func(t *testing.T) *rest.Config {
			a := cluster()
			a.before = hang
			return newUpstream(t, a)
		}},
		{"connection refused", refusing},
		{"own credential rejected", func(t *testing.T) *rest.Config {
			c := newUpstream(t, cluster())
			c.BearerToken = "stale"
			return c
		}},
		{"certificate not trusted", func(t *testing.T) *rest.Config {
			c := newUpstream(t, cluster())
			c.CAData = pemOf(newTestCA(t).cert)
			return c
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tokens, access, err := NewReviewers(tc.config(t))
			if err != nil {
				t.Fatal(err)
			}
			cas := newTestCAs(t)
			t.Run("token", func(t *testing.T) {
				checkUnavailable(t, serve(t, newChain(t, tokens, access, cas), get(services, "reader-token")))
			})
			t.Run("right", func(t *testing.T) {
				checkUnavailable(t, serve(t, newChain(t, fakeTokens{cluster()}, access, cas), get(services, "reader-token")))
			})
			t.Run("impersonation", func(t *testing.T) {
				req := get(services, "impersonator-token")
				req.Header.Set("Impersonate-User", "reader")
				checkUnavailable(t, serve(t, newChain(t, fakeTokens{cluster()}, access, cas), req))
			})
			t.Run("local identity", func(t *testing.T) {
				req := withCertificate(get(services, ""), cas.local.client(t, "system:kube-proxy"))
				if got := serve(t, newChain(t, tokens, access, cas), req); got.code != http.StatusOK {
					t.Errorf("got %d, want 200", got.code)
				}
			})
			t.Run("health", func(t *testing.T) {
				if got := serve(t, newChain(t, tokens, access, cas), get("/readyz", "reader-token")); got.code != http.StatusOK {
					t.Errorf("got %d, want 200", got.code)
				}
			})
		})
	}
}

// 200 requests at once, as after a power cut in a whole site.
func TestManyRequestsWhileUpstreamIsAway(t *testing.T) {
	for _, upstream := range []struct {
		name   string
		before func(context.Context) error
	}{{"hangs", hang}, {"fails at once", fail}} {
		for _, tokens := range []struct {
			name  string
			token func(i int) string
		}{
			{"one token", func(int) string { return "reader-token" }},
			{"a token each", func(i int) string { return fmt.Sprint("token-", i) }},
		} {
			t.Run(upstream.name+", "+tokens.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := cluster()
					a.before = upstream.before
					handler := newChain(t, fakeTokens{a}, fakeAccess{a}, newTestCAs(t))
					var wg sync.WaitGroup
					for i := range 200 {
						wg.Go(func() { checkUnavailable(t, serve(t, handler, get(services, tokens.token(i)))) })
					}
					wg.Wait()

					synctest.Wait()
					a.before = nil
					if got := serve(t, handler, get(services, "reader-token")); got.code != http.StatusOK {
						t.Errorf("after upstream has returned: got %d, want 200", got.code)
					}
				})
			})
		}
	}
}

// The token takes most of the time that there is; the right must not add its own.
func TestAllReviewsOfARequestShareOneBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, stuck := cluster(), cluster()
		slow.before = func(context.Context) error { <-time.After(1200 * time.Millisecond); return nil }
		stuck.before = hang
		handler := newChain(t, fakeTokens{slow}, fakeAccess{stuck}, newTestCAs(t))
		checkUnavailable(t, serve(t, handler, get(services, "reader-token")))
		<-time.After(reviewTimeout) // virtual: the review that nobody waits for ends, too
	})
}

func TestAnswersAreRememberedForTheirTime(t *testing.T) {
	for _, tc := range []struct {
		name, token    string
		code           int
		after          time.Duration
		tokens, access int32
	}{
		{"allowed", "reader-token", 200, 0, 1, 1},
		{"allowed, before the token's time is over", "reader-token", 200, tokenAcceptedTTL - time.Second, 1, 1},
		{"allowed, after the token's time", "reader-token", 200, tokenAcceptedTTL + time.Second, 2, 1},
		{"allowed, after the right's time", "reader-token", 200, accessAllowedTTL + time.Second, 2, 2},
		{"denied", "nobody-token", 403, 0, 1, 1},
		{"denied, after the denial's time", "nobody-token", 403, accessDeniedTTL + time.Second, 1, 2},
		{"rejected", "wrong", 401, 0, 1, 0},
		{"rejected, after the rejection's time", "wrong", 401, tokenRejectedTTL + time.Second, 2, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := cluster()
				handler := newChain(t, fakeTokens{a}, fakeAccess{a}, newTestCAs(t))
				requests := func() {
					for range 10 {
						if got := serve(t, handler, get(services, tc.token)); got.code != tc.code {
							t.Errorf("got %d, want %d", got.code, tc.code)
						}
					}
				}
				requests()
				<-time.After(tc.after) // virtual
				requests()
				if got := [2]int32{a.tokenReviews.Load(), a.accessReviews.Load()}; got != [2]int32{tc.tokens, tc.access} {
					t.Errorf("got %v token and access reviews, want [%d %d]", got, tc.tokens, tc.access)
				}
			})
		})
	}
}

func TestConcurrentReviewsOfOneTokenAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := cluster()
		a.before = func(context.Context) error { <-time.After(time.Millisecond * 500); return nil }
		handler := newChain(t, fakeTokens{a}, fakeAccess{a}, newTestCAs(t))
		// The first client goes away; the others still get their answer.
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { serve(t, handler, get(services, "reader-token").WithContext(ctx)) })
		synctest.Wait()
		for range 50 {
			wg.Go(func() {
				if got := serve(t, handler, get(services, "reader-token")); got.code != http.StatusOK {
					t.Errorf("got %d, want 200", got.code)
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		if got := [2]int32{a.tokenReviews.Load(), a.accessReviews.Load()}; got != [2]int32{1, 1} {
			t.Errorf("got %v token and access reviews, want one each", got)
		}
	})
}

func TestOneBrokenConnectionIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := cluster()
		a.before = func(context.Context) error {
			if a.tokenReviews.Load()+a.accessReviews.Load() == 1 {
				return errUpstream
			}
			return nil
		}
		if got := serve(t, newChain(t, fakeTokens{a}, fakeAccess{a}, newTestCAs(t)), get(services, "reader-token")); got.code != http.StatusOK {
			t.Errorf("got %d, want 200", got.code)
		}
	})
}

func TestReviewSpecAsksForExactlyTheRequest(t *testing.T) {
	u := &user.DefaultInfo{Name: "u", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}}
	labelSelector, err := labels.Parse("a=b,c notin (e,d),f,!g,h>1")
	if err != nil {
		t.Fatal(err)
	}
	labelRequirementsOf, _ := labelSelector.Requirements()
	fieldSelector := fields.ParseSelectorOrDie("metadata.name=n,x!=y")
	got := reviewSpec(authorizer.AttributesRecord{
		User: u, ResourceRequest: true, Verb: "list", APIGroup: "discovery.k8s.io", APIVersion: "v1",
		Resource: "endpointslices", Subresource: "s", Namespace: "ns", Name: "n",
		FieldSelectorRequirements: fieldSelector.Requirements(), LabelSelectorRequirements: labelRequirementsOf,
	})
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "u", UID: "1", Groups: []string{"g"}, Extra: map[string]authorizationv1.ExtraValue{"k": {"v"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "list", Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices", Subresource: "s", Namespace: "ns", Name: "n",
			FieldSelector: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
				{Key: "metadata.name", Operator: metav1.FieldSelectorOpIn, Values: []string{"n"}},
				{Key: "x", Operator: metav1.FieldSelectorOpNotIn, Values: []string{"y"}},
			}},
			LabelSelector: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{
				{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: []string{"b"}},
				{Key: "c", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"d", "e"}},
				{Key: "f", Operator: metav1.LabelSelectorOpExists},
				{Key: "g", Operator: metav1.LabelSelectorOpDoesNotExist},
			}},
		},
	}
	sortRequirements := cmp.Transformer("byKey", func(in []metav1.LabelSelectorRequirement) map[string]metav1.LabelSelectorRequirement {
		out := map[string]metav1.LabelSelectorRequirement{}
		for _, r := range in {
			if len(r.Values) == 0 {
				r.Values = nil
			}
			out[r.Key] = r
		}
		return out
	})
	if diff := cmp.Diff(want, got, sortRequirements); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestReviewsAreCounted(t *testing.T) {
	reviewsTotal.Reset()
	synctest.Test(t, func(t *testing.T) {
		a := cluster()
		handler := newChain(t, fakeTokens{a}, fakeAccess{a}, newTestCAs(t))
		for range 3 {
			serve(t, handler, get(services, "reader-token"))
			serve(t, handler, get(services, "nobody-token"))
			serve(t, handler, get(services, "wrong"))
		}
		a.before = fail
		serve(t, handler, get(services, "other"))
	})
	want := `# HELP grid_apiserver_auth_reviews_total [ALPHA] Reviews that upstream was asked for, by kind (token, access) and result (allowed, denied, unavailable). Those with the result busy were not asked, because too many were under way. Answers from memory are not counted.
# TYPE grid_apiserver_auth_reviews_total counter
grid_apiserver_auth_reviews_total{kind="access",result="allowed"} 1
grid_apiserver_auth_reviews_total{kind="access",result="denied"} 1
grid_apiserver_auth_reviews_total{kind="token",result="allowed"} 2
grid_apiserver_auth_reviews_total{kind="token",result="denied"} 1
grid_apiserver_auth_reviews_total{kind="token",result="unavailable"} 1
`
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want), "grid_apiserver_auth_reviews_total"); err != nil {
		t.Error(err)
	}
}
