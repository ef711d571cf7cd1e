// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"errors"
	"strings"
	"testing"
)

func TestTranslateYAML(t *testing.T) {
	const (
		edited    = "edited"
		unchanged = "unchanged"
		refused   = "refused"
	)
	padding := "# " + strings.Repeat("x", maxCostlyBody) + "\n"
	tests := []struct{ name, body, want string }{
		{"quoted", "metadata:\n  resourceVersion: \"1800000000000000\"\n", edited},
		{"single quotes", "kind: Service\nmetadata:\n  resourceVersion: '1800000000000000' # read on the node\n", edited},
		{"flow", "metadata: {resourceVersion: '1800000000000000'}", edited},
		{"flow without a space", `{x: y, "metadata":{"resourceVersion":"1800000000000000"}}`, edited},
		{"tagged", "metadata:\n  resourceVersion: !!str 1800000000000000\n", edited},
		{"literal block", "metadata:\n  resourceVersion: |-\n    1800000000000000\n  labels: {}\n", edited},
		{"on the next line", "metadata:\n  resourceVersion:\n    '1800000000000000'\n", edited},
		{"escaped name", "metadata: {\"resource\\u0056ersion\": '1800000000000000'}\n", edited},
		{"DeleteOptions", "preconditions:\n  resourceVersion: '1800000000000000'\n", edited},
		{"both", "preconditions: {resourceVersion: '1800000000000000'}\nmetadata: {resourceVersion: '1800000000000000'}\n", edited},
		{"anchor that nothing refers to", "metadata: {resourceVersion: &a '1800000000000000'}\n", edited},
		{"Windows line ends", "metadata:\r\n  resourceVersion: '1800000000000000'\r\n", edited},
		{"of another type elsewhere", "preconditions: 5\nmetadata: {resourceVersion: '1800000000000000'}\n", edited},
		{"second document", "metadata: {resourceVersion: '1'}\n---\nmetadata: {resourceVersion: '1800000000000000'}\n", unchanged},
		{"number", "metadata:\n  resourceVersion: 1800000000000000\n", unchanged},
		{"number with leading zeros", "metadata:\n  resourceVersion: 0001700000000000000\n", unchanged},
		{"upstream", "metadata: {resourceVersion: '12', labels: {a: '1800000000000000'}}\n", unchanged},
		{"one that translate leaves", "metadata: {resourceVersion: '1800000000000001'}\n", unchanged},
		{"hidden, one that translate leaves", `metadata: {resourceVersion: "\x31800000000000001"}`, unchanged},
		{"annotation", "metadata: {annotations: {a: '1800000000000000', resourceVersion: '1800000000000000'}, resourceVersion: '5'}\n", unchanged},
		{"earlier duplicate of metadata", "metadata: {resourceVersion: '1800000000000000'}\nmetadata: {name: a}\n", unchanged},
		{"list", "- metadata: {resourceVersion: '1800000000000000'}\n", unchanged},
		{"revision that is a list", "metadata: {resourceVersion: ['1800000000000000']}\n", unchanged},
		{"not YAML", "\t: [ 1800000000000000", unchanged},
		{"not YAML behind it", "metadata: {resourceVersion: '1800000000000000'}\nb: [\n", unchanged},
		{"not JSON", "metadata: {resourceVersion: '1800000000000000'}\n? [a]\n: b\n", unchanged},
		{"anchor and alias that are numbers", "a: &1800000000000000 x\nb: *1800000000000000\nmetadata: {resourceVersion: '1800000000000000'}", edited},
		{"underscores", "metadata: {resourceVersion: 1_800_000_000_000_000}", unchanged},
		{"hexadecimal", "metadata: {resourceVersion: 0x6651728988000}", unchanged},
		{"escaped digits", `metadata: {resourceVersion: "\x318000000000\u00300000"}`, refused},
		{"folded line", "metadata:\n  resourceVersion: \"18000000\\\n    00000000\"\n", refused},
		{"binary", "metadata: {resourceVersion: !!binary MTgwMDAwMDAwMDAwMDAwMA==}", refused},
		{"UTF-16", utf16Of("metadata: {resourceVersion: '1800000000000000'}\n"), refused},
		{"alias of metadata", "x: &m {resourceVersion: '1800000000000000'}\nmetadata: *m\n", refused},
		{"alias of the revision", "x: &r '1800000000000000'\nmetadata: {resourceVersion: *r}\n", refused},
		{"alias in both places", "metadata: &m {resourceVersion: '1800000000000000'}\npreconditions: *m\n", refused},
		{"merge", "x: &m {resourceVersion: '1800000000000000'}\nmetadata: {<<: *m}\n", refused},
		{"a value that looks like a marker", "a: '1800000000000000'\nmetadata: {resourceVersion: '9000000000000000'}\n", unchanged},
		{"a value that spells a marker", "a: '1800000000000000'\nmetadata: {resourceVersion: \"\\x39000000000000000\"}\n", refused},

		{"middling, with an ampersand", "metadata: {resourceVersion: '1800000000000000'}\na: x=1&y=2\n" + padding[:maxAnchored], edited},
		{"middling, with an anchor", "metadata: {resourceVersion: '1800000000000000'}\na: &y 2\n" + padding[:maxAnchored], refused},
		{"large", "metadata: {resourceVersion: '1800000000000000'}\n" + padding, refused},
		{"large, quoted name", `"resourceVersion" : "1800000000000000"` + "\n" + padding, refused},
		{"large, on another line", "resourceVersion:\na: '1800000000000000'\n" + padding, unchanged},
		{"large, elsewhere", "resourceVersion: '5'\nresourceVersion 1800000000000000\na: 1800000000000000\n" + padding, unchanged},
		{"large, at the end", padding + "a: 1800000000000000\nresourceVersion:", unchanged},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want, wantErr := tt.body, error(nil)
			switch tt.want {
			case edited:
				want = strings.ReplaceAll(tt.body, viewRevision, upstreamRevision)
				want = strings.NewReplacer("&"+upstreamRevision, "&"+viewRevision, "*"+upstreamRevision, "*"+viewRevision).Replace(want)
			case refused:
				wantErr = ErrNotEditable
			}
			translate := toUpstream
			if strings.Contains(tt.name, "marker") {
				translate = func(string) (string, bool) { return upstreamRevision, strings.HasSuffix(tt.name, "spells a marker") }
			}
			got, err := edit(t, "application/apply-patch+yaml", tt.body, translate)
			if !errors.Is(err, wantErr) || got != want {
				t.Errorf("error %v, want %v; got\n%s\nwant\n%s", err, wantErr, got, want)
			}
		})
	}
}

