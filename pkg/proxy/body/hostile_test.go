// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// allocated returns the bytes that f allocates, which is at least what it holds at its worst.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// fill repeats a text between two others, as often as it fits a size.
func fill(start, repeat, end string, size int) string {
	return start + strings.Repeat(repeat, max(0, (size-len(start)-len(end))/len(repeat))) + end
}

func TestHostileBodiesCostLittle(t *testing.T) {
	const (
		kib    = 1 << 10
		mib    = 1 << 20
		digits = `"` + viewRevision + `"`
		member = `"resourceVersion":"` + viewRevision + `"`
		parsed = "metadata: {resourceVersion: '" + viewRevision + "'}\n"
	)
	none := error(nil)
	manyOwners := protobufBody(t, "Service", rawMessage("\x0a\x80\x80\x80\x01"+strings.Repeat("\x6a\x00", mib)))
	tests := []struct {
		name, contentType, body string
		most                    int
		want                    error
	}{
		{"JSON without digits", "", fill(`{"a":"`, "123456789012345 ", `"}`, largest), kib, none},
		{"JSON, deep", "", fill(`{"a":`+digits+`,"b":`, "[", "", largest), mib, none},
		{"JSON, deep as far as is valid", "", fill(`{"a":`+digits+`,"metadata":`, "[", strings.Repeat("]", 9990)+"}", 20000), mib, none},
		{"JSON list", "", fill(`{"a":`+digits+`,"b":[0`, ",[]", "]}", largest), mib, none},
		{"JSON members", "", fill(`{"b":`+digits, `,"a":1`, "}", largest), mib, none},
		{"JSON members with escapes", "", fill(`{"b":`+digits, `,"\u006detadat\u0061":1`, "}", largest), mib, none},
		{"JSON escapes", "", fill(`{"metadata":{"resourceVersion":"`+viewRevision, `\u0031`, `"}}`, largest), 8 * mib, none},
		{"JSON revisions", "", fill(`{"metadata":{`+member, ","+member, "}}", largest), 12 * mib, none},
		{"JSON metadata", "", fill(`{"metadata":{`+member+`}`, `,"metadata":{`+member+`}`, "}", largest), 12 * mib, none},
		{"JSON revisions with escapes", "", fill(`{"metadata":{"a":`+digits, `,"resourceVersion":"\u0031a"`, "}}", largest), 16 * mib, none},
		{"JSON long revision", "", fill(`{"metadata":{"resourceVersion":"`, "1", `"}}`, largest), 16 * mib, none},
		{"JSON patch", jsonPatchType, fill("[{}", ",{}", "]", largest), kib, none},
		{"JSON patch with digits", jsonPatchType, fill(`[{"a":`+digits+"}", ",{}", "]", largest), mib, none},
		{"JSON patch with a large value", jsonPatchType, fill(`[{"op":"add","path":"/metadata","value":[`+digits, ",[]", "]}]", largest), mib, none},
		{"JSON patch with many values", jsonPatchType, fill(`[{"op":"add","path":"/metadata","a":`+digits, `,"value":{}`, "}]", largest), mib, none},
		{"JSON patch with a long path", jsonPatchType, fill(`[{"op":"add","a":`+digits+`,"path":"`, "/metadata", `","value":""}]`, largest), mib, none},
		{"JSON patch with a path of slashes", jsonPatchType, fill(`[{"op":"add","a":`+digits+`,"path":"`, "/", `","value":""}]`, largest), mib, none},
		{"YAML list", yamlType, fill("[a", ",a", "]", largest), kib, none},
		{"YAML list with digits", yamlType, fill("[x"+digits, ",a", "]", largest), 64 * kib, none},
		{"YAML list with an escape", yamlType, fill(`["\x31"`, ",a", "]", largest), 64 * kib, none},
		{"YAML keys", yamlType, fill("a: "+digits+"\n", "resourceVersion: a\n", "", largest), 64 * kib, none},
		{"YAML list as large as is parsed", yamlType, fill("[x"+digits, ",a", "]", maxCostlyBody), 64 * mib, none},
		{"YAML numbers", yamlType, fill("[x, "+digits, ", "+viewRevision, "]", maxCostlyBody), 64 * mib, none},
		{"YAML aliases of a large scalar", yamlType, fill("a: &a x"+digits+strings.Repeat("x", maxCostlyBody/2)+"\nb: [*a", ",*a", "]", maxCostlyBody), 64 * mib, none},
		{"YAML with a revision", yamlType, fill(parsed+"b: [a", ",a", "]", maxCostlyBody), 128 * mib, none},
		{"YAML with a revision and aliases", yamlType, fill(parsed+"a: &a {b: {}}\nb: [a", ",*a", "]", maxCostlyBody), 128 * mib, ErrNotEditable},
		{"CBOR list", "application/cbor", "\x9a\x00\x2f\xff\xfb" + strings.Repeat("\x80", 0x2ffffb), kib, none},
		{"CBOR list with digits", "application/cbor", "\x9a\x00\x2f\xff\xea\x70" + viewRevision + strings.Repeat("\x80", 0x2fffe9), 64 * kib, none},
		{"CBOR list as large as is parsed", "application/cbor", "\x9a\x00\x03\xff\xea\x70" + viewRevision + strings.Repeat("\x80", 0x3ffe9), 64 * mib, none},
		{"protobuf", protobufType, manyOwners, kib, none},
		{"protobuf with digits", protobufType, manyOwners + viewRevision, 64 * kib, none},
		{"protobuf with a revision", protobufType, protobufBody(t, "Service", rawMessage("\x0a\x92\x80\x80\x01"+strings.Repeat("\x6a\x00", mib)+"\x32\x10"+viewRevision)), 12 * mib, none},
		{"protobuf revisions", protobufType, protobufBody(t, "Service", rawMessage(strings.Repeat("\x0a\x12\x32\x10"+viewRevision, 150_000))), 40 * mib, none},
		{"protobuf groups", protobufType, protobufBody(t, "Service", rawMessage(strings.Repeat("\x2b", largest)+viewRevision)), 64 * kib, none},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := []byte(tt.body)
			got := allocated(func() {
				if _, err := NewEditor().Translate(t.Context(), tt.contentType, data, toUpstream); !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
			})
			if got > tt.most {
				t.Errorf("%d bytes allocated, want at most %d", got, tt.most)
			}
			t.Logf("%d KiB", got/kib)
			if got := allocated(func() { Precondition(tt.contentType, data) }); got > max(mib, min(tt.most, 40*mib)) {
				t.Errorf("%d bytes allocated for the precondition", got)
			}
		})
	}
}

