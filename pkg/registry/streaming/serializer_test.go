// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package streaming_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/streaming"
)

// awkward has what encoders treat specially: characters that JSON escapes, what
// YAML folds, quotes or takes for another type, and text of many lines.
var awkward = metav1.ObjectMeta{
	Name: "a", Namespace: "no", CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	Generation: 1 << 60, DeletionGracePeriodSeconds: ptr.To(int64(0)),
	Labels: map[string]string{"z": "true", "a": "1e3", "b": "", "c": "0x10", "d": "null", "e": "2026-01-01"},
	Annotations: map[string]string{
		"html": `<a href="x">&amp;</a>`, "lines": "one\n  two\n\n\tthree\n", "trailing": "x\n\n", "leading": "  x\n y", "unicode": "\u2028 ü \U0001F600 \x00",
		"long": strings.Repeat("many words in a row ", 20), "quotes": `'"\`, "list": "- a\n- b", "json": `["zone1"]`, "colon": "a: b # c", "tab": "\t",
	},
}

func collections() map[string]runtime.Object {
	slice := discoveryv1.EndpointSlice{
		ObjectMeta: awkward, AddressType: discoveryv1.AddressTypeIPv6,
		Ports:     []discoveryv1.EndpointPort{},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"fd00::1", "::"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}}},
	}
	sliceList := metav1.TypeMeta{Kind: "EndpointSliceList", APIVersion: "discovery.k8s.io/v1"}
	remaining := int64(7)
	full := metav1.ListMeta{ResourceVersion: "1800000000000000", Continue: "eyJ=<>", RemainingItemCount: &remaining}
	partial := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}, ObjectMeta: awkward}
	partialList := metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}
	tableMeta := metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}
	columns := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: "<b>: 'x'\n" + awkward.Annotations["long"]}, {Name: "Age", Priority: 1}}
	row := func(o runtime.Object) metav1.TableRow {
		return metav1.TableRow{Cells: []any{"a", int64(3), nil, "<none>", "5m", true}, Object: runtime.RawExtension{Object: o}}
	}
	return map[string]runtime.Object{
		"no items":            &discoveryv1.EndpointSliceList{TypeMeta: sliceList, ListMeta: full, Items: []discoveryv1.EndpointSlice{}},
		"null items":          &discoveryv1.EndpointSliceList{TypeMeta: sliceList, ListMeta: full},
		"one item":            &discoveryv1.EndpointSliceList{TypeMeta: sliceList, ListMeta: full, Items: []discoveryv1.EndpointSlice{slice}},
		"items":               &discoveryv1.EndpointSliceList{TypeMeta: sliceList, Items: []discoveryv1.EndpointSlice{slice, {}, slice}},
		"list without a kind": &corev1.ServiceList{Items: []corev1.Service{{ObjectMeta: awkward}, {}}},
		"object":              &slice,
		"status":              &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Message: "<x>", Code: 500},
		"metadata":            &metav1.PartialObjectMetadataList{TypeMeta: partialList, ListMeta: full, Items: []metav1.PartialObjectMetadata{partial, partial}},
		"metadata as v1beta1": &metav1beta1.PartialObjectMetadataList{TypeMeta: partialList, ListMeta: full, Items: []metav1.PartialObjectMetadata{partial, partial}},
		"one object":          &partial,
		"table":               &metav1.Table{TypeMeta: tableMeta, ListMeta: full, ColumnDefinitions: columns, Rows: []metav1.TableRow{row(&partial), row(&slice), row(nil), {}}},
		"table without rows":  &metav1.Table{TypeMeta: tableMeta, ListMeta: full, ColumnDefinitions: columns, Rows: []metav1.TableRow{}},
		"table without head":  &metav1.Table{Rows: []metav1.TableRow{row(&partial)}},
	}
}

// encoders are those of each encoding, with the stock one and ours.
func encoders(t *testing.T) map[string][2]runtime.Encoder {
	t.Helper()
	stock := serializer.NewCodecFactory(clientscheme.Scheme)
	ours := streaming.NewNegotiatedSerializer(stock)
	all := map[string][2]runtime.Encoder{}
	for i, info := range stock.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeProtobuf {
			continue // it streams, and knows its scheme
		}
		other := ours.SupportedMediaTypes()[i]
		all[info.MediaType] = [2]runtime.Encoder{info.Serializer, other.Serializer}
		if info.PrettySerializer != nil {
			all["indented "+info.MediaType] = [2]runtime.Encoder{info.PrettySerializer, other.PrettySerializer}
		}
	}
	return all
}

func TestBytesAreThoseOfTheStockEncoders(t *testing.T) {
	for encoding, pair := range encoders(t) {
		for name, obj := range collections() {
			t.Run(encoding+" "+name, func(t *testing.T) {
				var want, got bytes.Buffer
				if err := pair[0].Encode(obj, &want); err != nil {
					t.Fatal(err)
				}
				if err := pair[1].Encode(obj, &got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want.String(), got.String()); diff != "" {
					t.Errorf("(-stock +ours):\n%s", diff)
				}
				if pair[0].Identifier() != pair[1].Identifier() {
					t.Error("it has another identifier")
				}
			})
		}
	}
}

// writes records the size of each write.
type writes []int

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, len(p))
	return len(p), nil
}

func TestEachWriteHoldsOneItem(t *testing.T) {
	const items = 100
	partial := collections()["one object"].(*metav1.PartialObjectMetadata)
	services, metadata := &corev1.ServiceList{}, &metav1.PartialObjectMetadataList{}
	for range items {
		services.Items = append(services.Items, corev1.Service{ObjectMeta: awkward})
		metadata.Items = append(metadata.Items, *partial)
	}
	for encoding, pair := range encoders(t) {
		for name, obj := range map[string]runtime.Object{"list": services, "metadata": metadata} {
			if encoding == runtime.ContentTypeJSON {
				continue // that is up to the options of the codecs, and those that are measured here have none
			}
			t.Run(encoding+" "+name, func(t *testing.T) {
				var w writes
				if err := pair[1].Encode(obj, &w); err != nil {
					t.Fatal(err)
				}
				total, largest := 0, 0
				for _, size := range w {
					total, largest = total+size, max(largest, size)
				}
				// The stock response writer takes a longer first write for all there is.
				if w[0] > 4 {
					t.Errorf("the first write has %d bytes", w[0])
				}
				if largest > 2*total/items {
					t.Errorf("of %d bytes, %d were written at once", total, largest)
				}
			})
		}
	}
}

// full refuses to be written to after some writes.
type full struct{ room int }

func (w *full) Write(p []byte) (int, error) {
	if w.room--; w.room < 0 {
		return 0, fmt.Errorf("no room")
	}
	return len(p), nil
}

func TestEncodingEndsWithTheFirstError(t *testing.T) {
	list := collections()["items"]
	for encoding, pair := range encoders(t) {
		var w writes
		if err := pair[1].Encode(list, &w); err != nil {
			t.Fatal(err)
		}
		for room := range w {
			if err := pair[1].Encode(list, &full{room: room}); err == nil {
				t.Errorf("%s: no error when write %d failed", encoding, room)
			}
		}
		broken := &metav1.Table{Rows: []metav1.TableRow{{}, {Cells: []any{func() {}}}}}
		if err := pair[1].Encode(broken, &w); err == nil {
			t.Errorf("%s: a cell that cannot be encoded gave no error", encoding)
		}
	}
}
