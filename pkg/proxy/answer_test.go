// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// answering is an upstream that answers each request with what the test has set.
type answering struct {
	code               int
	contentType, body  string
	acceptEncodingSeen string
}

func (a *answering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	a.acceptEncodingSeen = r.Header.Get("Accept-Encoding")
	w.Header().Set("Content-Type", a.contentType)
	w.WriteHeader(a.code)
	_, _ = io.WriteString(w, a.body)
}

func object(revision string) string {
	return `{"kind":"Service","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u1","resourceVersion":"` + revision + `"}, "spec":{"new":1.0}}`
}

func failure(code int, reason string) string {
	message := "the object has been modified"
	switch reason {
	case "FieldManager":
		reason, message = "Conflict", "conflict with another manager"
	case "UID": // as of kube-apiserver
		reason, message = "Conflict", "StorageError: invalid object, Code: 4, Key: /a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: a, UID in object meta: b"
	}
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":%q,"details":{"name":"web","kind":"services"},"code":%d}`, reason, message, code)
}

func TestAnswersFollowTheView(t *testing.T) {
	const (
		services = "/api/v1/namespaces/default/services"
		deleted  = `{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"web","kind":"services","uid":"u1"}}`
		list     = `{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a","namespace":"default","uid":"u2","resourceVersion":"3"}},{"metadata":{"name":"b","namespace":"default","uid":"u3"}}]}`
		table    = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"%[1]s"},"rows":[{"cells":["web"],"object":{"metadata":{"name":"web","resourceVersion":"%[1]s"}}}]}`
		yaml     = "kind: Service\nmetadata:\n  name: web\n  resourceVersion: \"%s\"\n"
		inView   = "revision services default web " + newRevision
		ended    = `{"kind":"%s","metadata":{"name":"web","uid":"u1","resourceVersion":"` + newRevision + `","deletionTimestamp":"2026-01-01T00:00:00Z"}}`
		waits    = `{"kind":"Namespace","metadata":{"name":"web","resourceVersion":"` + newRevision + `","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"finalizers":["kubernetes"]}}`
		anEnd    = "end services default web u1"
	)
	withRevision := `{"metadata":{"resourceVersion":"` + viewRevision + `"}}`
	tests := []struct {
		name, method, target, body string
		upstream                   answering
		want                       string // the same if empty
		asked                      []string
	}{
		{"replace", "PUT", serviceTarget, "{}", answering{200, "application/json", object(newRevision), ""}, object(newViewRevision), []string{inView}},
		{"replace status", "PUT", serviceTarget + "/status", "{}", answering{200, "application/json", object(newRevision), ""}, object(newViewRevision), []string{inView}},
		{"patch", "PATCH", serviceTarget, "{}", answering{200, "application/json", object(newRevision), ""}, object(newViewRevision), []string{inView}},
		{"create", "POST", services, "{}", answering{201, "application/json", object(newRevision), ""}, object(newViewRevision), []string{inView}},
		{"in YAML", "PUT", serviceTarget, "{}", answering{200, "application/yaml", fmt.Sprintf(yaml, newRevision), ""}, fmt.Sprintf(yaml, newViewRevision), []string{inView}},
		{"in protobuf", "PUT", serviceTarget, "{}", answering{200, protobufType, protobufService(t, newRevision), ""}, protobufService(t, newViewRevision), []string{inView}},
		{"as a table", "PUT", serviceTarget, "{}", answering{200, "application/json;as=Table;v=v1;g=meta.k8s.io", fmt.Sprintf(table, newRevision), ""}, fmt.Sprintf(table, newViewRevision), []string{inView}},
		{"what the view shows otherwise", "PUT", serviceTarget, "{}", answering{200, "application/json", object("5"), ""}, "", []string{"revision services default web 5"}},
		{"dry run of a create", "POST", services + "?dryRun=All", "{}", answering{201, "application/json", strings.ReplaceAll(object(""), `"resourceVersion":""`, `"a":""`), ""}, "", nil},
		{"dry run", "PATCH", serviceTarget + "?dryRun=All", "{}", answering{200, "application/json", object(newRevision), ""}, object(newViewRevision), []string{inView}},

		{"delete", "DELETE", serviceTarget, "", answering{200, "application/json", deleted, ""}, "", []string{"absence services default web u1"}},
		{"delete that returns the object", "DELETE", serviceTarget, "", answering{200, "application/json", object(newRevision), ""}, object(newViewRevision), []string{"absence services default web u1", inView}},
		{"update that takes the last finalizer away", "PATCH", serviceTarget, "{}", answering{200, "application/json", fmt.Sprintf(ended, "Service"), ""}, strings.ReplaceAll(fmt.Sprintf(ended, "Service"), newRevision, newViewRevision), []string{inView, anEnd}},
		{"the same, metadata alone", "PUT", serviceTarget, "{}", answering{200, "application/json", fmt.Sprintf(ended, "PartialObjectMetadata"), ""}, strings.ReplaceAll(fmt.Sprintf(ended, "PartialObjectMetadata"), newRevision, newViewRevision), []string{inView, anEnd}},
		{"dry run of that", "PATCH", serviceTarget + "?dryRun=All", "{}", answering{200, "application/json", fmt.Sprintf(ended, "Service"), ""}, strings.ReplaceAll(fmt.Sprintf(ended, "Service"), newRevision, newViewRevision), []string{inView}},
		{"end of a namespace", "PUT", "/api/v1/namespaces/web/finalize", "{}", answering{200, "application/json", fmt.Sprintf(ended, "Namespace"), ""}, "", []string{"revision namespaces  web " + newRevision, "end namespaces  web u1"}},
		{"end of a namespace that waits", "PUT", "/api/v1/namespaces/web/finalize", "{}", answering{200, "application/json", waits, ""}, "", []string{"revision namespaces  web " + newRevision}},
		{"end of a namespace, metadata alone", "PUT", "/api/v1/namespaces/web/finalize", "{}", answering{200, "application/json", fmt.Sprintf(ended, "PartialObjectMetadata"), ""}, "", []string{"revision namespaces  web " + newRevision}},
		{"finalize of a Service", "PUT", serviceTarget + "/finalize", "{}", answering{200, "application/json", fmt.Sprintf(ended, "Service"), ""}, "", nil},
		{"dry run of a delete", "DELETE", serviceTarget + "?dryRun=All", "", answering{200, "application/json", deleted, ""}, "", nil},
		{"dry run of a delete, asked in the body", "DELETE", serviceTarget, `{"dryRun":["All"]}`, answering{200, "application/json", deleted, ""}, "", nil},
		{"delete collection", "DELETE", services, "", answering{200, "application/json", list, ""}, "", []string{"absence services default a u2", "absence services default b u3"}},

		{"conflict", "PUT", serviceTarget, withRevision, answering{409, "application/json", failure(409, "Conflict"), ""}, "", []string{"change services default web " + upstreamRevision}},
		{"conflict of no revision", "PUT", serviceTarget, "{}", answering{409, "application/json", failure(409, "Conflict"), ""}, "", nil},
		{"conflict of a revision of upstream", "PUT", serviceTarget, strings.ReplaceAll(withRevision, viewRevision, "77"), answering{409, "application/json", failure(409, "Conflict"), ""}, "", []string{"change services default web 77"}},
		{"conflict of a former revision", "PUT", serviceTarget, strings.ReplaceAll(withRevision, viewRevision, newViewRevision), answering{409, "application/json", failure(409, "Conflict"), ""}, "", []string{"refresh services default web " + newViewRevision}},
		{"failed test of a former revision", "PATCH", serviceTarget, strings.ReplaceAll(withRevision, viewRevision, newViewRevision), answering{422, "application/json", failure(422, "Invalid"), ""}, "", []string{"refresh services default web " + newViewRevision}},
		{"former revision of who may not write", "PUT", serviceTarget, strings.ReplaceAll(withRevision, viewRevision, newViewRevision), answering{403, "application/json", failure(403, "Forbidden"), ""}, "", nil},
		{"conflict of a uid", "PATCH", serviceTarget, withRevision, answering{409, "application/json", failure(409, "UID"), ""}, "", nil},
		{"conflict of managers", "PATCH", serviceTarget, withRevision, answering{409, "application/json", failure(409, "FieldManager"), ""}, "", nil},
		{"conflict of a create", "POST", services, "{}", answering{409, "application/json", failure(409, "Conflict"), ""}, "", nil},
		{"exists already", "POST", services, "{}", answering{409, "application/json", failure(409, "AlreadyExists"), ""}, "", []string{"presence services default web"}},
		{"not there", "DELETE", serviceTarget, "", answering{404, "application/json", failure(404, "NotFound"), ""}, "", []string{"end services default web "}},
		{"API that is not there", "DELETE", serviceTarget, "", answering{404, "application/json", strings.ReplaceAll(failure(404, "NotFound"), `"name":"web",`, ""), ""}, "", nil},
		{"not allowed", "PUT", serviceTarget, "{}", answering{403, "application/json", failure(403, "Forbidden"), ""}, "", nil},

		{"with upstream's revisions", "POST", "/api/v1/namespaces", "{}", answering{201, "application/json", object(newRevision), ""}, "", []string{"revision namespaces  web " + newRevision}},
		{"conflict with upstream's revisions", "PUT", "/api/v1/namespaces/web", `{"metadata":{"resourceVersion":"77"}}`, answering{409, "application/json", failure(409, "Conflict"), ""}, "", []string{"change namespaces  web 77"}},
		{"conflict of a deletion with upstream's revisions", "DELETE", "/api/v1/namespaces/web", `{"preconditions":{"resourceVersion":"77"}}`, answering{409, "application/json", failure(409, "Conflict"), ""}, "", []string{"change namespaces  web 77"}},
		{"not there, with upstream's revisions", "DELETE", "/api/v1/namespaces/web", "", answering{404, "application/json", failure(404, "NotFound"), ""}, "", []string{"end namespaces  web "}},
		{"a table without objects", "PUT", serviceTarget, "{}", answering{200, "application/json", `{"kind":"Table","metadata":{"resourceVersion":"` + newRevision + `"},"rows":[{"cells":[]}]}`, ""}, `{"kind":"Table","metadata":{"resourceVersion":"` + newViewRevision + `"},"rows":[{"cells":[]}]}`, []string{inView}},
		{"delete, with a dry run in the query that does not count", "DELETE", serviceTarget + "?dryRun=All", "{}", answering{200, "application/json", deleted, ""}, "", []string{"absence services default web u1"}},
		{"own node", "PATCH", "/api/v1/nodes/" + ownNode, "{}", answering{200, "application/json", object(newRevision), ""}, "", []string{"revision nodes  web " + newRevision}},
		{"other node", "PATCH", "/api/v1/nodes/other", "{}", answering{200, "application/json", object(newRevision), ""}, "", nil},
		{"other resource", "PUT", "/api/v1/namespaces/default/configmaps/web", "{}", answering{200, "application/json", object(newRevision), ""}, "", nil},
		{"malformed", "PUT", serviceTarget, "{}", answering{200, "application/json", object(newRevision)[:80], ""}, "", nil},
		{"too large", "PUT", serviceTarget, "{}", answering{200, "application/json", object(newRevision) + strings.Repeat(" ", maxFollowedAnswer), ""}, "", nil},
	}
	var current *answering
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) { current.ServeHTTP(w, r) })
	view := &fakeView{}
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), View: view, NodeName: ownNode})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			current = &tt.upstream
			if tt.want == "" {
				tt.want = tt.upstream.body
			}
			response, body := front.do(t, tt.method, tt.target, tt.body, "Authorization", clientAuthorization, "Content-Type", mergePatchType, "Accept-Encoding", "gzip")
			if response.StatusCode != tt.upstream.code || body != tt.want {
				t.Errorf("answer %d %.500s, want %d %.500s", response.StatusCode, body, tt.upstream.code, tt.want)
			}
			if length := response.Header.Get("Content-Length"); length != "" && length != strconv.Itoa(len(tt.want)) {
				t.Errorf("length %s, want %d", length, len(tt.want))
			}
			if diff := cmp.Diff(tt.asked, view.take()); diff != "" {
				t.Errorf("waited for (-want +got):\n%s", diff)
			}
			eventually(t, "all is given back", func() bool { return reserved(front.proxy.follower.answers, answerBudget) == 0 })
		})
	}
}

