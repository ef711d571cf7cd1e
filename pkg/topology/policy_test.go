// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
)

func TestParsePolicy(t *testing.T) {
	numbered := func(n int) string {
		keys := make([]string, n)
		for i := range keys {
			keys[i] = fmt.Sprintf("%q", fmt.Sprintf("zone%d", i))
		}
		return "[" + strings.Join(keys, ",") + "]"
	}
	keys := func(value string) map[string]string {
		return map[string]string{TopologyKeysAnnotation: value}
	}
	withPolicy := func(value, policy string) map[string]string {
		return map[string]string{TopologyKeysAnnotation: value, TopologyPolicyAnnotation: policy}
	}
	longest := strings.Repeat("d", 63) + "." + strings.Repeat("e", 63) + "/" + strings.Repeat("k", 63)

	tests := []struct {
		name        string
		annotations map[string]string
		want        Policy
		wantErr     string // a part of the message
	}{
		{name: "no annotations"},
		{name: "other annotations only", annotations: map[string]string{"topologykeys": `["zone1"]`}},
		{name: "empty string", annotations: keys("")},
		{name: "empty array", annotations: keys("[]")},
		{name: "null", annotations: keys("null")},
		{name: "empty array with spaces", annotations: keys(" [ ] ")},
		{name: "policy without keys", annotations: map[string]string{TopologyPolicyAnnotation: "ordered"}},
		{name: "unknown policy without keys", annotations: map[string]string{TopologyPolicyAnnotation: "bogus"}},
		{name: "unknown policy with an empty array", annotations: withPolicy("[]", "bogus")},

		{name: "one key", annotations: keys(`["zone1"]`), want: Policy{Union, []string{"zone1"}}},
		{name: "white space around", annotations: keys("\n[ \"zone1\" ,\t\"zone2\" ]\n"), want: Policy{Union, []string{"zone1", "zone2"}}},
		{name: "escapes", annotations: keys(`["zone\u0031"]`), want: Policy{Union, []string{"zone1"}}},
		{name: "any", annotations: keys(`["*"]`), want: Policy{Union, []string{"*"}}},
		{name: "prefixed keys", annotations: keys(`["kubernetes.io/hostname","topology.kubernetes.io/zone"]`), want: Policy{Union, []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone"}}},
		{name: "duplicates stay", annotations: keys(`["a","*","a"]`), want: Policy{Union, []string{"a", "*", "a"}}},
		{name: "longest key", annotations: keys(`["` + longest + `"]`), want: Policy{Union, []string{longest}}},
		{name: "policy union", annotations: withPolicy(`["a"]`, "union"), want: Policy{Union, []string{"a"}}},
		{name: "policy ordered", annotations: withPolicy(`["b","a"]`, "ordered"), want: Policy{Ordered, []string{"b", "a"}}},
		{name: "as many keys as allowed", annotations: keys(numbered(MaxKeys)), want: Policy{Union, []string{
			"zone0", "zone1", "zone2", "zone3", "zone4", "zone5", "zone6", "zone7",
			"zone8", "zone9", "zone10", "zone11", "zone12", "zone13", "zone14", "zone15",
		}}},

		{name: "bare word", annotations: keys("zone1"), wantErr: "is not a JSON array"},
		{name: "unclosed array", annotations: keys(`["zone1"`), wantErr: "is not a JSON array"},
		{name: "string", annotations: keys(`"zone1"`), wantErr: "is not a JSON array"},
		{name: "number", annotations: keys(`1`), wantErr: "is not a JSON array"},
		{name: "boolean", annotations: keys(`false`), wantErr: "is not a JSON array"},
		{name: "object", annotations: keys(`{"zone1":"a"}`), wantErr: "is not a JSON array"},
		{name: "empty object", annotations: keys(`{}`), wantErr: "is not a JSON array"},
		{name: "array of numbers", annotations: keys(`[1]`), wantErr: "is not a JSON array"},
		{name: "nested array", annotations: keys(`[["zone1"]]`), wantErr: "is not a JSON array"},
		{name: "white space only", annotations: keys("  "), wantErr: "is not a JSON array"},
		{name: "text behind the array", annotations: keys(`["zone1"] x`), wantErr: "is not a JSON array"},
		{name: "two arrays", annotations: keys(`["zone1"]["zone2"]`), wantErr: "is not a JSON array"},
		{name: "trailing comma", annotations: keys(`["zone1",]`), wantErr: "is not a JSON array"},
		{name: "single quotes", annotations: keys(`['zone1']`), wantErr: "is not a JSON array"},
		{name: "null in the array", annotations: keys(`["zone1",null]`), wantErr: "key 2"},
		{name: "empty key", annotations: keys(`[""]`), wantErr: "key 1"},
		{name: "space in a key", annotations: keys(`["zone 1"]`), wantErr: "zone 1"},
		{name: "line feed after a key", annotations: keys(`["zone1\n"]`), wantErr: `zone1\n`},
		{name: "space beside any", annotations: keys(`["* "]`), wantErr: "key 1"},
		{name: "two slashes", annotations: keys(`["a/b/c"]`), wantErr: "a/b/c"},
		{name: "empty prefix", annotations: keys(`["/a"]`), wantErr: "/a"},
		{name: "upper case prefix", annotations: keys(`["Example.com/a"]`), wantErr: "Example.com/a"},
		{name: "name too long", annotations: keys(`["` + strings.Repeat("k", 64) + `"]`), wantErr: "key 1"},
		{name: "invalid UTF-8", annotations: keys("[\"\xff\"]"), wantErr: "key 1"},
		{name: "one bad key among good ones", annotations: keys(`["a","b","c d"]`), wantErr: "key 3"},
		{name: "one key too many", annotations: keys(numbered(MaxKeys + 1)), wantErr: "17 keys"},
		{name: "one key too many, repeated", annotations: keys("[" + strings.Repeat(`"a",`, MaxKeys) + `"a"]`), wantErr: "17 keys"},
		{name: "200 KB of text", annotations: keys(strings.Repeat("x", 200<<10)), wantErr: "is not a JSON array"},
		{name: "200 KB of digits in an array", annotations: keys("[" + strings.Repeat("1", 200<<10) + "]"), wantErr: "is not a JSON array"},
		{name: "200 KB of brackets", annotations: keys(strings.Repeat("[", 200<<10)), wantErr: "is not a JSON array"},
		{name: "200 KB key", annotations: keys(`["` + strings.Repeat("x", 200<<10) + `"]`), wantErr: "key 1"},
		{name: "200 KB of keys", annotations: keys("[" + strings.Repeat(`"a",`, 50<<10) + `"a"]`), wantErr: "keys, at most"},
		{name: "200 KB policy", annotations: withPolicy(`["a"]`, strings.Repeat("x", 200<<10)), wantErr: TopologyPolicyAnnotation},
		{name: "unknown policy", annotations: withPolicy(`["a"]`, "bogus"), wantErr: `"bogus"`},
		{name: "empty policy", annotations: withPolicy(`["a"]`, ""), wantErr: TopologyPolicyAnnotation},
		{name: "upper case policy", annotations: withPolicy(`["a"]`, "Ordered"), wantErr: TopologyPolicyAnnotation},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParsePolicy(tc.annotations)
			if (err != nil) != (tc.wantErr != "") {
				t.Fatalf("error %v, want one: %t", err, tc.wantErr != "")
			}
			if err != nil {
				if !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %q does not mention %q", err, tc.wantErr)
				}
				if n := len(err.Error()); n > maxErrorLen {
					t.Errorf("error of %d bytes, at most %d wanted", n, maxErrorLen)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}
			if got.Filters() != (len(tc.want.Keys) > 0) {
				t.Errorf("Filters() = %t for %v", got.Filters(), got)
			}
		})
	}
}

