// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import "net/http"

// form is one way to read something: parameters and headers.
type form struct {
	name, query string
	headers     []string
	status      int
}

// objectForms are the ways to get an object, also of proxied resources.
var objectForms = []form{
	{name: "plain"},
	{name: "as anything", headers: []string{"Accept: */*"}},
	{name: "as JSON", headers: []string{"Accept: application/json"}},
	{name: "as YAML", headers: []string{acceptYAML}},
	{name: "as protobuf or JSON", headers: []string{acceptProtobuf + ",application/json"}},
	{name: "as a table", headers: []string{acceptTable}},
	{name: "as kubectl does", headers: []string{acceptKubectl}},
	{name: "as a table with whole objects", query: "includeObject=Object", headers: []string{acceptTable}},
	{name: "metadata", headers: []string{acceptMetadata}},
	{name: "pretty", query: "pretty=true"},
}

// localObjectForms are more of them, where the grid-apiserver has code of its own.
var localObjectForms = []form{
	{name: "as any application", headers: []string{"Accept: application/*"}, status: http.StatusNotAcceptable},
	{name: "as protobuf", headers: []string{acceptProtobuf}},
	{name: "as any revision", query: "resourceVersion=0"},
	{name: "as a bad revision", query: "resourceVersion=x", status: http.StatusInternalServerError},
	{name: "at a future revision", query: "resourceVersion=9000000000000000000", status: http.StatusGatewayTimeout},
	{name: "with a deprecated parameter", query: "export=true&exact=true", status: http.StatusBadRequest},
	{name: "with unknown parameters", query: "nothing=1&nothing=2"},
	{name: "metadata as protobuf", headers: []string{acceptMetadataPB}},
	{name: "as a table of an old version", headers: []string{"Accept: application/json;as=Table;v=v1beta1;g=meta.k8s.io"}},
	{name: "as a table without objects", query: "includeObject=None", headers: []string{acceptTable}},
	{name: "as a table with bad objects", query: "includeObject=Nothing", headers: []string{acceptTable}, status: http.StatusBadRequest},
	{name: "as a table in YAML", headers: []string{"Accept: application/yaml;as=Table;v=v1;g=meta.k8s.io"}},
	{name: "as a table in protobuf", headers: []string{"Accept: application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io"}, status: http.StatusNotAcceptable},
	{name: "as a table of a nonsensical group", headers: []string{"Accept: application/json;as=Table;g=nonsense;v=v1"}, status: http.StatusNotAcceptable},
	{name: "as a nonsensical kind or JSON", headers: []string{"Accept: application/json;as=Nonsense;g=meta.k8s.io;v=v1,application/json"}},
	{name: "as a list of metadata", headers: []string{acceptMetadataList}, status: http.StatusNotAcceptable},
	{name: "as what is most wanted", headers: []string{"Accept: application/json;q=0.1, application/yaml;q=0.9, text/html"}},
	{name: "as nonsense or JSON", headers: []string{"Accept: nonsense, ;;;, text/html;q=x, application/json"}},
	{name: "as nonsense", headers: []string{"Accept: nonsense"}, status: http.StatusNotAcceptable},
	{name: "as text", headers: []string{"Accept: text/plain"}, status: http.StatusNotAcceptable},
	{name: "as CBOR", headers: []string{"Accept: application/cbor"}, status: http.StatusNotAcceptable},
	{name: "pretty for a browser", headers: []string{"User-Agent: Mozilla/5.0"}},
	{name: "pretty for curl", headers: []string{"User-Agent: curl/8.0"}},
	{name: "not pretty for curl", query: "pretty=false", headers: []string{"User-Agent: curl/8.0"}},
}

// listForms are the ways to list, also proxied resources.
var listForms = []form{
	{name: "plain"},
	{name: "by label", query: "labelSelector=app%3Dweb"},
	{name: "by labels", query: "labelSelector=app+in+(web,other),!nothing"},
	{name: "one", query: "limit=1"},
	{name: "as protobuf or JSON", headers: []string{acceptProtobuf + ",application/json"}},
	{name: "as kubectl does", query: "limit=500", headers: []string{acceptKubectl}},
	{name: "metadata", headers: []string{acceptMetadataList}},
}

