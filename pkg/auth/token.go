// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	// tokenAcceptedTTL is the time of kube-apiserver and of delegating servers: a
	// revoked token works this long at most, a polling client costs a review
	// every 10 s.
	tokenAcceptedTTL = 10 * time.Second
	// tokenRejectedTTL only dampens retries: a token may become valid (its
	// ServiceAccount is created again).
	tokenRejectedTTL = 2 * time.Second
	// tokenCacheSize entries of about 1 KiB. A node has some 100 pods.
	tokenCacheSize = 1024
	// tokenQueue bounds what a flood of made-up tokens holds here; at 300 ms for
	// a review some 200 find a slot in time.
	tokenQueue = 1024
)

// tokenAuthenticator reviews bearer tokens upstream. Rejected tokens are not ok and
// no error; errors are those of IsReviewUnavailable.
type tokenAuthenticator struct {
	reviewer TokenReviewer
	// reviews answers nil for a rejected token.
	reviews *reviews[*user.DefaultInfo]
}

var _ authenticator.Token = (*tokenAuthenticator)(nil)

func newTokenAuthenticator(reviewer TokenReviewer) *tokenAuthenticator {
	return &tokenAuthenticator{
		reviewer: reviewer,
		reviews: newReviews(policy[*user.DefaultInfo]{
			kind:        kindToken,
			accepted:    func(u *user.DefaultInfo) bool { return u != nil },
			acceptedTTL: tokenAcceptedTTL,
			rejectedTTL: tokenRejectedTTL,
			memorySize:  tokenCacheSize,
			share:       maxReviews,
			queue:       tokenQueue,
		}),
	}
}

// AuthenticateToken implements authenticator.Token.
func (t *tokenAuthenticator) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	// Nobody knows yet whose token it is.
	const asker = ""
	u, err := t.reviews.get(ctx, asker, []byte(token), func(ctx context.Context) (*user.DefaultInfo, error) {
		return t.review(ctx, token)
	})
	if err != nil || u == nil {
		return nil, false, err
	}
	return &authenticator.Response{User: u}, true, nil
}

// review asks for a token that is good for the API server itself, which is what
// an empty list of audiences means.
func (t *tokenAuthenticator) review(ctx context.Context, token string) (*user.DefaultInfo, error) {
	answer, err := t.reviewer.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	// status.error is there for most rejected tokens (expired, malformed), so it
	// does not tell a failed review from a rejected token.
	if !answer.Status.Authenticated || answer.Status.User.Username == "" {
		return nil, nil
	}
	reviewed := answer.Status.User
	u := &user.DefaultInfo{Name: reviewed.Username, UID: reviewed.UID, Groups: reviewed.Groups}
	if len(reviewed.Extra) > 0 {
		u.Extra = make(map[string][]string, len(reviewed.Extra))
		for key, values := range reviewed.Extra {
			u.Extra[key] = values
		}
	}
	return u, nil
}
