// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/binary"
)

// protobufMagic starts every protobuf body of Kubernetes; a runtime.Unknown follows, with the object inside.
var protobufMagic = []byte("k8s\x00")

// Field numbers of the messages in the generated.proto files of apimachinery.
var (
	envelopeKind = []uint64{1, 2} // Unknown.typeMeta.kind
	envelopeRaw  = []uint64{2}    // Unknown.raw
	// metadata is field 1 of Service, Endpoints, EndpointSlice and PartialObjectMetadata alike.
	objectRevision  = []uint64{1, 6} // metadata.resourceVersion
	optionsRevision = []uint64{2, 2} // DeleteOptions.preconditions.resourceVersion
)

// protobufCarries looks at every occurrence of the revision in the envelope's object. It keeps nothing: the
// generated decoders make an owner reference of 80 bytes out of two.
func protobufCarries(body []byte) bool {
	envelope, ok := bytes.CutPrefix(body, protobufMagic)
	if !ok {
		return false
	}
	revision := objectRevision
	visitProtobuf(envelope, envelopeKind, func(kind []byte) bool {
		if string(kind) == "DeleteOptions" {
			revision = optionsRevision
		}
		return false
	})
	return visitProtobuf(envelope, envelopeRaw, func(raw []byte) bool {
		return visitProtobuf(raw, revision, func(value []byte) bool { return isViewRevision(string(value)) })
	})
}

// visitProtobuf calls visit for each value at path, a list of field numbers, until it returns true or the message is at its
// end or malformed. It reports whether visit returned true.
func visitProtobuf(message []byte, path []uint64, visit func([]byte) bool) bool {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return false
		}
		message = message[n:]
		var size uint64
		switch tag & 7 {
		case 0: // varint
			if _, n = binary.Uvarint(message); n <= 0 {
				return false
			}
			message = message[n:]
			continue
		case 1: // 64 bits
			size = 8
		case 2: // length and bytes
			if size, n = binary.Uvarint(message); n <= 0 {
				return false
			}
			message = message[n:]
		case 5: // 32 bits
			size = 4
		default: // groups, which no message of Kubernetes has
			return false
		}
		if size > uint64(len(message)) {
			return false
		}
		value := message[:size]
		message = message[size:]
		if tag>>3 != path[0] || tag&7 != 2 {
			continue
		}
		if len(path) == 1 {
			if visit(value) {
				return true
			}
		} else if visitProtobuf(value, path[1:], visit) {
			return true
		}
	}
	return false
}
