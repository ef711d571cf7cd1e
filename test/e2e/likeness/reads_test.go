// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"net/http"
	"strings"
	"testing"
)

const (
	acceptYAML     = "Accept: application/yaml"
	acceptProtobuf = "Accept: application/vnd.kubernetes.protobuf"
	acceptTable    = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io"
	// acceptKubectl is what kubectl get sends.
	acceptKubectl      = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
	acceptMetadata     = "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	acceptMetadataList = "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	acceptMetadataPB   = "Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	acceptListPB       = "Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	gzipped            = "Accept-Encoding: gzip"
)

// resource is what is read of one resource.
type resource struct {
	name string
	// object is an object, collection the list it is in, and everywhere that of all namespaces.
	object, collection, everywhere string
	// selector are parameters that each request for the collection carries.
	selector string
}

// head is what becomes of a HEAD request: only custom resources have it.
func (r resource) head() int {
	if r.name == "widgets" {
		return http.StatusOK
	}
	return http.StatusMethodNotAllowed
}

// localResources are answered by the grid-apiserver itself.
var localResources = []resource{
	{"services", inNS + "/services/web", inNS + "/services", core + "/services", ""},
	{"endpoints", inNS + "/endpoints/web", inNS + "/endpoints", core + "/endpoints", ""},
	{"endpointslices", discovery + "/namespaces/{ns}/endpointslices/web-1", discovery + "/namespaces/{ns}/endpointslices", discovery + "/endpointslices", ""},
	{"own node", core + "/nodes/{node}", core + "/nodes", "", "fieldSelector=metadata.name={node}"},
	{"namespaces", core + "/namespaces/{ns}", core + "/namespaces", "", ""},
	{"servicecidrs", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes", "/apis/networking.k8s.io/v1/servicecidrs", "", ""},
}

// proxiedResources are answered by upstream.
var proxiedResources = []resource{
	{"configmaps", fixtures["configmap"].path(), fixtures["configmap"].collection, core + "/configmaps", ""},
	{"secrets", fixtures["secret"].path(), fixtures["secret"].collection, core + "/secrets", ""},
	{"pods", fixtures["pod"].path(), fixtures["pod"].collection, core + "/pods", ""},
	{"nodes", core + "/nodes/" + otherNode, core + "/nodes", "", ""},
	{"serviceaccounts", fixtures["account"].path(), fixtures["account"].collection, core + "/serviceaccounts", ""},
	{"leases", fixtures["lease"].path(), fixtures["lease"].collection, "", ""},
	{"events", fixtures["event"].path(), fixtures["event"].collection, core + "/events", ""},
	{"deployments", fixtures["deployment"].path(), fixtures["deployment"].collection, "/apis/apps/v1/deployments", ""},
	{"customresourcedefinitions", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.likeness.example.com", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "", ""},
	{"widgets", fixtures["widget"].path(), fixtures["widget"].collection, "/apis/likeness.example.com/v1/widgets", ""},
	{"ingresses", fixtures["ingress"].path(), fixtures["ingress"].collection, "/apis/networking.k8s.io/v1/ingresses", ""},
	{"roles", fixtures["role"].path(), fixtures["role"].collection, "/apis/rbac.authorization.k8s.io/v1/roles", ""},
}

// reads returns the requests of the forms for a path.
func reads(path, selector string, forms ...[]form) []step {
	var steps []step
	for _, list := range forms {
		for _, f := range list {
			query := strings.Trim(selector+"&"+f.query, "&")
			if query != "" {
				query = "?" + query
			}
			steps = append(steps, step{name: f.name, path: path + query, headers: f.headers, status: f.status})
		}
	}
	return steps
}

// pages reads a list in parts, at an exact revision and from a revision on.
func pages(path, selector string) []step {
	query := func(more string) string { return path + "?" + strings.Trim(selector+"&"+more, "&") }
	return []step{
		{name: "first part", path: query("limit=1"), save: "part"},
		{name: "second part", path: query("limit=1&continue={part.continue}")},
		{name: "rest", path: query("continue={part.continue}")},
		{name: "rest as a table", path: query("limit=2&continue={part.continue}"), headers: []string{acceptTable}},
		{name: "list for its revision", path: query(""), save: "list"},
		{name: "exact revision", path: query("resourceVersion={list.rv}&resourceVersionMatch=Exact")},
		{name: "one at an exact revision", path: query("limit=1&resourceVersion={list.rv}&resourceVersionMatch=Exact")},
		{name: "not older than a revision", path: query("resourceVersion={list.rv}&resourceVersionMatch=NotOlderThan")},
		{name: "from a revision on", path: query("resourceVersion={list.rv}")},
		{name: "one from a revision on", path: query("limit=1&resourceVersion={list.rv}")},
	}
}

// readShared makes steps in the namespace that nothing is written to.
func readShared(t *testing.T, name string, steps []step) {
	talks := [2]*conversation{newConversation(sides[0], sharedNamespace), newConversation(sides[1], sharedNamespace)}
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		talk(t, name, talks, steps)
	})
}

