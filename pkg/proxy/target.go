// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// target is the origin-form of a request: what a client wrote between the method and the protocol.
type target struct {
	path     string // as sent, percent-encoding and all
	query    string
	hasQuery bool // tells "/a?" from "/a"
}

var (
	errNotOriginForm = errors.New("the request target must be a path")
	errUnfaithful    = errors.New("the request path cannot be passed on unchanged")
)

// targetOf returns the target of r as the client sent it. net/url re-encodes characters that it finds unusual, so the
// raw request line is taken where it says the same as r.URL, on which every decision was made.
func targetOf(r *http.Request) (target, error) {
	t := target{path: r.URL.EscapedPath(), query: r.URL.RawQuery, hasQuery: r.URL.ForceQuery || r.URL.RawQuery != ""}
	if t.path == "" && r.URL.Host != "" {
		t.path = "/" // absolute form of the root
	}
	rawPath, rawQuery, hasQuery := strings.Cut(r.RequestURI, "?")
	if strings.HasPrefix(rawPath, "/") && rawQuery == r.URL.RawQuery {
		if decoded, err := url.PathUnescape(rawPath); err == nil && decoded == r.URL.Path {
			t = target{path: rawPath, query: rawQuery, hasQuery: hasQuery}
		}
	}
	if r.Method == http.MethodConnect || r.URL.Opaque != "" || !strings.HasPrefix(t.path, "/") {
		return target{}, errNotOriginForm
	}
	return t, nil
}

// on returns the URL of the target on the server base, whose path, if any, is a prefix. Its RequestURI is byte for byte
// the prefix and the target.
func (t target) on(base *url.URL) (*url.URL, error) {
	full := strings.TrimSuffix(base.EscapedPath(), "/") + t.path
	decoded, err := url.PathUnescape(full)
	if err != nil {
		return nil, errUnfaithful
	}
	u := &url.URL{
		Scheme:     base.Scheme,
		Host:       base.Host,
		Path:       decoded,
		RawPath:    full,
		RawQuery:   t.query,
		ForceQuery: t.hasQuery,
	}
	if u.EscapedPath() != full {
		// Opaque is sent as it is, but one that starts with two slashes is taken for an authority.
		if strings.HasPrefix(full, "//") {
			return nil, errUnfaithful
		}
		u.Opaque = full
	}
	return u, nil
}
