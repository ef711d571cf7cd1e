// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

const (
	servicesPath   = "/api/v1/services"
	oneService     = "/api/v1/namespaces/default/services/s"
	asMetadataOnce = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
)

// response is what a client can tell answers apart by.
type response struct {
	Code   int
	Header map[string]string
	Body   string
}

// openGet sends a GET over the protocol, with the headers that are not empty. The
// transport never compresses on its own. Closing the body ends the connection too.
func openGet(t *testing.T, config *rest.Config, path, accept, encoding string, http2 bool) *http.Response {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: tlsConfig, DisableCompression: true}
	if http2 {
		transport = utilnet.SetTransportDefaults(transport)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+config.BearerToken)
	for name, value := range map[string]string{"Accept": accept, "Accept-Encoding": encoding} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	r, err := transport.RoundTrip(request)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	body := r.Body
	closeAll := func() {
		body.Close()
		cancel()
		transport.CloseIdleConnections()
	}
	r.Body = &closingBody{Reader: body, close: closeAll}
	if (r.ProtoMajor == 2) != http2 {
		closeAll()
		t.Fatalf("it speaks %s", r.Proto)
	}
	return r
}

// closingBody is a body whose end is also that of what it came through.
type closingBody struct {
	io.Reader
	close func()
}

func (b *closingBody) Close() error {
	b.close()
	return nil
}

// ask sends a GET. Of a watch that is open it returns the headers.
func ask(t *testing.T, config *rest.Config, path, accept, encoding string, http2 bool) response {
	t.Helper()
	r := openGet(t, config, path, accept, encoding, http2)
	defer r.Body.Close()
	got := response{Code: r.StatusCode, Header: map[string]string{}}
	for name, values := range r.Header {
		got.Header[name] = strings.Join(values, ", ")
	}
	for name := range maps.Keys(got.Header) {
		switch name {
		case "Audit-Id", "Date", "Content-Length":
			// Each answer has its own; that it is there matters.
			got.Header[name] = "some"
		}
	}
	// Which of the short answers are chunked is up to net/http.
	delete(got.Header, "Content-Length")
	if r.StatusCode == http.StatusOK && strings.Contains(path, "watch=") {
		return got
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	got.Body = string(body)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/vnd") || r.Header.Get("Content-Encoding") != "" {
		got.Body = "some"
	}
	got.Body = revisions.ReplaceAllString(got.Body, "${1}R")
	return got
}

// revisions are those of the view on one side and those of upstream on the other,
// also within continue tokens, and ages.
var revisions = regexp.MustCompile(`("?(?:resourceVersion|continue)"?: ?)"[^"]+"`)

