// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestTranslateProtobuf(t *testing.T) {
	options := func(revision string) *metav1.DeleteOptions {
		return &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &revision}, DryRun: []string{"All"}}
	}
	// A name of 120 bytes makes the lengths around the revision one byte shorter with a shorter revision.
	service := func(revision string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("w", 92), ResourceVersion: revision, Labels: map[string]string{"a": viewRevision}},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.0.0.1"},
		}
	}
	endpoints := func(revision string) *corev1.Endpoints {
		return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{ResourceVersion: revision}, Subsets: []corev1.EndpointSubset{{}}}
	}
	slice := func(revision string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{ResourceVersion: revision}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}}}
	}
	const unchanged = "unchanged"
	tests := []struct{ name, body, want string }{
		{"DeleteOptions", protobufBody(t, "DeleteOptions", options(viewRevision)), protobufBody(t, "DeleteOptions", options(upstreamRevision))},
		{"DeleteOptions upstream", protobufBody(t, "DeleteOptions", options(upstreamRevision)) + viewRevision, unchanged},
		{"DeleteOptions without a kind", protobufBody(t, "", options(viewRevision)), protobufBody(t, "", options(upstreamRevision))},
		{"object without a kind", protobufBody(t, "", slice(viewRevision)), protobufBody(t, "", slice(upstreamRevision))},
		{"Service", protobufBody(t, "Service", service(viewRevision)), protobufBody(t, "Service", service(upstreamRevision))},
		{"Endpoints", protobufBody(t, "Endpoints", endpoints(viewRevision)), protobufBody(t, "Endpoints", endpoints(upstreamRevision))},
		{"EndpointSlice", protobufBody(t, "EndpointSlice", slice(viewRevision)), protobufBody(t, "EndpointSlice", slice(upstreamRevision))},
		{"upstream", protobufBody(t, "Service", service(upstreamRevision)), unchanged},
		{"one that translate leaves", protobufBody(t, "Service", service("1800000000000001")), unchanged},
		{
			"groups, long varints and fields of another version",
			protobufMagic + "\xfa\x01\x01x" + "\x12\xb2\x00" + "\x9b\x06\x08\x01\xa3\x06\x12\x00\xa4\x06\x9c\x06" + "\x0a\x99\x80\x00" + "\xf8\x07\x81\x00" + "\x32\x10" + viewRevision + "\x3a\x01y" + "\x5d\x00\x00\x00\x00" + "\x9a\x81\x00\x00",
			protobufMagic + "\xfa\x01\x01x" + "\x12\x26" + "\x9b\x06\x08\x01\xa3\x06\x12\x00\xa4\x06\x9c\x06" + "\x0a\x0f" + "\xf8\x07\x81\x00" + "\x32\x06" + upstreamRevision + "\x3a\x01y" + "\x5d\x00\x00\x00\x00" + "\x9a\x81\x00\x00",
		},
		{
			"every occurrence",
			protobufMagic + "\x12\x2a" + "\x0a\x12\x32\x10" + viewRevision + "\x0a\x14\x32\x10" + viewRevision + "\x32\x00" + "\x12\x02\x0a\x00",
			protobufMagic + "\x12\x16" + "\x0a\x08\x32\x06" + upstreamRevision + "\x0a\x0a\x32\x06" + upstreamRevision + "\x32\x00" + "\x12\x02\x0a\x00",
		},
		{"field numbers of more than 32 bits", protobufMagic + "\x92\x80\x80\x80\x80\x01\x14\x0a\x12\x32\x10" + viewRevision, protobufMagic + "\x92\x80\x80\x80\x80\x01\x0a\x0a\x08\x32\x06" + upstreamRevision},
		{"content type of its own", sealed(t, runtime.Unknown{ContentType: "application/json", Raw: []byte("\x0a\x12\x32\x10" + viewRevision)}), unchanged},
		{"content encoding of its own", sealed(t, runtime.Unknown{ContentEncoding: "gzip", Raw: []byte("\x0a\x12\x32\x10" + viewRevision)}), unchanged},
		{"without magic", "\x12\x14\x0a\x12\x32\x10" + viewRevision, unchanged},
		{"magic alone", "k8s", unchanged},
		{"cut off", protobufMagic + "\x12\x14\x0a\x12\x32\x10" + viewRevision[1:] + " " + viewRevision + "\x12\x7f", unchanged},
		{"malformed metadata", protobufMagic + "\x12\x15\x0a\x13\x32\x10" + viewRevision + "\x0f", unchanged},
		{"metadata of another wire type", protobufMagic + "\x12\x16\x0a\x12\x32\x10" + viewRevision + "\x08\x01", unchanged},
		{"metadata that is a group", protobufMagic + "\x12\x16\x0a\x12\x32\x10" + viewRevision + "\x0b\x0c", unchanged},
		{"end of a group that is none", protobufMagic + "\x12\x15\x0a\x12\x32\x10" + viewRevision + "\x1c", unchanged},
		{"group without an end", protobufMagic + "\x12\x17\x0a\x12\x32\x10" + viewRevision + "\x2b\x08\x01", unchanged},
		{"field number zero", protobufMagic + "\x12\x16\x0a\x12\x32\x10" + viewRevision + "\x00\x01", unchanged},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == unchanged {
				tt.want = tt.body
			}
			if got, err := edit(t, protobufType, tt.body, toUpstream); err != nil || got != tt.want {
				t.Errorf("error %v, got\n%q\nwant\n%q", err, got, tt.want)
			}
		})
	}
}