func TestAnswersWaitForTheViewNotForLong(t *testing.T) {
	arrives := make(chan struct{})
	current := &answering{200, "application/json", object(newRevision), ""}
	upstream := newUpstream(t, current.ServeHTTP)
	view := &fakeView{arrives: arrives}
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), View: view})
	put := func() string {
		_, body := front.do(t, "PUT", serviceTarget, "{}", "Authorization", clientAuthorization)
		return body
	}
	start := time.Now()
	if body := put(); body != object(newRevision) {
		t.Errorf("the view did not come: %s", body)
	}
	if waited := time.Since(start); waited < followTimeout {
		t.Errorf("waited for %v", waited)
	}
	view.take()
	go func() {
		defer close(arrives)
		eventually(t, "the answer waits", func() bool { return len(view.take()) > 0 })
	}()
	if body := put(); body != object(newViewRevision) {
		t.Errorf("the view came: %s", body)
	}
}

// What upstream has carried out must not fail here for want of memory.
func TestAnswersPassWhenThereIsNoRoom(t *testing.T) {
	current := &answering{200, "application/json", object(newRevision) + strings.Repeat(" ", 100_000), ""}
	upstream := newUpstream(t, current.ServeHTTP)
	front := newFront(t, HandlerConfig{Upstream: upstream.config(), View: &fakeView{}})
	budget := front.proxy.follower.answers
	for _, left := range []int{0, firstRead, 16 * firstRead} {
		if !budget.reserve(answerBudget - left) {
			t.Fatal("the budget is not free")
		}
		if _, body := front.do(t, "PUT", serviceTarget, "{}", "Authorization", clientAuthorization); body != current.body {
			t.Errorf("with %d bytes of room: got %d bytes, want %d unchanged", left, len(body), len(current.body))
		}
		budget.release(answerBudget - left)
		eventually(t, "all is given back", func() bool { return reserved(budget, answerBudget) == 0 })
	}
}
