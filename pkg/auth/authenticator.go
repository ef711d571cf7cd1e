// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"errors"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
)

// AuthenticatorOptions are the sources of users.
type AuthenticatorOptions struct {
	// TokenReviews reviews bearer tokens. It must not be nil.
	TokenReviews TokenReviewer
	// LocalIdentity knows the local identity. It must not be nil.
	LocalIdentity *LocalIdentityAuthenticator
	// ClientCA verifies the client certificates of other users
	// (--client-ca-file), nil for none. They have the rights that upstream
	// grants to the name and groups in the certificate.
	ClientCA x509request.VerifyOptionFunc
}

// Authenticator finds the user of a request: by its bearer token (header, or
// WebSocket subprotocol) if it has one, else by its client certificate. A token that
// is rejected is never made good by a certificate. There is no anonymous user.
type Authenticator struct {
	request authenticator.Request
}

var _ authenticator.Request = (*Authenticator)(nil)

// NewAuthenticator returns an error if a source is missing.
func NewAuthenticator(options AuthenticatorOptions) (*Authenticator, error) {
	if options.TokenReviews == nil {
		return nil, errors.New("the token reviewer is missing")
	}
	if options.LocalIdentity == nil {
		return nil, errors.New("the authenticator of the local identity is missing")
	}
	tokens := newTokenAuthenticator(options.TokenReviews)
	var certificates authenticator.Request = options.LocalIdentity
	if options.ClientCA != nil {
		certificates = union.New(certificates, group.NewAuthenticatedGroupAdder(
			x509request.NewDynamic(requireRoots(options.ClientCA), x509request.CommonNameUserConversion)))
	}
	return &Authenticator{request: union.NewFailOnError(
		bearertoken.New(tokens),
		websocket.NewProtocolAuthenticator(tokens),
		certificates,
	)}, nil
}

// AuthenticateRequest implements authenticator.Request. No credential is no error. An
// error is one of IsReviewUnavailable, or says why the credential is not accepted. It
// removes an accepted token from the request.
func (a *Authenticator) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	return a.request.AuthenticateRequest(req)
}
