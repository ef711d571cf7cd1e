// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/endpoints/deprecation"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/grid-apiserver/grid-apiserver/pkg/proxy/body"
)

// write is a write to objects that this node serves, on its way upstream and back.
type write struct {
	gr              schema.GroupResource
	namespace, name string // what the path says; no name for a create and for a deletecollection
	method          string
	// translated: the local copies have revisions of the view. Else they have upstream's.
	translated bool
	// dryRun: nothing will change.
	dryRun bool
	// permitted: it is known that the client may do this.
	permitted bool
	// sent is the precondition that went upstream, if it was found: in the place of a revision of the view, or as it was.
	sent string
	// stale is a precondition that is a revision of the view and stands for none upstream. It went upstream all the same.
	stale string
}

// writeOf returns the write that a request makes to a resource that this node serves, nil if it makes none. Of the
// subresources, status and that which ends a namespace are of the object; the others are none of our business: the proxy of
// services, the token of service accounts. A node is served if it is the own one.
func writeOf(r *http.Request, info *request.RequestInfo, served ResourceChecker, nodeName string) *write {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return nil
	}
	gr := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	switch {
	case !info.IsResourceRequest, !servedResources[gr]:
		return nil
	case info.Subresource != "" && info.Subresource != "status" && (gr != namespacesResource.GroupResource() || info.Subresource != "finalize"):
		return nil
	case gr == nodesResource.GroupResource() && info.Name != nodeName:
		return nil
	case served != nil && !served.Serves(gr):
		return nil
	}
	w := &write{gr: gr, namespace: info.Namespace, name: info.Name, method: r.Method, translated: viewResources[gr]}
	if gr == namespacesResource.GroupResource() {
		w.namespace = "" // RequestInfo says that a namespace is in itself
	}
	// As the decoder of kube-apiserver reads it: any value asks for a dry run, or is an error.
	w.dryRun = len(r.URL.Query()["dryRun"]) > 0
	return w
}

// readsBody reports whether something in the body matters here: a precondition, a field that is filtered, or the options
// of a deletion. An object to create has no revision, and upstream says so to whoever gives it one.
func (w *write) readsBody() bool { return w.method != http.MethodPost }

// replaces reports whether the body stands for the whole object, or for all that its manager had put into it.
func (w *write) replaces(contentType string) bool {
	return w.method == http.MethodPut || w.method == http.MethodPatch && strings.HasPrefix(body.MediaType(contentType), "application/apply-patch")
}

// endpointsWarning is what kube-apiserver adds to every answer about Endpoints.
var endpointsWarning = deprecation.WarningMessage(&corev1.Endpoints{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Endpoints"}}) //nolint:staticcheck // SA1019: still served

// warn adds what upstream warns of, for an answer that does not come from there.
func (w *write) warn(header http.Header) {
	if w.gr != endpointsResource.GroupResource() {
		return
	}
	if warning, err := utilnet.NewWarningHeader(299, "-", endpointsWarning); err == nil {
		header.Add("Warning", warning)
	}
}

// mayTruncate reports whether the body may carry what the view made of an object.
func (w *write) mayTruncate() bool {
	_, filtered := filteredKinds[w.gr]
	return filtered && (w.method == http.MethodPut || w.method == http.MethodPatch)
}
