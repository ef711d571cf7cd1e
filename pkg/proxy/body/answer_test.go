// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

const yamlType = "application/yaml"

func toYAML(t testing.TB, text string) string {
	t.Helper()
	converted, err := yaml.Marshal(decodePlain(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return string(converted)
}

func TestReadAnswer(t *testing.T) {
	web := Item{Name: "web", Namespace: "shop", UID: "u1", ResourceVersion: "7"}
	db := Item{Name: "db", Namespace: "shop", UID: "u2", ResourceVersion: "8", Ended: true}
	const (
		webMetadata = `{"name":"web","namespace":"shop","uid":"u1","resourceVersion":"7","creationTimestamp":"2026-01-01T00:00:00Z"}`
		dbMetadata  = `{"name":"db","namespace":"shop","uid":"u2","resourceVersion":"8","deletionTimestamp":"2026-01-01T00:00:00Z"}`
	)
	tests := []struct {
		name, body string
		want       Answer
	}{
		{"object", `{"kind":"Service","metadata":` + webMetadata + `}`, Answer{Kind: "Service", Item: web}},
		{"object that is being deleted", `{"metadata":` + dbMetadata + `,"kind":"Service"}`, Answer{Kind: "Service", Item: db}},
		{"object that waits for a finalizer", `{"kind":"Service","metadata":{"finalizers":["a/b"],"deletionTimestamp":"2026-01-01T00:00:00Z"}}`, Answer{Kind: "Service"}},
		{"object that waits for none", `{"kind":"Service","metadata":{"finalizers":[],"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"finalizers":["a"]}}`, Answer{Kind: "Service", Item: Item{Ended: true}}},
		{"object that is not being deleted", `{"kind":"Service","metadata":{"finalizers":null,"deletionTimestamp":null}}`, Answer{Kind: "Service"}},
		{"namespace that has to be emptied", `{"kind":"Namespace","metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"finalizers":["kubernetes"]}}`, Answer{Kind: "Namespace"}},
		{"namespace that was emptied", `{"kind":"Namespace","metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{}}`, Answer{Kind: "Namespace", Item: Item{Ended: true}}},
		{"metadata elsewhere", `{"kind":"Service","spec":{"metadata":` + webMetadata + `}}`, Answer{Kind: "Service"}},
		{"escapes", `{"\u006bind":"Serv\u0069ce","metadata":{"name":"a\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00"}}`, Answer{Kind: "Service", Item: Item{Name: "a\"\\/\b\f\n\r\tä😀"}}},
		{"nothing", `{}`, Answer{}},
		{"another value", `5`, Answer{}},
		{"status of success", `{"kind":"Status","metadata":{},"status":"Success","details":{"name":"web","kind":"services","uid":"u1"}}`, Answer{Kind: "Status", Item: Item{Name: "web", UID: "u1"}}},
		{"status of success without details", `{"name":"x","kind":"Status","status":"Success"}`, Answer{Kind: "Status"}},
		{"status of failure", `{"kind":"Status","status":"Failure","details":{"name":"web","uid":"u1"}}`, Answer{Kind: "Status", Item: Item{Name: "web", UID: "u1"}}},
		{"list", `{"kind":"ServiceList","metadata":{"resourceVersion":"9"},"items":[{"metadata":` + webMetadata + `},{"metadata":` + dbMetadata + `}]}`,
			Answer{Kind: "ServiceList", Item: Item{ResourceVersion: "9"}, Items: []Item{web, db}}},
		{"empty list", `{"kind":"ServiceList","metadata":{"resourceVersion":"9"},"items":[]}`, Answer{Kind: "ServiceList", Item: Item{ResourceVersion: "9"}}},
		{"table of one", `{"kind":"Table","metadata":{"resourceVersion":"8"},"columnDefinitions":[{}],"rows":[{"cells":["db"],"object":{"kind":"PartialObjectMetadata","metadata":` + dbMetadata + `}}]}`,
			Answer{Kind: "Table", Item: db, Items: []Item{db}}},
		{"table of two", `{"kind":"Table","metadata":{"resourceVersion":"9"},"rows":[{"object":{"metadata":` + dbMetadata + `}},{"object":{"metadata":` + webMetadata + `}}]}`,
			Answer{Kind: "Table", Item: Item{ResourceVersion: "9"}, Items: []Item{db, web}}},
		{"table without objects", `{"kind":"Table","metadata":{"resourceVersion":"9"},"rows":[{"cells":[],"object":null},{"cells":[]}]}`, Answer{Kind: "Table", Item: Item{ResourceVersion: "9"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bodies := map[string]string{"application/json": tt.body, "application/json;as=Table": "\n" + tt.body + "\n"}
			bodies[yamlType] = toYAML(t, tt.body)
			bodies["application/cbor"] = cborBody(t, decodePlain(t, tt.body))
			for contentType, body := range bodies {
				got, ok := ReadAnswer(contentType, []byte(body))
				if diff := cmp.Diff(tt.want, got); !ok || diff != "" {
					t.Errorf("%s: %t (-want +got)\n%s", contentType, ok, diff)
				}
			}
		})
	}
}

func decodePlain(t testing.TB, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestReadProtobufAnswer(t *testing.T) {
	meta := func(name, uid, revision string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID(uid), ResourceVersion: revision, Labels: map[string]string{"a": "b"}}
	}
	deleted := meta("db", "u2", "8")
	deleted.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time}
	web, db := Item{"web", "shop", "u1", "7", false}, Item{"db", "shop", "u2", "8", true}
	waiting := deleted
	waiting.Finalizers = []string{"a/b"}
	status := func(result string) *metav1.Status {
		return &metav1.Status{Status: result, Details: &metav1.StatusDetails{Name: "web", UID: "u1", Kind: "services"}}
	}
	tests := []struct {
		name, kind string
		object     marshaler
		want       Answer
	}{
		{"object", "Service", &corev1.Service{ObjectMeta: meta("web", "u1", "7")}, Answer{Kind: "Service", Item: web}},
		{"object that is being deleted", "Service", &corev1.Service{ObjectMeta: deleted}, Answer{Kind: "Service", Item: db}},
		{"object that waits for a finalizer", "Service", &corev1.Service{ObjectMeta: waiting}, Answer{Kind: "Service", Item: Item{"db", "shop", "u2", "8", false}}},
		{"object with ports that is being deleted", "Service", &corev1.Service{ObjectMeta: deleted, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, Answer{Kind: "Service", Item: db}},
		{"namespace that has to be emptied", "Namespace", &corev1.Namespace{ObjectMeta: deleted, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}}},
			Answer{Kind: "Namespace", Item: Item{"db", "shop", "u2", "8", false}}},
		{"namespace that was emptied", "Namespace", &corev1.Namespace{ObjectMeta: deleted}, Answer{Kind: "Namespace", Item: db}},
		{"metadata alone", "PartialObjectMetadata", &metav1.PartialObjectMetadata{ObjectMeta: deleted}, Answer{Kind: "PartialObjectMetadata", Item: db}},
		{"status of success", "Status", status("Success"), Answer{Kind: "Status", Item: Item{Name: "web", UID: "u1"}}},
		{"status of failure", "Status", status("Failure"), Answer{Kind: "Status", Item: Item{Name: "web", UID: "u1"}}},
		{"list", "ServiceList", &corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Service{{ObjectMeta: meta("web", "u1", "7")}, {ObjectMeta: deleted}}},
			Answer{Kind: "ServiceList", Item: Item{ResourceVersion: "9"}, Items: []Item{web, db}}},
	}
	for _, tt := range tests {
		got, ok := ReadAnswer(protobufType, []byte(protobufBody(t, tt.kind, tt.object)))
		if diff := cmp.Diff(tt.want, got); !ok || diff != "" {
			t.Errorf("%s: %t (-want +got)\n%s", tt.name, ok, diff)
		}
	}
}

