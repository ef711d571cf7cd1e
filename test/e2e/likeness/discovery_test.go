// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"net/http"
	"testing"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

const (
	acceptAggregated = "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	// acceptDiscovery is what kubectl sends.
	acceptDiscovery  = acceptAggregated + ",application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
	acceptOpenAPIPB  = "Accept: application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	acceptOpenAPIPB2 = "Accept: application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	acceptOpenAPIPB3 = "Accept: application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
)

// otherMethods is what becomes of methods other than GET: the aggregator, which has /apis, does not look at them.
var otherMethods = map[string]int{"/api": http.StatusMethodNotAllowed, "/apis": http.StatusOK}

func TestDiscovery(t *testing.T) {
	for _, path := range []string{"/api", "/apis"} {
		readShared(t, path, []step{
			{name: "plain", path: path},
			{name: "as JSON", path: path, headers: []string{"Accept: application/json"}},
			{name: "as YAML", path: path, headers: []string{acceptYAML}},
			{name: "as protobuf", path: path, headers: []string{acceptProtobuf}},
			{name: "aggregated", path: path, headers: []string{acceptAggregated}, save: "first"},
			{name: "aggregated, unchanged", path: path, headers: []string{acceptAggregated, "If-None-Match: {first.etag}"}, status: http.StatusNotModified},
			{name: "aggregated, changed", path: path, headers: []string{acceptAggregated, `If-None-Match: "other"`}},
			{name: "as kubectl does", path: path, headers: []string{acceptDiscovery, gzipped}},
			{name: "aggregated of a future version", path: path, headers: []string{"Accept: application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList"}, status: http.StatusNotAcceptable},
			{name: "unacceptable", path: path, headers: []string{"Accept: text/html"}, status: http.StatusNotAcceptable},
			{name: "without rights", path: path, token: lab.NobodyToken},
			{name: "without credentials", path: path, token: noToken, status: http.StatusForbidden},
			{name: "head", method: http.MethodHead, path: path, status: otherMethods[path]},
			{name: "post", method: http.MethodPost, path: path, body: "{}", status: otherMethods[path]},
			{name: "trailing slash", path: path + "/"},
		})
	}
	var groups []step
	for _, path := range []string{
		"/api/v1", "/apis/apps", "/apis/apps/v1", "/apis/discovery.k8s.io", "/apis/discovery.k8s.io/v1", "/apis/networking.k8s.io/v1",
		"/apis/likeness.example.com", "/apis/likeness.example.com/v1",
	} {
		groups = append(groups, step{path: path}, step{name: path + ", protobuf", path: path, headers: []string{acceptProtobuf}}, step{name: path + ", YAML", path: path, headers: []string{acceptYAML}})
	}
	groups = append(groups,
		step{name: "aggregated document of a group", path: "/apis/apps/v1", headers: []string{acceptDiscovery}},
		step{path: "/apis/nothing", status: http.StatusNotFound},
		step{path: "/apis/nothing/v1", status: http.StatusNotFound},
		step{path: "/apis/apps/v9", status: http.StatusNotFound},
		step{path: "/api/v9", status: http.StatusNotFound},
	)
	readShared(t, "groups", groups)
	readShared(t, "openapi v2", []step{
		{name: "plain", path: "/openapi/v2", save: "first"},
		{name: "gzip", path: "/openapi/v2", headers: []string{gzipped}},
		{name: "unchanged", path: "/openapi/v2", headers: []string{"If-None-Match: {first.etag}"}, status: http.StatusNotModified},
		{name: "protobuf of old", path: "/openapi/v2", headers: []string{acceptOpenAPIPB2}},
		{name: "protobuf", path: "/openapi/v2", headers: []string{acceptOpenAPIPB}},
		{name: "unacceptable", path: "/openapi/v2", headers: []string{acceptYAML}, status: http.StatusNotAcceptable},
		{name: "head", method: http.MethodHead, path: "/openapi/v2"},
		{name: "without rights", path: "/openapi/v2", token: lab.NobodyToken},
	})
	readShared(t, "openapi v3", []step{
		{name: "plain", path: "/openapi/v3"},
		{name: "gzip", path: "/openapi/v3", headers: []string{gzipped}},
		{name: "a group without a hash", path: "/openapi/v3/apis/discovery.k8s.io/v1", save: "first"},
		{name: "a group, unchanged", path: "/openapi/v3/apis/discovery.k8s.io/v1", headers: []string{"If-None-Match: {first.etag}"}, status: http.StatusNotModified},
		{name: "a group with its hash", path: "/openapi/v3/apis/discovery.k8s.io/v1?hash={first.tag}"},
		{name: "a group with another hash", path: "/openapi/v3/apis/discovery.k8s.io/v1?hash=0123456789ABCDEF", status: http.StatusMovedPermanently},
		{name: "a group as protobuf", path: "/openapi/v3/apis/discovery.k8s.io/v1", headers: []string{acceptOpenAPIPB3}},
		{name: "core", path: "/openapi/v3/api/v1", headers: []string{gzipped}},
		{name: "custom resources", path: "/openapi/v3/apis/likeness.example.com/v1"},
		{name: "no such group", path: "/openapi/v3/apis/nothing/v1", status: http.StatusNotFound},
		{name: "unacceptable", path: "/openapi/v3", headers: []string{acceptYAML}},
	})
	readShared(t, "other paths", []step{
		{path: "/version"},
		{name: "version without credentials", path: "/version", token: noToken},
		{name: "version without rights", path: "/version", token: lab.NobodyToken},
		{path: "/version/"},
		{path: "/"},
		{name: "root without credentials", path: "/", token: noToken, status: http.StatusForbidden},
		{path: "/nothing", status: http.StatusNotFound},
		{name: "nothing without rights", path: "/nothing", token: lab.NobodyToken, status: http.StatusForbidden},
		{path: "/.well-known/openid-configuration"},
		{path: "/openid/v1/jwks"},
		{path: "/index.html"},
		{path: "/swagger.json", status: http.StatusNotFound},
		{path: "/logs", status: http.StatusNotFound},
	})
}

func TestReviews(t *testing.T) {
	const authorization = "/apis/authorization.k8s.io/v1"
	readShared(t, "reviews", []step{
		{name: "own access", method: http.MethodPost, path: authorization + "/selfsubjectaccessreviews", status: http.StatusCreated,
			body: `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"get","resource":"services"}}}`},
		{name: "own access without rights", method: http.MethodPost, path: authorization + "/selfsubjectaccessreviews", status: http.StatusCreated, token: lab.NobodyToken,
			body: `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"get","resource":"services"}}}`},
		{name: "another's access", method: http.MethodPost, path: authorization + "/subjectaccessreviews", status: http.StatusCreated,
			body: `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"lab-nobody","resourceAttributes":{"verb":"get","resource":"services"}}}`},
		{name: "another's access without rights", method: http.MethodPost, path: authorization + "/subjectaccessreviews", status: http.StatusForbidden, token: lab.NobodyToken,
			body: `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"lab-admin","resourceAttributes":{"verb":"get","resource":"services"}}}`},
		{name: "own identity", method: http.MethodPost, path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", status: http.StatusCreated,
			body: `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`},
		{name: "token", method: http.MethodPost, path: "/apis/authentication.k8s.io/v1/tokenreviews", status: http.StatusCreated,
			body: `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"` + lab.NobodyToken + `"}}`},
		{name: "bad token", method: http.MethodPost, path: "/apis/authentication.k8s.io/v1/tokenreviews", status: http.StatusCreated,
			body: `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"nonsense"}}`},
	})
}
