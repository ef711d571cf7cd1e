// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

// Field numbers; see protobufscan.go.
const (
	metadataField = 1
	itemsField    = 2

	statusDetailsField = 5
	detailsNameField   = 1
	detailsUIDField    = 6

	nameField              = 1
	namespaceField         = 3
	uidField               = 5
	revisionField          = 6
	deletionTimestampField = 9
	finalizersField        = 14
	listRevisionField      = 2

	specField                    = 2
	namespaceSpecFinalizersField = 1
)

func readProtobufAnswer(data []byte) (answer Answer, ok bool) {
	opened, ok := openEnvelope(data)
	if !ok {
		return Answer{}, false
	}
	answer.Kind = opened.kind
	switch {
	case opened.kind == statusKind:
		details := bytesAt(opened.raw, statusDetailsField, &ok)
		answer.Name = string(bytesAt(details, detailsNameField, &ok))
		answer.UID = string(bytesAt(details, detailsUIDField, &ok))
	case opened.isList():
		answer.ResourceVersion = string(bytesAt(bytesAt(opened.raw, metadataField, &ok), listRevisionField, &ok))
		for field := range fields(opened.raw, &ok) {
			if field.number == itemsField && field.wire == wireBytes {
				answer.Items = append(answer.Items, protobufItem(field.value.of(opened.raw), &ok))
			}
		}
	default:
		answer.Item = protobufItem(opened.raw, &ok)
		if opened.kind == namespaceKind {
			spec := bytesAt(opened.raw, specField, &ok)
			answer.Ended = answer.Ended && bytesAt(spec, namespaceSpecFinalizersField, &ok) == nil
		}
	}
	if !ok {
		return Answer{}, false
	}
	return answer, true
}

// bytesAt returns the last value of a field, nil if there is none. It notes in *ok if the message is malformed.
func bytesAt(message []byte, number int32, ok *bool) []byte {
	var value []byte
	for field := range fields(message, ok) {
		if field.number == number && field.wire == wireBytes {
			value = field.value.of(message)
		}
	}
	return value
}

func protobufItem(object []byte, ok *bool) (item Item) {
	metadata := bytesAt(object, metadataField, ok)
	deleting, waiting := false, false
	for field := range fields(metadata, ok) {
		if field.wire != wireBytes {
			continue
		}
		value := field.value.of(metadata)
		switch field.number {
		case nameField:
			item.Name = string(value)
		case namespaceField:
			item.Namespace = string(value)
		case uidField:
			item.UID = string(value)
		case revisionField:
			item.ResourceVersion = string(value)
		case deletionTimestampField:
			deleting = true
		case finalizersField:
			waiting = true
		}
	}
	item.Ended = deleting && !waiting
	return item
}

func editProtobufAnswer(data []byte, revisions *translator) ([]byte, bool) {
	opened, ok := openEnvelope(data)
	if !ok {
		return data, false
	}
	path := objectRevision
	switch {
	case opened.kind == statusKind:
		return data, true
	case opened.isList():
		path = listRevision
	}
	return editEnvelope(data, path, revisions)
}
