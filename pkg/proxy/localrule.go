// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

var (
	readVerbs  = []string{"get", "list", "watch"}
	eventVerbs = []string{"create", "patch", "update"}
	// reviewVerbs: a review is created to be answered, nothing is stored.
	reviewVerbs = []string{"create"}
)

// localIdentityRights are the resources and verbs a kube-proxy needs, as the roles system:node-proxier and
// system:basic-user of a cluster grant them.
var localIdentityRights = map[schema.GroupResource][]string{
	servicesResource.GroupResource():       readVerbs,
	endpointsResource.GroupResource():      readVerbs,
	endpointSlicesResource.GroupResource(): readVerbs,
	nodesResource.GroupResource():          readVerbs,
	namespacesResource.GroupResource():     readVerbs,
	serviceCIDRsResource.GroupResource():   readVerbs,

	{Group: corev1.GroupName, Resource: "events"}:   eventVerbs,
	{Group: eventsv1.GroupName, Resource: "events"}: eventVerbs,

	{Group: authorizationv1.GroupName, Resource: "selfsubjectaccessreviews"}: reviewVerbs,
	{Group: authorizationv1.GroupName, Resource: "selfsubjectrulesreviews"}:  reviewVerbs,
	{Group: authenticationv1.GroupName, Resource: "selfsubjectreviews"}:      reviewVerbs,
}

// discoveryPaths are the paths that the role system:discovery opens to everyone who is authenticated. A path that ends
// with "/*" stands for everything below it.
var discoveryPaths = []string{
	"/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/",
	"/healthz", "/livez", "/readyz",
}

// LocalIdentityMay is the whole of what the local identity (the kube-proxy of this node) may do, here and upstream. It
// looks at what is asked, not at who asks: the caller has established that. Pure; may be called concurrently.
//
// Reviews of the own access and identity are answered by upstream for the credential that it sees, which is the
// server's own. They tell the local identity what the server may do, and give it none of that.
func LocalIdentityMay(a authorizer.Attributes) bool {
	if !a.IsResourceRequest() {
		return a.GetVerb() == "get" && slices.ContainsFunc(discoveryPaths, func(pattern string) bool {
			if below, ok := strings.CutSuffix(pattern, "*"); ok {
				return strings.HasPrefix(a.GetPath(), below)
			}
			return a.GetPath() == pattern
		})
	}
	if a.GetSubresource() != "" {
		return false
	}
	gr := schema.GroupResource{Group: a.GetAPIGroup(), Resource: a.GetResource()}
	return slices.Contains(localIdentityRights[gr], a.GetVerb())
}

// attributesOf describes a request for LocalIdentityMay and for the text of a refusal.
func attributesOf(info *request.RequestInfo, u user.Info) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User:            u,
		Verb:            info.Verb,
		Namespace:       info.Namespace,
		APIGroup:        info.APIGroup,
		APIVersion:      info.APIVersion,
		Resource:        info.Resource,
		Subresource:     info.Subresource,
		Name:            info.Name,
		ResourceRequest: info.IsResourceRequest,
		Path:            info.Path,
	}
}

// isUnambiguous reports whether a path, as sent, means the same to every server and proxy on the way: nothing encoded,
// no empty or dot segments, only characters that names in Kubernetes have. The server's own credential goes with no other.
func isUnambiguous(rawPath string) bool {
	for i := range len(rawPath) {
		c := rawPath[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("/-._:", c) >= 0:
		default:
			return false
		}
	}
	return isPlainPath(rawPath)
}

// localIdentityHeaders are the client's headers that go with the server's own credential. A list of what is allowed,
// since nobody can list every header that some server on the way acts upon.
var localIdentityHeaders = []string{
	"Accept", "Accept-Encoding", "Audit-Id", "Cache-Control", "Content-Encoding", "Content-Length", "Content-Type",
	"If-Modified-Since", "If-None-Match", "Traceparent", "Tracestate", "User-Agent",
}

func keepLocalIdentityHeaders(in http.Header) http.Header {
	out := make(http.Header, len(localIdentityHeaders))
	for _, name := range localIdentityHeaders {
		if values, ok := in[name]; ok {
			out[name] = values
		}
	}
	return out
}
