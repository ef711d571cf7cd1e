// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"iter"
	"strings"
)

// protobufMagic starts every protobuf body of Kubernetes; a runtime.Unknown follows, with the object inside.
const protobufMagic = "k8s\x00"

// Wire types of protobuf.
const (
	wireVarint = iota
	wire64
	wireBytes
	wireGroup
	wireGroupEnd
	wire32
)

// protobufField is a field in a message.
type protobufField struct {
	number int32
	wire   int
	length int  // where the length is, of wireBytes
	value  span // of wireBytes
}

// fieldAt reads the field at pos as the generated decoders of Kubernetes do: they take varints of up to ten bytes, whatever
// is in the last one, the low 32 bits of a field number, and groups in fields that they do not know.
func fieldAt(message []byte, pos int) (field protobufField, next int, ok bool) {
	tag, pos, ok := varintAt(message, pos)
	field.number, field.wire = int32(tag>>3), int(tag&7)
	if !ok || field.number <= 0 {
		return field, 0, false
	}
	if field.wire == wireGroup {
		next, ok = groupEnd(message, pos)
		return field, next, ok
	}
	field.length = pos
	if field.value, ok = valueAt(message, pos, field.wire); !ok {
		return field, 0, false
	}
	return field, field.value.end, true
}

func valueAt(message []byte, pos, wire int) (span, bool) {
	size, ok := uint64(0), true
	switch wire {
	case wireVarint:
		_, pos, ok = varintAt(message, pos)
	case wire64:
		size = 8
	case wireBytes:
		size, pos, ok = varintAt(message, pos)
	case wire32:
		size = 4
	default:
		return span{}, false
	}
	if !ok || size > uint64(len(message)-pos) {
		return span{}, false
	}
	return span{pos, pos + int(size)}, true
}

// groupEnd returns the position after a group whose first tag ends at pos.
func groupEnd(message []byte, pos int) (int, bool) {
	for depth := 1; depth > 0; {
		tag, after, ok := varintAt(message, pos)
		if !ok {
			return 0, false
		}
		pos = after
		switch wire := int(tag & 7); wire {
		case wireGroup:
			depth++
		case wireGroupEnd:
			depth--
		default:
			value, ok := valueAt(message, pos, wire)
			if !ok {
				return 0, false
			}
			pos = value.end
		}
	}
	return pos, true
}

func varintAt(message []byte, pos int) (value uint64, next int, ok bool) {
	for shift := 0; shift < 64 && pos < len(message); shift += 7 {
		b := message[pos]
		pos++
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return value, pos, true
		}
	}
	return 0, 0, false
}

// fields returns the fields of a message, up to where it is malformed, which it notes in *ok.
func fields(message []byte, ok *bool) iter.Seq[protobufField] {
	return func(yield func(protobufField) bool) {
		for pos := 0; pos < len(message); {
			field, next, good := fieldAt(message, pos)
			if !good {
				*ok = false
				return
			}
			if !yield(field) {
				return
			}
			pos = next
		}
	}
}

// rawField is Unknown.raw.
const rawField = 2

// Paths of field numbers, in the messages of apimachinery's generated.proto files. Objects of all kinds have their metadata
// in field 1, lists of all kinds their items in field 2.
var (
	objectRevision  = []int32{1, 6} // metadata.resourceVersion
	listRevision    = []int32{1, 2} // the same of a list
	optionsRevision = []int32{2, 2} // DeleteOptions.preconditions.resourceVersion
)

// envelope is what a runtime.Unknown says.
type envelope struct {
	kind string
	raw  []byte
}

func (e envelope) isList() bool { return strings.HasSuffix(e.kind, "List") }

// openEnvelope reads the envelope of a body; false if it is malformed, or has an encoding of its own.
func openEnvelope(data []byte) (envelope, bool) {
	var e envelope
	if len(data) < len(protobufMagic) || string(data[:len(protobufMagic)]) != protobufMagic {
		return e, false
	}
	message := data[len(protobufMagic):]
	ok, encoded := true, [2]bool{}
	for field := range fields(message, &ok) {
		if field.number > 4 {
			continue
		}
		if field.wire != wireBytes {
			return e, false
		}
		value := field.value.of(message)
		switch field.number {
		case 1: // typeMeta
			for inner := range fields(value, &ok) {
				if inner.number == 2 && inner.wire == wireBytes {
					e.kind = string(inner.value.of(value))
				}
			}
		case 2:
			e.raw = value
		default: // contentEncoding, contentType
			encoded[field.number-3] = len(value) > 0
		}
	}
	return e, ok && encoded == [2]bool{}
}
