// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package streaming encodes collections one item at a time where the serializers
// of k8s.io/apimachinery do not.
//
// Those stream lists in JSON and in protobuf. Lists in YAML and in indented JSON,
// which is what curl and browsers get, are encoded as a whole: the answer, and more
// than once its size, is in memory until the last byte is written. A list of 26 MB
// took 140 MB more as indented JSON and 2.4 GB as YAML, see docs/performance.md; an
// edge node does not have that.
//
// The bytes are the same, and what is no collection is left to the serializer below.
package streaming

import (
	"io"

	"k8s.io/apimachinery/pkg/runtime"
)

// NewNegotiatedSerializer returns negotiated, with collections encoded one item at
// a time. Its encoders are as safe for concurrent use as those of negotiated.
func NewNegotiatedSerializer(negotiated runtime.NegotiatedSerializer) runtime.NegotiatedSerializer {
	s := &negotiatedSerializer{NegotiatedSerializer: negotiated}
	for _, info := range negotiated.SupportedMediaTypes() {
		s.infos = append(s.infos, streamed(info))
	}
	return s
}

type negotiatedSerializer struct {
	runtime.NegotiatedSerializer
	infos []runtime.SerializerInfo
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s *negotiatedSerializer) SupportedMediaTypes() []runtime.SerializerInfo { return s.infos }

// streamed replaces the encoders of a media type that do not stream. Events of
// watches are encoded by its StreamSerializer, one object each.
func streamed(info runtime.SerializerInfo) runtime.SerializerInfo {
	switch info.MediaType {
	case runtime.ContentTypeJSON:
		if info.PrettySerializer != nil {
			info.PrettySerializer = &itemwise{info.PrettySerializer, encodeIndentedJSON}
		}
	case runtime.ContentTypeYAML:
		info.Serializer = &itemwise{info.Serializer, encodeYAML}
	}
	return info
}

// itemwise is a serializer with an encoder of its own for collections. It keeps the
// identifier of the one below: what both write is the same.
type itemwise struct {
	runtime.Serializer
	encode func(collection, io.Writer) error
}

var _ runtime.Serializer = &itemwise{}

// Encode implements runtime.Encoder.
func (s *itemwise) Encode(obj runtime.Object, w io.Writer) error {
	if c, ok := collectionOf(obj); ok {
		return s.encode(c, w)
	}
	return s.Serializer.Encode(obj, w)
}