// maxErrorLen bounds the errors of annotations: a quoted rune takes at most 10
// bytes, and the rest is fixed text.
const maxErrorLen = maxQuoted*10 + 120

func TestPolicyEqual(t *testing.T) {
	tests := []struct {
		name string
		a, b Policy
		want bool
	}{
		{"zero values", Policy{}, Policy{}, true},
		{"neither filters", Policy{}, Policy{Mode: Ordered, Keys: []string{}}, true},
		{"one filters", Policy{}, Policy{Mode: Union, Keys: []string{"a"}}, false},
		{"same", Policy{Union, []string{"a", "b"}}, Policy{Union, []string{"a", "b"}}, true},
		{"unset mode is union", Policy{"", []string{"a"}}, Policy{Union, []string{"a"}}, true},
		{"other mode", Policy{Union, []string{"a"}}, Policy{Ordered, []string{"a"}}, false},
		{"other order", Policy{Ordered, []string{"a", "b"}}, Policy{Ordered, []string{"b", "a"}}, false},
		{"prefix", Policy{Union, []string{"a"}}, Policy{Union, []string{"a", "b"}}, false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.a.Equal(tc.b); got != tc.want {
				t.Errorf("a.Equal(b) = %t", got)
			}
			if got := tc.b.Equal(tc.a); got != tc.want {
				t.Errorf("b.Equal(a) = %t", got)
			}
		})
	}
}