func TestReplacementThatChangesMoreOfYAMLIsRefused(t *testing.T) {
	const document = "metadata:\n  resourceVersion: '1800000000000000'\n"
	for _, replacement := range []string{"1'\n  name: 'x", "1' #", "'", "1\n\n2"} {
		if got, err := edit(t, "application/yaml", document, func(string) (string, bool) { return replacement, true }); !errors.Is(err, ErrNotEditable) {
			t.Errorf("%q: got %q, %v", replacement, got, err)
		}
	}
}

func TestAnchorsAreSeen(t *testing.T) {
	for text, want := range map[string]bool{
		"&a x": true, "a: &1 x": true, "[&_a x]": true, `{"a":&b x}`: true, "- & a\n- &a b": true, "a&b &c": true,
		"": false, "&": false, "a=b&c=d": false, "a & b": false, "a &&": false, "a: x&": false,
	} {
		if got := hasAnchors([]byte(text)); got != want {
			t.Errorf("%q: got %t", text, got)
		}
	}
}

func TestMarkersAreLikeTheirNumbers(t *testing.T) {
	data := []byte("5, '1800000000000000', 0001800000000000000 &7 x8 9y *3 18446744073709551615")
	numbers := findNumbers(data, 1)
	want := []string{"9000000000000000", "9000000000000001", "0009000000000000002", "90000000000000000003"}
	if len(numbers) != len(want) {
		t.Fatalf("got %v", numbers)
	}
	for i, number := range numbers {
		if number.marker != want[i] {
			t.Errorf("marker %s, want %s", number.marker, want[i])
		}
		if index, ok := indexOf(numbers, number.marker); !ok || index != i {
			t.Errorf("%s is the marker of %d, %t", number.marker, index, ok)
		}
	}
	for _, other := range []string{"", "9", "9000000000000004", "09000000000000000", "9999999999999999999999999999", "8000000000000000"} {
		if index, ok := indexOf(numbers, other); ok {
			t.Errorf("%s is the marker of %d", other, index)
		}
	}
}