func TestReadsOfLocalResources(t *testing.T) {
	for _, r := range localResources {
		readShared(t, r.name+"/get", reads(r.object, "", objectForms, localObjectForms))
		forms := [][]form{listForms, localListForms}
		if r.selector == "" {
			forms = append(forms, selectorForms)
		}
		readShared(t, r.name+"/list", withNamespaceSelector(r, reads(r.collection, r.selector, forms...)))
		readShared(t, r.name+"/pages", onePage(r, pages(r.collection, r.selector)))
		if r.everywhere != "" {
			readShared(t, r.name+"/list everywhere", reads(r.everywhere, "", listForms, selectorForms))
		}
		readShared(t, r.name+"/other", []step{
			{name: "missing object", path: r.object + "-missing", status: http.StatusNotFound},
			{name: "missing object as a table", path: r.object + "-missing", headers: []string{acceptTable}, status: http.StatusNotFound},
			{name: "missing object as YAML", path: r.object + "-missing", headers: []string{acceptYAML}, status: http.StatusNotFound},
			{name: "missing object as protobuf", path: r.object + "-missing", headers: []string{acceptProtobuf}, status: http.StatusNotFound},
			{name: "head", method: http.MethodHead, path: r.object, status: http.StatusMethodNotAllowed},
			{name: "head of the list", method: http.MethodHead, path: r.collection, status: http.StatusMethodNotAllowed},
			{name: "options", method: http.MethodOptions, path: r.object, status: http.StatusMethodNotAllowed},
			{name: "trailing slash", path: r.object + "/"},
			{name: "trailing slash of the list", path: r.collection + "/"},
			{name: "double slash", path: strings.Replace(r.object, "/v1/", "/v1//", 1), status: http.StatusNotFound},
			{name: "over HTTP/1.1", path: r.object, http1: true},
			{name: "list over HTTP/1.1", path: r.collection + "?" + r.selector, http1: true},
			{name: "no subresource", path: r.object + "/nothing", status: http.StatusNotFound},
		})
	}
}

// withNamespaceSelector states what becomes of a selection by namespace where there is none.
func withNamespaceSelector(r resource, steps []step) []step {
	for i := range steps {
		if steps[i].name == byNamespace && r.name == "namespaces" {
			steps[i].status = http.StatusBadRequest
		}
	}
	return steps
}

// onePage leaves out what comes after the only part of a list.
func onePage(r resource, steps []step) []step {
	if r.selector != "" {
		return steps[4:]
	}
	return steps
}

func TestReadsOfProxiedResources(t *testing.T) {
	for _, r := range proxiedResources {
		readShared(t, r.name+"/get", reads(r.object, "", objectForms))
		readShared(t, r.name+"/list", reads(r.collection, "", listForms))
		readShared(t, r.name+"/pages", pages(r.collection, "")[4:])
		if r.everywhere != "" {
			readShared(t, r.name+"/list everywhere", reads(r.everywhere, "", listForms))
		}
		readShared(t, r.name+"/other", []step{
			{name: "missing object", path: r.object + "-missing", status: http.StatusNotFound},
			{name: "head", method: http.MethodHead, path: r.object, status: r.head()},
			{name: "over HTTP/1.1", path: r.object, http1: true},
		})
	}
}

func TestReadsOfLargeLists(t *testing.T) {
	var all []step
	for _, path := range []string{discovery + "/namespaces/large/endpointslices", core + "/namespaces/large/configmaps"} {
		for _, f := range []form{
			{name: "gzip", headers: []string{gzipped}},
			{name: "gzip among others", headers: []string{"Accept-Encoding: br, gzip;q=0.5, deflate"}},
			{name: "identity", headers: []string{"Accept-Encoding: identity"}},
			{name: "no encoding"},
			{name: "unknown encoding", headers: []string{"Accept-Encoding: br"}},
			{name: "protobuf, gzip", headers: []string{gzipped, acceptProtobuf}},
			{name: "YAML, gzip", headers: []string{gzipped, acceptYAML}},
			{name: "table, gzip", headers: []string{gzipped, acceptTable}},
			{name: "table with whole objects, gzip", query: "includeObject=Object", headers: []string{gzipped, acceptTable}},
			{name: "metadata, gzip", headers: []string{gzipped, acceptMetadataList}},
			{name: "one, gzip", query: "limit=1", headers: []string{gzipped}},
			{name: "parts, gzip", query: "limit=19", headers: []string{gzipped}},
			{name: "any revision, gzip", query: "resourceVersion=0", headers: []string{gzipped}},
		} {
			query := ""
			if f.query != "" {
				query = "?" + f.query
			}
			name := path[strings.LastIndexByte(path, '/')+1:] + ", " + f.name
			all = append(all, step{name: name, path: path + query, headers: f.headers})
			if f.query == "" {
				all = append(all, step{name: name + ", HTTP/1.1", path: path + query, headers: f.headers, http1: true})
			}
		}
	}
	readShared(t, "large", all)
}
