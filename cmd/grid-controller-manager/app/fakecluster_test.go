// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// kinds are what the resources hold that can be watched.
var kinds = map[string]string{
	"services":       `"kind":"Service","apiVersion":"v1"`,
	"pods":           `"kind":"Pod","apiVersion":"v1"`,
	"nodes":          `"kind":"Node","apiVersion":"v1"`,
	"endpoints":      `"kind":"Endpoints","apiVersion":"v1"`,
	"endpointslices": `"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1"`,
	"servicegrids":   `"kind":"ServiceGrid","apiVersion":"superedge.io/v1"`,
}

// fakeCluster is an API server with one lease and nothing else: lists are empty, and watches silent.
type fakeCluster struct {
	url string

	mu       sync.Mutex
	lease    *coordinationv1.Lease
	revision int
	down     bool
	// missing are the resources that it answers 404 for.
	missing map[string]bool
	watches map[string]int
	// holders are all that have held the lease, in order; "" after it was released.
	holders []string
}

func newFakeCluster(t *testing.T) *fakeCluster {
	f := &fakeCluster{missing: map[string]bool{}, watches: map[string]int{}}
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, ended) }))
	f.url = server.URL
	t.Cleanup(func() {
		close(ended)
		server.Close()
	})
	return f
}

func (f *fakeCluster) kubeconfig(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := strings.Join([]string{
		"apiVersion: v1", "kind: Config", "clusters: [{name: c, cluster: {server: \"" + f.url + "\"}}]",
		"contexts: [{name: c, context: {cluster: c}}]", "current-context: c", "",
	}, "\n")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (f *fakeCluster) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// lastHolder returns who holds the lease, and how many changes of that there were.
func (f *fakeCluster) lastHolder() (string, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.holders) == 0 {
		return "", 0
	}
	return f.holders[len(f.holders)-1], len(f.holders)
}

// allHolders returns who has held the lease, in turn; empty for nobody.
func (f *fakeCluster) allHolders() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.holders)
}

func (f *fakeCluster) watched(resource string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watches[resource]
}

func (f *fakeCluster) serve(w http.ResponseWriter, r *http.Request, ended <-chan struct{}) {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	f.mu.Lock()
	down, missing := f.down, f.missing[resource]
	f.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	switch {
	case down:
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	case missing:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case resource == "tokenreviews":
		review := &authenticationv1.TokenReview{}
		_ = decode(body, review)
		review.Status.Authenticated = review.Spec.Token == "good"
		review.Status.User.Username = "scraper"
		answer(w, review)
	case resource == "subjectaccessreviews":
		review := &authorizationv1.SubjectAccessReview{}
		_ = decode(body, review)
		review.Status.Allowed = review.Spec.User == "scraper" && review.Spec.NonResourceAttributes.Path == "/metrics"
		answer(w, review)
	case strings.Contains(r.URL.Path, "/leases"):
		f.serveLease(w, r, body)
	case r.URL.Query().Get("watch") != "":
		f.set(func() { f.watches[resource]++ })
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			kind := kinds[resource]
			_, _ = io.WriteString(w, `{"type":"BOOKMARK","object":{`+kind+`,"metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	default:
		refuse(w, http.StatusNotImplemented, metav1.StatusReasonUnknown)
	}
}

func (f *fakeCluster) serveLease(w http.ResponseWriter, r *http.Request, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Method == http.MethodGet {
		if f.lease == nil {
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		answer(w, f.lease)
		return
	}
	lease := &coordinationv1.Lease{}
	if err := decode(body, lease); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	if f.lease != nil && (r.Method == http.MethodPost || lease.ResourceVersion != f.lease.ResourceVersion) {
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	f.revision++
	lease.ResourceVersion = strconv.Itoa(f.revision)
	f.lease = lease
	if holder := *lease.Spec.HolderIdentity; len(f.holders) == 0 || f.holders[len(f.holders)-1] != holder {
		f.holders = append(f.holders, holder)
	}
	answer(w, lease)
}

// decode decodes what clients send, which may be protobuf.
func decode(body []byte, into runtime.Object) error {
	_, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, into)
	return err
}

func answer(w http.ResponseWriter, obj any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(obj)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: reason, Code: int32(code), Message: string(reason),
	})
}