func TestAnswersThatCannotBeRead(t *testing.T) {
	tests := []struct{ name, contentType, body string }{
		{"JSON that is cut off", "application/json", `{"kind":"Service"`},
		{"empty", "application/json", ""},
		{"YAML", yamlType, "a: ["},
		{"large YAML", yamlType, "a: b\n" + strings.Repeat("#", maxCostlyBody)},
		{"CBOR", "application/cbor", "\xff"},
		{"protobuf", protobufType, "k8s\x00\x12\x7f"},
		{"metadata in protobuf", protobufType, protobufBody(t, "Service", rawMessage("\x0a\x02\x0a\x7f"))},
		{"JSON patch", jsonPatchType, "[]"},
		{"text", "text/plain", `{"kind":"Service"}`},
	}
	for _, tt := range tests {
		if got, ok := ReadAnswer(tt.contentType, []byte(tt.body)); ok || !cmp.Equal(got, Answer{}) {
			t.Errorf("%s: read %+v, %t", tt.name, got, ok)
		}
		if tt.contentType == "application/cbor" {
			continue
		}
		edited, ok := TranslateAnswer(tt.contentType, []byte(tt.body), toView)
		if ok || string(edited) != tt.body {
			t.Errorf("%s: translated %q, %t", tt.name, edited, ok)
		}
	}
}

// toView translates upstreamRevision and "7".
func toView(revision string) (string, bool) {
	return viewRevision, revision == upstreamRevision || revision == "7"
}

