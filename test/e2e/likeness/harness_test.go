// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestNormalizingKeepsWhatIsNotChance: two texts are told apart unless they differ by nature.
func TestNormalizingKeepsWhatIsNotChance(t *testing.T) {
	for _, test := range []struct {
		name, a, b string
		equal      bool
	}{
		{"revisions", `"resourceVersion":"12"`, `"resourceVersion":"1796000000000000"`, true},
		{"no revision", `"resourceVersion":"12"`, `"resourceVersion":""`, false},
		{"revision zero", `"resourceVersion":"12"`, `"resourceVersion":"0"`, false},
		{"revision as a number", `"resourceVersion":"12"`, `"resourceVersion":12`, false},
		{"revisions in YAML", `resourceVersion: "12"`, `resourceVersion: "1796000000000000"`, true},
		{"namespaces", `"namespace":"case-001-a"`, `"namespace":"case-001-b"`, true},
		{"times", `2026-01-01T00:00:00Z`, `2027-01-01T00:00:00Z`, true},
		{"time zones", `2026-01-01T00:00:00Z`, `2026-01-01T00:00:00+01:00`, false},
		{"ports", `"port":80`, `"port":81`, false},
		{"addresses", `10.1.0.1`, `10.1.0.2`, false},
		{"order of managers", `"managedFields":[{"manager":"b"},{"manager":"a"}],"c":1`, `"managedFields":[{"manager":"a"},{"manager":"b"}],"c":1`, true},
		{"managers", `"managedFields":[{"manager":"b"},{"manager":"a"}]`, `"managedFields":[{"manager":"a"}]`, false},
		{"order of managers in YAML", "m:\n  managedFields:\n  - a: 1\n    b: 2\n  - a: 0\n  name: c\n", "m:\n  managedFields:\n  - a: 0\n  - a: 1\n    b: 2\n  name: c\n", true},
		{"managers in YAML", "m:\n  managedFields:\n  - a: 1\n    b: 2\n  - a: 0\n  name: c\n", "m:\n  managedFields:\n  - a: 0\n  - a: 1\n    b: 3\n  name: c\n", false},
		{"white space", `{"a":1}`, `{"a": 1}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := normalizer("case-001-a")(test.a), normalizer("case-001-b")(test.b)
			if (a == b) != test.equal {
				t.Errorf("%s and %s", a, b)
			}
		})
	}
}

// TestProtobufIsComparedFieldByField: an object differs from one with another value, and not from one with another
// revision.
func TestProtobufIsComparedFieldByField(t *testing.T) {
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	shown := func(revision, address string) string {
		service := &corev1.Service{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: revision},
			Spec:       corev1.ServiceSpec{ExternalIPs: []string{address}},
		}
		data, err := runtime.Encode(serializer, service)
		must(t, err)
		return text("application/vnd.kubernetes.protobuf", data, normalizer("none"))
	}
	one := shown("12", "192.0.2.1")
	if other := shown("1796000000000000", "192.0.2.1"); one != other {
		t.Errorf("revisions differ:\n%s\n%s", one, other)
	}
	if other := shown("12", "192.0.2.2"); one == other {
		t.Errorf("equal in spite of another address:\n%s", one)
	}
}