func TestHostilePatchesCostLittle(t *testing.T) {
	for name, body := range map[string]string{
		"members":    fill(`{"b":1`, `,"a":1`, "}", largest),
		"escapes":    fill(`{"b":1`, `,"\u0061":1`, "}", largest),
		"operations": fill("[{}", ",{}", "]", largest),
		"paths":      fill(`[{"a":1`, `,"path":"/a"`, "}]", largest),
		"slashes":    fill(`[{"path":"/a`, "/", `"}]`, largest),
		"tildes":     fill(`[{"path":"/a`, "~0", `"}]`, largest),
		"deep":       fill(`{"a":`, "[", "", largest),
	} {
		data := []byte(body)
		for _, contentType := range []string{mergePatchType, jsonPatchType} {
			got := allocated(func() { PatchTouches(contentType, data, append(slices.Clone(filteredFields), []string{"a", "b"})) })
			if got > 8*largest {
				t.Errorf("%s as %s: %d bytes allocated", name, contentType, got)
			}
			t.Logf("%s as %s: %d KiB", name, contentType, got/1024)
		}
		if got := allocated(func() { IsDryRun("application/json", append([]byte(`"dryRun"`), data...)) }); got > 2*largest {
			t.Errorf("%s: %d bytes allocated", name, got)
		}
	}
}