func TestPolicyDomainKeys(t *testing.T) {
	tests := []struct {
		name string
		keys []string
		want []string
	}{
		{"no keys", nil, nil},
		{"any alone needs no domain", []string{"*"}, nil},
		{"order of the list, first of repeated", []string{"b", "*", "a", "b", "a", "c"}, []string{"b", "a", "c"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Policy{Mode: Union, Keys: tc.keys}.DomainKeys()); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzParsePolicy checks that whatever users write is either refused with a short
// error and not filtered, or gives keys that are valid and survive a round trip.
func FuzzParsePolicy(f *testing.F) {
	for _, value := range []string{
		"", "null", "[]", "{}", "zone1", `["zone1"`, `"zone1"`, "[1]", `[""]`, `["zone 1"]`, `["*"]`, `["a","a"]`,
		`["kubernetes.io/hostname","zone1"]`, `[null]`, `["zone\u0031"]`, "[\"\xff\"]", `["\ud800"]`, `["a"]]`, "[1e999]",
	} {
		f.Add(value, "", false)
		f.Add(value, "ordered", true)
		f.Add(value, "bogus", true)
	}
	f.Fuzz(func(t *testing.T, keys, mode string, hasMode bool) {
		annotations := map[string]string{TopologyKeysAnnotation: keys}
		if hasMode {
			annotations[TopologyPolicyAnnotation] = mode
		}
		p, err := ParsePolicy(annotations)
		if err != nil {
			if p.Filters() || p.Mode != "" {
				t.Errorf("error %v with policy %v", err, p)
			}
			if len(err.Error()) > maxErrorLen {
				t.Errorf("error of %d bytes", len(err.Error()))
			}
			return
		}
		if !p.Filters() {
			if !p.Equal(Policy{}) || p.Mode != "" || p.Keys != nil {
				t.Errorf("does not filter and is not the zero value: %#v", p)
			}
			return
		}
		if len(p.Keys) > MaxKeys {
			t.Errorf("%d keys", len(p.Keys))
		}
		for _, key := range p.Keys {
			if errs := metav1validation.ValidateLabelName(key, nil); key != AnyKey && len(errs) > 0 {
				t.Errorf("key %q: %v", key, errs)
			}
		}
		if want := hasMode && mode == string(Ordered); p.ordered() != want || p.Mode != Union && p.Mode != Ordered {
			t.Errorf("mode %q for annotation %q (present: %t)", p.Mode, mode, hasMode)
		}
		again, err := json.Marshal(p.Keys)
		if err != nil {
			t.Fatal(err)
		}
		annotations[TopologyKeysAnnotation] = string(again)
		if q, err := ParsePolicy(annotations); err != nil || !p.Equal(q) {
			t.Errorf("%s parses to %v (%v), want %v", again, q, err, p)
		}
	})
}
