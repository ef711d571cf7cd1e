// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/streaming/pkg/httpstream"
)

const (
	impersonatePrefix = "Impersonate-"
	remotePrefix      = "X-Remote-" // what a front proxy with a certificate of its own would say about the user
)

// credential is the identity under which upstream sees a request.
type credential int

const (
	// clientToken: the client's own bearer token, over connections that carry nothing of the server's.
	clientToken credential = iota
	// serverOwn: the server's own credential, lent to the local identity.
	serverOwn
)

// identify decides under which identity r goes upstream. The error is a Status: 401 when r has no identity, 403 when it
// has one that may not do this. A bearer token wins over a client certificate and is not looked at: upstream does that.
func identify(r *http.Request, info *request.RequestInfo, t target, hasToken bool, local authenticator.Request) (credential, error) {
	if hasToken {
		return clientToken, nil
	}
	if local != nil {
		response, ok, err := local.AuthenticateRequest(r)
		if err == nil && ok {
			return serverOwn, authorizeLocal(r, info, t, response)
		}
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return 0, apierrors.NewUnauthorized("a client certificate cannot be passed on to the upstream API server; send a bearer token")
	}
	return 0, apierrors.NewUnauthorized("Unauthorized")
}

// authorizeLocal returns nil if the local identity may do what r asks. Beyond the rule itself it refuses whatever could
// make upstream see another request than the rule saw: ambiguous paths, connections that change their protocol.
func authorizeLocal(r *http.Request, info *request.RequestInfo, t target, identity *authenticator.Response) error {
	attributes := attributesOf(info, identity.User)
	forbidden := func(reason string) error { return responsewriters.ForbiddenStatusError(attributes, reason) }
	switch {
	case hasPrefixedHeader(r.Header, impersonatePrefix):
		return forbidden("impersonation needs a bearer token")
	case httpstream.IsUpgradeRequest(r) || r.Header.Get("Upgrade") != "":
		return forbidden("the local identity cannot upgrade connections")
	case !isUnambiguous(t.path):
		return forbidden("the local identity may only use plain paths")
	case !methodMatches(r.Method, info):
		return forbidden("unexpected HTTP method")
	case !LocalIdentityMay(attributes):
		return forbidden(fmt.Sprintf("the local identity of this node may only do what kube-proxy needs; use a bearer token for %s", info.Path))
	}
	return nil
}

// methodMatches guards against verbs that come from the path: "/api/v1/watch/services" is a watch whatever the method.
func methodMatches(method string, info *request.RequestInfo) bool {
	switch info.Verb {
	case "get", "list", "watch":
		return method == http.MethodGet
	default:
		return true
	}
}

// tokensOf returns the bearer tokens of r, from the Authorization header and from a WebSocket subprotocol. The parsers are
// those of kube-apiserver, so that both sides agree on what a token is.
func tokensOf(r *http.Request) []string {
	var tokens []string
	note := authenticator.TokenFunc(func(_ context.Context, token string) (*authenticator.Response, bool, error) {
		tokens = append(tokens, token)
		return nil, false, nil
	})
	// Neither changes the request unless the token is accepted. Their error is about the token being refused.
	_, _, _ = bearertoken.New(note).AuthenticateRequest(r)
	_, _, _ = websocket.NewProtocolAuthenticator(note).AuthenticateRequest(r)
	return tokens
}

func hasPrefixedHeader(header http.Header, prefix string) bool {
	for name := range header {
		if hasPrefixFold(name, prefix) {
			return true
		}
	}
	return false
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// applyIdentity makes the headers of an outgoing request those of its credential. in is the client's request: what
// identifies the client comes from there, so that "Connection: Authorization" or "Connection: Impersonate-User" cannot
// take half of an identity away.
func applyIdentity(c credential, out *http.Request, in *http.Request) {
	if c == serverOwn {
		// The transport adds the credential, which it does only where there is no Authorization.
		te := out.Header.Values("Te")
		out.Header = keepLocalIdentityHeaders(out.Header)
		if len(te) > 0 {
			out.Header["Te"] = te
		}
		out.Trailer = nil
		return
	}
	for name, values := range in.Header {
		if name == "Authorization" || hasPrefixFold(name, impersonatePrefix) {
			out.Header[name] = values
		}
	}
	for name := range out.Header {
		if hasPrefixFold(name, remotePrefix) {
			delete(out.Header, name)
		}
	}
	for name := range out.Trailer {
		if hasPrefixFold(name, remotePrefix) || hasPrefixFold(name, impersonatePrefix) || name == "Authorization" {
			delete(out.Trailer, name)
		}
	}
}
