// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/endpoints/request"
)

var (
	servicesResource       = corev1.SchemeGroupVersion.WithResource("services")
	endpointsResource      = corev1.SchemeGroupVersion.WithResource("endpoints")
	endpointSlicesResource = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	nodesResource          = corev1.SchemeGroupVersion.WithResource("nodes")
	namespacesResource     = corev1.SchemeGroupVersion.WithResource("namespaces")
	serviceCIDRsResource   = networkingv1.SchemeGroupVersion.WithResource("servicecidrs")
)

// localResources are the resources, in the one version of each, that this node can answer.
var localResources = map[schema.GroupVersionResource]bool{
	servicesResource:       true,
	endpointsResource:      true,
	endpointSlicesResource: true,
	nodesResource:          true,
	namespacesResource:     true,
	serviceCIDRsResource:   true,
}

// servedResources are the same in any version: one object is behind all of them.
var servedResources = func() map[schema.GroupResource]bool {
	served := map[schema.GroupResource]bool{}
	for gvr := range localResources {
		served[gvr.GroupResource()] = true
	}
	return served
}()

// viewResources are the resources whose local objects have revisions of the view.
var viewResources = map[schema.GroupResource]bool{
	servicesResource.GroupResource():       true,
	endpointsResource.GroupResource():      true,
	endpointSlicesResource.GroupResource(): true,
}

// IsLocal reports whether this node answers the request itself. It does no I/O and may be called concurrently. When in
// doubt the answer is no: upstream is right about everything but the view. So a path with empty or dot segments, a HEAD
// request (kube-apiserver has no such routes), another version of a known group, or nodes other than nodeName go upstream.
func IsLocal(info *request.RequestInfo, r *http.Request, nodeName string, served ResourceChecker) bool {
	if info == nil || r == nil {
		return false
	}
	if !info.IsResourceRequest {
		return isLocalPath(info.Path, r.Method)
	}
	if r.Method != http.MethodGet || info.Subresource != "" || !isPlainPath(info.Path) {
		return false
	}
	switch info.Verb {
	case "get", "list", "watch":
	default:
		return false
	}
	gvr := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	// "/apis//v1/services" has an empty group too, and is not core/v1.
	if (info.APIPrefix == "api") != (gvr.Group == "") || !localResources[gvr] {
		return false
	}
	if gvr == nodesResource && !asksForNode(info, nodeName) {
		return false
	}
	return served != nil && served.Serves(gvr.GroupResource())
}

// isLocalPath tells the health and metrics endpoints, which describe this server and are never upstream's.
func isLocalPath(path, method string) bool {
	if method != http.MethodGet && method != http.MethodHead {
		return false
	}
	if path == "/metrics" {
		return true
	}
	for _, root := range []string{"/livez", "/readyz", "/healthz"} {
		if path == root || strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

// isPlainPath reports whether a decoded path has neither empty nor dot segments. One trailing slash is fine.
func isPlainPath(path string) bool {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return false
	}
	for segment := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// asksForNode reports whether the request can concern no other node than nodeName: a GET by name, or a LIST or WATCH
// with the one field selector that kube-proxy sends. A watch through the deprecated path prefix has no selector.
func asksForNode(info *request.RequestInfo, nodeName string) bool {
	if nodeName == "" {
		return false
	}
	if info.Verb == "get" {
		return info.Name == nodeName
	}
	selector, err := fields.ParseSelector(info.FieldSelector)
	if err != nil {
		return false
	}
	requirements := selector.Requirements()
	return len(requirements) == 1 &&
		requirements[0].Field == "metadata.name" &&
		(requirements[0].Operator == selection.Equals || requirements[0].Operator == selection.DoubleEquals) &&
		requirements[0].Value == nodeName
}