// localListForms are more of them.
var localListForms = []form{
	{name: "by several labels", query: "labelSelector=app%3Dweb,tier%21%3Dback"},
	{name: "by no such label", query: "labelSelector=no%3Dsuch"},
	{name: "by a bad label", query: "labelSelector=a%3D%3D%3Db", status: http.StatusBadRequest},
	{name: "any revision", query: "resourceVersion=0"},
	{name: "one of any revision", query: "resourceVersion=0&limit=1"},
	{name: "not older than any", query: "resourceVersion=0&resourceVersionMatch=NotOlderThan"},
	{name: "exactly any", query: "resourceVersion=0&resourceVersionMatch=Exact", status: http.StatusUnprocessableEntity},
	{name: "match without a revision", query: "resourceVersionMatch=NotOlderThan", status: http.StatusUnprocessableEntity},
	{name: "nonsensical match", query: "resourceVersion=0&resourceVersionMatch=Nonsense", status: http.StatusUnprocessableEntity},
	{name: "bad revision", query: "resourceVersion=x", status: http.StatusBadRequest},
	{name: "bad revision and match", query: "resourceVersion=x&resourceVersionMatch=Exact", status: http.StatusBadRequest},
	{name: "future revision", query: "resourceVersion=9000000000000000000", status: http.StatusGatewayTimeout},
	{name: "exact future revision", query: "resourceVersion=9000000000000000000&resourceVersionMatch=Exact", status: http.StatusGatewayTimeout},
	{name: "bad limit", query: "limit=x", status: http.StatusBadRequest},
	{name: "negative limit", query: "limit=-1"},
	{name: "bad continue", query: "continue=nonsense&limit=1", status: http.StatusBadRequest},
	{name: "continue with a revision", query: "continue=nonsense&resourceVersion=5", status: http.StatusBadRequest},
	{name: "initial events of a list", query: "sendInitialEvents=true", status: http.StatusUnprocessableEntity},
	{name: "bad timeout", query: "timeoutSeconds=x", status: http.StatusBadRequest},
	{name: "short timeout", query: "timeoutSeconds=1"},
	{name: "bad timeout of the request", query: "timeout=x", status: http.StatusBadRequest},
	{name: "watch that is none", query: "watch=false"},
	{name: "repeated parameters", query: "limit=1&limit=2&pretty=true&pretty=false"},
	{name: "unknown parameters", query: "nothing=1&nothing=2"},
	{name: "as YAML", headers: []string{acceptYAML}},
	{name: "as protobuf", headers: []string{acceptProtobuf}},
	{name: "as a table", headers: []string{acceptTable}},
	{name: "as a table with whole objects", query: "includeObject=Object", headers: []string{acceptTable}},
	{name: "as a table without objects", query: "includeObject=None&limit=1", headers: []string{acceptTable}},
	{name: "as a table by label", query: "labelSelector=no%3Dsuch", headers: []string{acceptTable}},
	{name: "as the metadata of one object", headers: []string{acceptMetadata}, status: http.StatusNotAcceptable},
	{name: "metadata as protobuf", headers: []string{acceptListPB}},
	{name: "as nonsense", headers: []string{"Accept: nonsense"}, status: http.StatusNotAcceptable},
	{name: "pretty", query: "pretty=1"},
}

// selectorForms are for resources whose requests do not carry a field selector anyway.
var selectorForms = []form{
	{name: "by name", query: "fieldSelector=metadata.name%3Dweb"},
	{name: "by not this name", query: "fieldSelector=metadata.name%21%3Dweb"},
	{name: "by an unknown field", query: "fieldSelector=spec.nothing%3Da", status: http.StatusBadRequest},
	{name: "by a bad field", query: "fieldSelector=nothing", status: http.StatusBadRequest},
	{name: "by the namespace", query: "fieldSelector=metadata.namespace%3D{ns}"},
	{name: "by name and label", query: "fieldSelector=metadata.name%3Dweb&labelSelector=app%3Dweb"},
}

// byNamespace is the form of selectorForms that namespaces themselves refuse.
const byNamespace = "by the namespace"
