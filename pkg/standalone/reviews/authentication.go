// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package reviews

import (
	"context"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

type tokenReviewer struct{ tokens authenticator.Token }

func (r tokenReviewer) review(ctx context.Context, review *authenticationv1.TokenReview) error {
	if review.Spec.Token == "" {
		return apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	// Tokens of this server have no audience, so they are good for any.
	response, ok, err := r.tokens.AuthenticateToken(ctx, review.Spec.Token)
	review.Status = authenticationv1.TokenReviewStatus{Authenticated: ok && err == nil}
	if err != nil {
		review.Status.Error = err.Error()
	}
	if review.Status.Authenticated && response != nil && response.User != nil {
		review.Status.User = userInfo(response.User)
		review.Status.Audiences = response.Audiences
	}
	return nil
}

func reviewSelf(ctx context.Context, review *authenticationv1.SelfSubjectReview) error {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewGenericServerResponse(http.StatusForbidden, "create", authenticationv1.Resource("selfsubjectreviews"), "", "there is no user", 0, false)
	}
	review.Status = authenticationv1.SelfSubjectReviewStatus{UserInfo: userInfo(caller)}
	return nil
}

func userInfo(u user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	for key, values := range u.GetExtra() {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}
