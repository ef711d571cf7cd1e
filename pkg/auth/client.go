// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// TokenReviewer makes TokenReviews upstream. AuthenticationV1().TokenReviews() of
// a clientset is one.
type TokenReviewer interface {
	Create(ctx context.Context, review *authenticationv1.TokenReview, options metav1.CreateOptions) (*authenticationv1.TokenReview, error)
}

// SubjectAccessReviewer makes SubjectAccessReviews upstream.
// AuthorizationV1().SubjectAccessReviews() of a clientset is one.
type SubjectAccessReviewer interface {
	Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, options metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// NewReviewers makes both kinds of reviewers from the server's own upstream
// connection. They have a bounded timeout, and no rate limit of the client, which
// would queue requests of many users behind each other. The config is not changed.
func NewReviewers(config *rest.Config) (TokenReviewer, SubjectAccessReviewer, error) {
	c := rest.CopyConfig(config)
	c.Timeout = reviewTimeout
	c.QPS = -1
	c.RateLimiter = nil
	c.ContentType = runtime.ContentTypeProtobuf
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c.WarningHandlerWithContext = rest.NoWarnings{}
	authentication, err := authenticationv1client.NewForConfig(c)
	if err != nil {
		return nil, nil, fmt.Errorf("client for token reviews: %w", err)
	}
	authorization, err := authorizationv1client.NewForConfig(c)
	if err != nil {
		return nil, nil, fmt.Errorf("client for access reviews: %w", err)
	}
	return authentication.TokenReviews(), authorization.SubjectAccessReviews(), nil
}
