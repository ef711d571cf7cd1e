// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"path"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
)

// isHealthRead reports whether a request asks for the server's health. That is open to
// everyone and needs no review: probes have no credentials, and an operator must see
// why the server is not ready while upstream is away.
func isHealthRead(resourceRequest bool, verb, requestPath string) bool {
	if resourceRequest || (verb != "get" && verb != "head") {
		return false
	}
	// What is not in its shortest form could mean another path to a handler.
	if clean := path.Clean(requestPath); clean != requestPath && clean+"/" != requestPath {
		return false
	}
	for _, health := range []string{"/livez", "/readyz", "/healthz"} {
		if requestPath == health || strings.HasPrefix(requestPath, health+"/") {
			return true
		}
	}
	return false
}

func anonymous() user.Info {
	return &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
}

func isAnonymous(u user.Info) bool {
	if u.GetName() == user.Anonymous {
		return true
	}
	for _, group := range u.GetGroups() {
		if group == user.AllUnauthenticated {
			return true
		}
	}
	return false
}
