// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import "encoding/binary"

// editProtobuf translates every occurrence of the precondition in the object of an envelope.
func editProtobuf(data []byte, revisions *translator) []byte {
	opened, ok := openEnvelope(data)
	if !ok {
		return data
	}
	path := objectRevision
	if isDeleteOptions(opened) {
		path = optionsRevision
	}
	edited, _ := editEnvelope(data, path, revisions)
	return edited
}

// isDeleteOptions goes by the content where no kind is given: kube-apiserver then takes the kind that the request is about.
func isDeleteOptions(opened envelope) bool {
	if opened.kind != "" {
		return opened.kind == "DeleteOptions"
	}
	ok := true
	for field := range fields(opened.raw, &ok) {
		if field.number == 1 {
			return field.wire != wireBytes // gracePeriodSeconds, or the metadata of an object
		}
	}
	return true
}

// editEnvelope translates the values at the end of path in the object of an envelope; false if it is malformed on the way.
func editEnvelope(data []byte, path []int32, revisions *translator) ([]byte, bool) {
	path = append([]int32{rawField}, path...)
	edited, changed, ok := editMessage(data[len(protobufMagic):], path, revisions)
	if !ok || !changed {
		return data, ok
	}
	return append([]byte(protobufMagic), edited...), true
}

// editMessage translates the values at the end of path, a list of field numbers, and sets the lengths around them. It does
// not modify the message. ok is false if the message is malformed on the way.
func editMessage(message []byte, path []int32, revisions *translator) (edited []byte, changed, ok bool) {
	result := splice{source: message}
	ok = true
	var length [binary.MaxVarintLen64]byte
	for field := range fields(message, &ok) {
		if field.number != path[0] {
			continue
		}
		if field.wire != wireBytes {
			return message, false, false
		}
		value, changed := field.value.of(message), false
		if len(path) > 1 {
			if value, changed, ok = editMessage(value, path[1:], revisions); !ok {
				return message, false, false
			}
		} else if replacement, replaced := revisions.of(value); replaced {
			value, changed = []byte(replacement), true
		}
		if !changed {
			continue
		}
		if len(value) != field.value.end-field.value.start {
			result.replace(span{field.length, field.value.start}, length[:binary.PutUvarint(length[:], uint64(len(value)))])
		}
		result.replace(field.value, value)
	}
	return result.result(), result.edited != nil, ok
}