// TestLocalReadsAnswerAsAStockServer sends what clients get right and wrong to the
// server, and to one with the filters and handlers of k8s.io/apiserver alone.
func TestLocalReadsAnswerAsAStockServer(t *testing.T) {
	u := startUpstream(t, append(fourNodes(), service("s", noPolicy), slice("s-1", "s", "n1", "n3"), service("t", noPolicy), namespace("default"))...)
	g := readyGrid(t, u)
	ours, stock := g.bearer(adminToken), u.config(adminToken)
	type question struct {
		path, accept string
		code         int
	}
	var questions []question
	add := func(code int, accept, path string, queries ...string) {
		for _, query := range queries {
			questions = append(questions, question{path + query, accept, code})
		}
	}
	add(http.StatusOK, asJSON, servicesPath, "", "?", "/", "?limit=1", "?limit=0", "?limit=-1", "?resourceVersion=0", "?resourceVersion=0&limit=1",
		"?unknown=1&unknown=2", "?limit=1&limit=nonsense", "?watch=false&watch=true", "?watch=nonsense", "?allowWatchBookmarks=nonsense", "?pretty=nonsense", "?pretty=true",
		"?timeoutSeconds=-1", "?timeoutSeconds=0", "?timeout=0", "?timeout=-5s", "?timeout=10m", "?timeout=1s", "?labelSelector=", "?fieldSelector=", "?fieldSelector=%3D",
		"?labelSelector=a%2Cb!%3Dc%2Cd+notin+(e)", "?fieldSelector=metadata.name%3Ds%2Cmetadata.namespace!%3Dx", "?labelSelector=a&labelSelector=%3D%3D", "?fieldManager=x&dryRun=All",
		"?resourceVersion=1&resourceVersionMatch=NotOlderThan", "?resourceVersion=&resourceVersionMatch=")
	add(http.StatusBadRequest, asJSON, servicesPath, "?limit=nonsense", "?limit=99999999999999999999", "?resourceVersion=nonsense", "?resourceVersion=-1", "?resourceVersion=1.5",
		"?timeoutSeconds=nonsense", "?timeout=nonsense", "?timeout=5", "?labelSelector=%3D%3D", "?labelSelector=a+in+(", "?labelSelector=-%3D1", "?fieldSelector=nonsense%3Da",
		"?fieldSelector=a", "?continue=nonsense", "?limit=1&continue=nonsense", "?limit=1&continue=e30", "?continue=e30&resourceVersion=5",
		"?watch=1&timeoutSeconds=nonsense", "?watch=1&labelSelector=%3D%3D", "?watch=1&fieldSelector=nonsense%3Da")
	add(http.StatusInternalServerError, asJSON, servicesPath, "?watch=1&resourceVersion=nonsense") // so it is
	// Validation of options that exclude each other.
	add(0, asJSON, servicesPath, "?resourceVersionMatch=Exact", "?resourceVersionMatch=nonsense&resourceVersion=1", "?resourceVersion=0&resourceVersionMatch=Exact",
		"?sendInitialEvents=true", "?sendInitialEvents=nonsense", "?watch=1&sendInitialEvents=true", "?watch=1&sendInitialEvents=nonsense",
		"?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact", "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
		"?watch=1&resourceVersionMatch=NotOlderThan", "?watch=1&limit=1", "?watch=1&continue=x", "?watch=1&timeoutSeconds=-1", "?continue=x&resourceVersionMatch=Exact&resourceVersion=1")
	add(http.StatusOK, asJSON, oneService, "", "/", "?resourceVersion=0", "?unknown=1", "?pretty=1", "?watch=nonsense", "?labelSelector=%3D%3D")
	add(http.StatusBadRequest, asJSON, oneService, "?timeout=nonsense")
	add(http.StatusInternalServerError, asJSON, oneService, "?resourceVersion=nonsense") // so it is
	add(http.StatusNotFound, asJSON, "/api/v1/namespaces/default/services/", "absent", "absent?resourceVersion=0", "UPPER_case", "%20")
	add(http.StatusNotFound, asProtobuf, "/api/v1/namespaces/absent/services/", "s")
	add(http.StatusNotFound, "application/yaml", "/api/v1/namespaces/", "absent")
	add(http.StatusOK, asTable, servicesPath, "?includeObject=None", "?includeObject=Metadata", "?includeObject=Object", "?limit=1", "?fieldSelector=metadata.name%3Dabsent", "?noHeaders=true")
	add(http.StatusBadRequest, asTable, servicesPath, "?includeObject=nonsense", "?resourceVersion=nonsense")
	add(http.StatusOK, asTable, oneService, "", "?includeObject=None")
	for _, accept := range []string{
		"", "*/*", "application/*", "application/json, */*", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "application/json;charset=utf-8", "application/json;pretty=1",
		"application/yaml", "application/nonsense, application/yaml;q=0.5", "application/vnd.kubernetes.protobuf,application/json", "application/json;q=0.1,application/yaml;q=0.9",
		asTable + "," + strings.Replace(asTable, "v=v1;", "v=v1beta1;", 1) + ",application/json", "application/json;as=Table;v=v2;g=meta.k8s.io,application/json",
		"application/json;as=Nonsense;v=v1;g=meta.k8s.io,application/json", strings.Replace(asTable, "v=v1;", "v=v1beta1;", 1), asMetadata + ";pretty=1",
		asMetadata, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "application/yaml;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
		"application/yaml;as=Table;v=v1;g=meta.k8s.io", "application/json; charset=\"", ";;;,application/json",
	} {
		add(0, accept, servicesPath, "", "?watch=1&timeoutSeconds=1")
	}
	for _, accept := range []string{
		"text/html", "application/nonsense", "application/cbor", "application/json;stream=watch", "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", asMetadataOnce,
		"application/json;as=Nonsense;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v2;g=meta.k8s.io", "application/json;as=Table;v=v1;g=nonsense", "json", ";;;", "application/json;as=Table", "application/json;q=0",
	} {
		add(0, accept, servicesPath, "", "?watch=1&timeoutSeconds=1")
		add(0, accept, oneService, "")
	}
	add(0, asMetadataOnce, oneService, "")
	add(0, asMetadata, oneService, "")
	add(0, asMetadataOnce, servicesPath, "?watch=1&timeoutSeconds=1")
	for _, path := range []string{"/api/v1/nodes/n1", "/api/v1/nodes?fieldSelector=metadata.name%3Dn1", "/api/v1/namespaces", "/apis/networking.k8s.io/v1/servicecidrs", slicesPath, "/api/v1/endpoints"} {
		for _, accept := range []string{asJSON, asTable, asMetadata, "application/yaml"} {
			add(0, accept, path, "")
		}
	}
	before := u.count(func(s seen) bool { return s.token == adminToken })
	answers := map[question]response{}
	for i, q := range questions {
		answers[q] = ask(t, ours, q.path, q.accept, []string{"identity", "gzip"}[i%2], i%3 != 0)
	}
	if n := u.count(func(s seen) bool { return s.token == adminToken }) - before; n != 0 {
		t.Errorf("%d of the requests went upstream", n)
	}
	codes := map[int]int{}
	for i, q := range questions {
		want := ask(t, stock, q.path, q.accept, []string{"identity", "gzip"}[i%2], i%3 != 0)
		codes[want.Code]++
		if diff := cmp.Diff(want, answers[q]); diff != "" {
			t.Errorf("GET %s as %q (-stock +ours):\n%s", q.path, q.accept, diff)
		}
		if q.code != 0 && q.code != want.Code {
			t.Errorf("GET %s as %q is answered %d %s, want %d", q.path, q.accept, want.Code, want.Body, q.code)
		}
		if want.Code != http.StatusOK && !strings.Contains(answers[q].Body, "Failure") && answers[q].Body != "some" {
			t.Errorf("GET %s as %q: %d without a Status: %s", q.path, q.accept, want.Code, answers[q].Body)
		}
	}
	for _, code := range []int{http.StatusOK, http.StatusBadRequest, http.StatusNotFound, http.StatusNotAcceptable, http.StatusUnprocessableEntity} {
		if codes[code] == 0 {
			t.Errorf("no request was answered %d, only %v", code, slices.Sorted(maps.Keys(codes)))
		}
	}
}
