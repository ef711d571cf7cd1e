// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import "bytes"

// maxOptions is the size up to which DeleteOptions are parsed in the encodings whose parsers build the whole document, here
// without waiting for other bodies. In YAML they have 200 bytes.
const maxOptions = 4 * 1024

// dryRunField is DeleteOptions.dryRun.
const dryRunField = 5

// IsDryRun reports whether a body, which is a DeleteOptions, asks for a dry run: it has a list of that name that is not
// empty. A body that cannot be read asks for nothing. Pure.
func IsDryRun(contentType string, data []byte) bool {
	encoding := encodingOf(contentType)
	switch encoding {
	case protobufEncoding:
		opened, ok := openEnvelope(data)
		return ok && isDeleteOptions(opened) && bytesAt(opened.raw, dryRunField, &ok) != nil && ok
	case jsonEncoding:
		if !bytes.Contains(data, []byte("dryRun")) && bytes.IndexByte(data, '\\') < 0 {
			return false
		}
	case yamlEncoding, cborEncoding:
		if len(data) > maxOptions {
			return false
		}
	default:
		return false
	}
	converted, ok := toJSON(encoding, data)
	if !ok {
		return false
	}
	list, _ := memberAt(converted, document(converted), "dryRun")
	for range elements(converted, list) {
		return true
	}
	return false
}
