// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// protobufMagic begins an object that kube-apiserver sends as protobuf.
var protobufMagic = []byte("k8s\x00")

// protobufObject shows an object field by field, in the order of the wire, without knowing its type: unknown fields and
// the order of fields have to be equal too. Lengths are left out, since revisions differ in length.
func protobufObject(body []byte) string {
	rest, ok := bytes.CutPrefix(body, protobufMagic)
	if !ok {
		return fmt.Sprintf("no magic number: %q", body)
	}
	fields, ok := protobufFields(rest, "")
	if !ok {
		return fmt.Sprintf("malformed: %q", body)
	}
	return fields
}

// cutShort begins what is left of an event that has not come as a whole.
const cutShort = "cut short: "

// protobufEvents shows the events of a watch: each has its length in four bytes before it.
func protobufEvents(body []byte) []string {
	var all []string
	for len(body) > 0 {
		if len(body) < 4 || uint64(len(body)-4) < uint64(binary.BigEndian.Uint32(body)) {
			return append(all, fmt.Sprintf("%s%q\n", cutShort, body))
		}
		size := int(binary.BigEndian.Uint32(body))
		frame := body[4 : 4+size]
		body = body[4+size:]
		fields, ok := protobufFields(bytes.TrimPrefix(frame, protobufMagic), "")
		all = append(all, fmt.Sprintf("event (well-formed: %v)\n%s", ok, fields))
	}
	return all
}

// firstTime is the smallest number that is taken for a time in seconds: later than 2020.
const firstTime = 1_577_836_800

func protobufFields(data []byte, indent string) (string, bool) {
	var all strings.Builder
	for len(data) > 0 {
		tag, size := binary.Uvarint(data)
		if size <= 0 || tag>>3 == 0 {
			return "", false
		}
		data = data[size:]
		fmt.Fprintf(&all, "%s%d ", indent, tag>>3)
		switch tag & 7 {
		case 0:
			value, size := binary.Uvarint(data)
			if size <= 0 {
				return "", false
			}
			data = data[size:]
			if value > firstTime && value < 2*firstTime {
				all.WriteString("<time>\n")
			} else {
				fmt.Fprintf(&all, "%d\n", value)
			}
		case 1, 5:
			size := map[uint64]int{1: 8, 5: 4}[tag&7]
			if len(data) < size {
				return "", false
			}
			fmt.Fprintf(&all, "%x\n", data[:size])
			data = data[size:]
		case 2:
			length, size := binary.Uvarint(data)
			if size <= 0 || length > uint64(len(data)-size) {
				return "", false
			}
			all.WriteString(protobufBytes(data[size:size+int(length)], indent))
			data = data[size+int(length):]
		default:
			return "", false
		}
	}
	return all.String(), true
}

// protobufBytes shows a string, a message or other bytes, whichever they look like.
func protobufBytes(value []byte, indent string) string {
	if inner, ok := bytes.CutPrefix(value, protobufMagic); ok {
		value = inner // an object within an event
	}
	control := func(r rune) bool { return !unicode.IsPrint(r) }
	if utf8.Valid(value) && bytes.IndexFunc(value, control) < 0 {
		return fmt.Sprintf("%q\n", value)
	}
	if fields, ok := protobufFields(value, indent+"\t"); ok {
		return "{\n" + fields + indent + "}\n"
	}
	return fmt.Sprintf("%q\n", value)
}
