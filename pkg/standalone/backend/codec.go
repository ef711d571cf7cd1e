// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
)

// CodecFunc returns the codec of a resource. It is called once for each
// storage that is built, possibly concurrently.
type CodecFunc func(schema.GroupResource) (runtime.Codec, error)

// NewCodec returns a codec for the types of a group that store as version. The
// mediaType is that of the stored form, one that codecs knows: protobuf is the
// smaller and faster one, for types that have it.
func NewCodec(codecs runtime.StorageSerializer, mediaType string, version schema.GroupVersion) (runtime.Codec, error) {
	codec, _, err := serverstorage.NewStorageCodec(serverstorage.StorageCodecConfig{
		StorageMediaType:  mediaType,
		StorageSerializer: codecs,
		StorageVersion:    version,
		MemoryVersion:     schema.GroupVersion{Group: version.Group, Version: runtime.APIVersionInternal},
	})
	if err != nil {
		return nil, fmt.Errorf("making the storage codec of %s: %w", version, err)
	}
	return internalCodec{codec}, nil
}

// internalCodec takes kind and apiVersion off what it decodes. Objects in the
// internal version have none, and the handlers rely on it: the items of a list
// would show them. A conversion to internal types takes them off, but there is
// none where both versions are the same Go type.
type internalCodec struct{ codec runtime.Codec }

var _ runtime.Codec = internalCodec{}

// Encode implements runtime.Encoder.
func (c internalCodec) Encode(object runtime.Object, w io.Writer) error {
	return c.codec.Encode(object, w)
}

// Identifier implements runtime.Encoder.
func (c internalCodec) Identifier() runtime.Identifier { return c.codec.Identifier() }

// Decode implements runtime.Decoder.
func (c internalCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := c.codec.Decode(data, defaults, into)
	if object != nil {
		object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return object, kind, err
}

// customResourceCodec is for objects that keep kind and apiVersion in
// themselves. The storage of a custom resource puts conversion, pruning and
// defaulting around it.
func customResourceCodec(schema.GroupResource) (runtime.Codec, error) {
	return runtime.NewCodec(unstructured.UnstructuredJSONScheme, unstructured.UnstructuredJSONScheme), nil
}