// The lengths around the revision are written with fewer or more bytes when they cross a limit.
func TestProtobufLengthsFollow(t *testing.T) {
	for _, size := range []int{0, 80, 95, 100, 105, 110, 115, 16350, 16360, 16370} {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("w", size), ResourceVersion: viewRevision}}
		long := protobufBody(t, "Service", service)
		service.ResourceVersion = upstreamRevision
		short := protobufBody(t, "Service", service)
		if got, err := edit(t, protobufType, long, toUpstream); err != nil || got != short {
			t.Errorf("name of %d bytes: error %v, got %d bytes, want %d", size, err, len(got), len(short))
		}
		back, ok := TranslateAnswer(protobufType, []byte(short), func(string) (string, bool) { return viewRevision, true })
		if !ok || string(back) != long {
			t.Errorf("name of %d bytes: back: %t, %d bytes, want %d", size, ok, len(back), len(long))
		}
	}
}

func TestVarintsAreReadAsUpstreamDoes(t *testing.T) {
	tests := []struct {
		name, data string
		want       uint64
		next       int
	}{
		{"one byte", "\x05", 5, 1},
		{"more than it takes", "\x85\x80\x00", 5, 3},
		{"the most", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 1<<64 - 1, 10},
		{"more than 64 bits", "\x85\x80\x80\x80\x80\x80\x80\x80\x80\x7e", 5, 10},
		{"eleven bytes", "\x85\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 0, 0},
		{"cut off", "\x85\x80", 0, 0},
		{"none", "", 0, 0},
	}
	for _, tt := range tests {
		value, next, ok := varintAt([]byte(tt.data), 0)
		if value != tt.want || next != tt.next || ok != (tt.next > 0) {
			t.Errorf("%s: got %d, %d, %t", tt.name, value, next, ok)
		}
		if standard, n := binary.Uvarint([]byte(tt.data)); n > 0 && standard != value {
			t.Errorf("%s: encoding/binary reads %d", tt.name, standard)
		}
	}
}

func TestWhatCannotBeEditedIsReported(t *testing.T) {
	object := func(revision any) string {
		return cborBody(t, map[string]any{"metadata": map[string]any{"resourceVersion": revision}})
	}
	tests := []struct {
		name, contentType, body string
		want                    error
	}{
		{"CBOR", "application/cbor", object(viewRevision), ErrNotEditable},
		{"CBOR apply patch", "application/apply-patch+cbor", object(viewRevision), ErrNotEditable},
		{"CBOR DeleteOptions", "application/cbor", cborBody(t, map[string]any{"preconditions": map[string]any{"resourceVersion": viewRevision}}), ErrNotEditable},
		{"CBOR that cannot be read", "application/cbor", "\xff\xff" + viewRevision, ErrNotEditable},
		{"CBOR that is JSON", "application/apply-patch+cbor", "{" + viewRevision, ErrNotEditable},
		{"CBOR, upstream", "application/cbor", object(upstreamRevision), nil},
		{"CBOR, one that translate leaves", "application/cbor", object("1800000000000001"), nil},
		{"CBOR, elsewhere", "application/cbor", cborBody(t, map[string]any{"a": viewRevision}), nil},
		{"CBOR, a list", "application/cbor", cborBody(t, []any{viewRevision}), nil},
		{"CBOR, integer", "application/cbor", object(1800000000000000), nil},
		{"CBOR, in chunks", "application/cbor", "\xa1\x68metadata\xa1\x6fresourceVersion\x7f\x6818000000\x6800000000\xff", nil},
		{"CBOR, large", "application/cbor", "\x70" + viewRevision + strings.Repeat("\x80", maxCostlyBody), nil},
		{"another protobuf", "application/x-protobuf", protobufMagic + viewRevision, ErrNotEditable},
		{"another protobuf without digits", "application/x-protobuf", protobufMagic, nil},
		{"text", "text/plain", viewRevision, nil},
	}
	for _, tt := range tests {
		if _, err := edit(t, tt.contentType, tt.body, toUpstream); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}
