// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

const (
	viewRevision     = "1800000000000000"
	upstreamRevision = "123456"

	// largest is the limit of kube-apiserver for the body of a write.
	largest = 3 * 1024 * 1024
)

// toUpstream translates viewRevision.
func toUpstream(revision string) (string, bool) {
	return upstreamRevision, revision == viewRevision
}

func same(revision string) (string, bool) { return revision, true }

// translated is text with every view revision replaced.
func translated(text string) string {
	return strings.ReplaceAll(text, viewRevision, upstreamRevision)
}

type marshaler interface{ Marshal() ([]byte, error) }

type rawMessage string

func (m rawMessage) Marshal() ([]byte, error) { return []byte(m), nil }

func protobufBody(t testing.TB, kind string, object marshaler) string {
	t.Helper()
	raw, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return sealed(t, runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw})
}

func sealed(t testing.TB, envelope runtime.Unknown) string {
	t.Helper()
	data, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return protobufMagic + string(data)
}

func cborBody(t testing.TB, value any) string {
	t.Helper()
	data, err := direct.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// utf16Of is text, of ASCII, in UTF-16 with a byte order mark.
func utf16Of(text string) string {
	encoded := string(utf16Little)
	for _, r := range text {
		encoded += string(r) + "\x00"
	}
	return encoded
}