func TestTranslateAnswer(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"object", `{"kind":"Service","metadata":{"name":"123456","resourceVersion":"123456","generation":7},"spec":{"a":"123456"}}`,
			`{"kind":"Service","metadata":{"name":"123456","resourceVersion":"1800000000000000","generation":7},"spec":{"a":"123456"}}`},
		{"small revision", `{"a":[7,7,"7"],"metadata":{"resourceVersion":"7"}}`, `{"a":[7,7,"7"],"metadata":{"resourceVersion":"1800000000000000"}}`},
		{"a revision that translate leaves", `{"kind":"Service","metadata":{"resourceVersion":"5"}}`, ""},
		{"a revision that is a word", `{"kind":"Service","metadata":{"resourceVersion":"x5"}}`, ""},
		{"no revision", `{"kind":"Service","preconditions":{"resourceVersion":"7"},"rows":[{"object":{"metadata":{"resourceVersion":"7"}}}]}`, ""},
		{"empty revision", `{"kind":"Service","metadata":{"resourceVersion":""}}`, ""},
		{"status", `{"kind":"Status","metadata":{"resourceVersion":"7"},"status":"Failure","details":{"name":"7"}}`, ""},
		{"items of a list", `{"kind":"ServiceList","metadata":{"resourceVersion":"123456"},"items":[{"metadata":{"resourceVersion":"7"}}]}`,
			`{"kind":"ServiceList","metadata":{"resourceVersion":"1800000000000000"},"items":[{"metadata":{"resourceVersion":"7"}}]}`},
		{"table", `{"kind":"Table","metadata":{"resourceVersion":"7"},"rows":[{"cells":["7"],"object":{"metadata":{"resourceVersion":"7"}}},{"object":null},{"object":{"metadata":{"resourceVersion":"5"}}},{"object":{"metadata":{"name":"a","resourceVersion":"123456"}}}]}`,
			`{"kind":"Table","metadata":{"resourceVersion":"1800000000000000"},"rows":[{"cells":["7"],"object":{"metadata":{"resourceVersion":"1800000000000000"}}},{"object":null},{"object":{"metadata":{"resourceVersion":"5"}}},{"object":{"metadata":{"name":"a","resourceVersion":"1800000000000000"}}}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				tt.want = tt.body
			}
			for _, contentType := range []string{"application/json", yamlType} {
				if got, ok := TranslateAnswer(contentType, []byte(tt.body), toView); !ok || string(got) != tt.want {
					t.Errorf("JSON as %s: %t, got\n%s\nwant\n%s", contentType, ok, got, tt.want)
				}
			}
			if got, ok := TranslateAnswer(yamlType, []byte(toYAML(t, tt.body)), toView); !ok || string(got) != toYAML(t, tt.want) {
				t.Errorf("YAML: %t, got\n%s\nwant\n%s", ok, got, toYAML(t, tt.want))
			}
		})
	}
}

func TestTranslateProtobufAnswer(t *testing.T) {
	service := func(revision string) string {
		return protobufBody(t, "Service", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "7", ResourceVersion: revision}})
	}
	list := func(revision string) string {
		return protobufBody(t, "ServiceList", &corev1.ServiceList{ListMeta: metav1.ListMeta{ResourceVersion: revision}, Items: []corev1.Service{{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}}})
	}
	status := protobufBody(t, "Status", &metav1.Status{ListMeta: metav1.ListMeta{ResourceVersion: "7"}})
	tests := []struct{ name, body, want string }{
		{"object", service("7"), service(viewRevision)},
		{"a revision that translate leaves", service("5"), service("5")},
		{"list", list("7"), list(viewRevision)},
		{"status", status, status},
	}
	for _, tt := range tests {
		if got, ok := TranslateAnswer(protobufType, []byte(tt.body), toView); !ok || string(got) != tt.want {
			t.Errorf("%s: %t, got\n%q\nwant\n%q", tt.name, ok, got, tt.want)
		}
	}
}

func TestAnswersInCBORAreLeft(t *testing.T) {
	body := cborBody(t, map[string]any{"metadata": map[string]any{"resourceVersion": "7"}})
	if got, ok := TranslateAnswer("application/cbor", []byte(body), toView); ok || string(got) != body {
		t.Errorf("got %q, %t", got, ok)
	}
}

func TestAnswersInYAMLThatCannotBeEditedAreLeft(t *testing.T) {
	for _, body := range []string{
		"metadata: {resourceVersion: \"\\x37\"}\n",
		"x: &a '7'\nmetadata: {resourceVersion: *a}\n",
		"kind: Table\nrows: [5, {object: {metadata: {resourceVersion: '7'}}}]\n",
	} {
		if got, ok := TranslateAnswer(yamlType, []byte(body), toView); ok || string(got) != body {
			t.Errorf("%q: got %q, %t", body, got, ok)
		}
	}
}
