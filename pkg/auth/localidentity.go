// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
)

// localUser is the user of a request with a client certificate of the local client
// CA. The type is what marks it: an upstream user of the same name, or one that is
// impersonated, has another type and no built-in right.
type localUser struct {
	user.DefaultInfo
}

var _ user.Info = (*localUser)(nil)

// IsLocalIdentity reports whether u was authenticated by the local client CA.
func IsLocalIdentity(u user.Info) bool {
	_, ok := u.(*localUser)
	return ok
}

// LocalIdentityAuthenticator knows the local identity by its client certificate,
// and nothing else: it looks at no header.
type LocalIdentityAuthenticator struct {
	certificates *x509request.Authenticator
}

var _ authenticator.Request = (*LocalIdentityAuthenticator)(nil)

// NewLocalIdentityAuthenticator takes the VerifyOptions of the local client CA.
func NewLocalIdentityAuthenticator(verify x509request.VerifyOptionFunc) (*LocalIdentityAuthenticator, error) {
	if verify == nil {
		return nil, errors.New("the local client CA is missing")
	}
	// Without roots crypto/x509 would trust the system's.
	verify = requireRoots(verify)
	return &LocalIdentityAuthenticator{
		certificates: x509request.NewDynamic(verify, x509request.UserConversionFunc(localUserOf)),
	}, nil
}

// AuthenticateRequest implements authenticator.Request. No certificate is no error;
// a certificate of another CA, an expired one, and one of this CA for another
// user are. The request is not changed.
func (l *LocalIdentityAuthenticator) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	return l.certificates.AuthenticateRequest(req)
}

func localUserOf(chain []*x509.Certificate) (*authenticator.Response, bool, error) {
	response, ok, err := x509request.CommonNameUserConversion(chain)
	if err != nil || !ok {
		return nil, false, err
	}
	u := response.User
	if u.GetName() != user.KubeProxy {
		return nil, false, fmt.Errorf("certificate of the local client CA for %q is not the local identity", u.GetName())
	}
	return &authenticator.Response{User: &localUser{user.DefaultInfo{
		Name:   u.GetName(),
		Groups: append(append([]string{}, u.GetGroups()...), user.AllAuthenticated),
		Extra:  u.GetExtra(),
	}}}, true, nil
}

func requireRoots(verify x509request.VerifyOptionFunc) x509request.VerifyOptionFunc {
	return func() (x509.VerifyOptions, bool) {
		options, ok := verify()
		return options, ok && options.Roots != nil
	}
}
