// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// The tokens that upstream knows.
const (
	adminToken  = "admin"  // may do everything
	weakToken   = "weak"   // may do nothing
	serverToken = "server" // the grid-apiserver's own credential: everything
)

// seen is a request that upstream has received.
type seen struct {
	method   string
	verb     string
	resource string
	path     string
	query    url.Values
	token    string
}

// relist reports whether the request reads a whole collection.
func (s seen) relist() bool {
	return s.verb == "list" || s.verb == "watch" && s.query.Get("sendInitialEvents") == "true"
}

var requestInfo = &request.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// ServeHTTP implements http.Handler.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	u.mu.Lock()
	u.requests = append(u.requests, seen{r.Method, info.Verb, info.Resource, r.URL.Path, r.URL.Query(), token})
	held, absent, expired := u.held, u.lacks[info.Resource], u.expired
	u.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	}
	switch {
	case token == weakToken:
		fail(w, r, apierrors.NewForbidden(schema.GroupResource{Resource: info.Resource}, info.Name, nil))
	case token != adminToken && token != serverToken:
		fail(w, r, apierrors.NewUnauthorized("Unauthorized"))
	case absent:
		http.NotFound(w, r)
	case info.Resource == "tokenreviews":
		review(w, r, &authenticationv1.TokenReview{}, reviewToken)
	case info.Resource == "subjectaccessreviews":
		review(w, r, &authorizationv1.SubjectAccessReview{}, func(s *authorizationv1.SubjectAccessReview) {
			s.Status.Allowed = s.Spec.User == adminToken
		})
	case info.Verb == "watch" && olderThan(r.URL.Query().Get("resourceVersion"), expired):
		fail(w, r, apierrors.NewResourceExpired("too old resource version"))
	case u.stored(info):
		u.handler.ServeHTTP(w, r)
	case info.Subresource == "log":
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, "first line\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case info.Resource == "pods" && info.Verb == "list":
		respond(w, http.StatusOK, &corev1.PodList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "upstream"}}},
		})
	case info.Path == "/version":
		respond(w, http.StatusOK, version.Info{GitVersion: "v1.37.2"})
	default:
		respond(w, http.StatusOK, &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		})
	}
}

// stored tells the reads of what upstream has in its stores.
func (u *upstream) stored(info *request.RequestInfo) bool {
	_, ok := u.stores[schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}]
	return ok && info.Subresource == "" && (info.Verb == "get" || info.Verb == "list" || info.Verb == "watch")
}

func olderThan(resourceVersion string, revision uint64) bool {
	from, err := strconv.ParseUint(resourceVersion, 10, 64)
	return err == nil && from > 0 && from < revision
}

func reviewToken(r *authenticationv1.TokenReview) {
	switch r.Spec.Token {
	case adminToken, weakToken:
		r.Status.Authenticated = true
		r.Status.User = authenticationv1.UserInfo{Username: r.Spec.Token, Groups: []string{"system:authenticated"}}
	default:
		r.Status.Error = "unknown token"
	}
}

func review[T runtime.Object](w http.ResponseWriter, r *http.Request, into T, decide func(T)) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	decoded, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(body, nil, into)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	decide(decoded.(T))
	respond(w, http.StatusCreated, decoded)
}

func respond(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func fail(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.RespondWithError(w, r, err, clientscheme.Codecs)
}

// count returns how many requests were received for which match holds.
func (u *upstream) count(match func(seen) bool) int {
	n := 0
	for _, s := range u.received() {
		if match(s) {
			n++
		}
	}
	return n
}

func (u *upstream) received() []seen {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]seen(nil), u.requests...)
}
