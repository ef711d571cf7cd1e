// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import "bytes"

var (
	revisionKey  = []byte("resourceVersion")
	binaryTag    = []byte("binary") // of base64
	utf16Little  = []byte("\xff\xfe")
	utf16Big     = []byte("\xfe\xff")
	yamlKeyEnd   = []byte(`"' :`)
	yamlValueAdd = []byte("\"' \t")
)

// mayHideDigits reports whether YAML without digits in a row may spell some all the same.
func mayHideDigits(data []byte) bool {
	return bytes.IndexByte(data, '\\') >= 0 || bytes.Contains(data, binaryTag) ||
		bytes.HasPrefix(data, utf16Little) || bytes.HasPrefix(data, utf16Big)
}

// hasAnchors reports whether YAML may have anchors, and so aliases: an ampersand with a name, not within a word.
func hasAnchors(data []byte) bool {
	for pos := 0; ; pos++ {
		next := bytes.IndexByte(data[pos:], '&')
		if next < 0 || pos+next+1 == len(data) {
			return false
		}
		pos += next
		if isNameByte(data[pos+1]) && (pos == 0 || !isNameByte(data[pos-1])) {
			return true
		}
	}
}

func isNameByte(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-'
}

// checkLargeYAML looks for a revision to translate in a document that is too large to be parsed: on a line, behind its key.
func checkLargeYAML(data []byte, revisions *translator) error {
	for {
		_, after, ok := bytes.Cut(data, revisionKey)
		if !ok {
			return nil
		}
		data = after
		key := len(after) - len(bytes.TrimLeft(after, string(yamlKeyEnd)))
		if bytes.IndexByte(after[:key], ':') < 0 {
			continue
		}
		value := bytes.TrimLeft(after[key:], string(yamlValueAdd))
		if _, ok := revisions.of(value[:leadingDigits(value)]); ok {
			return ErrNotEditable
		}
	}
}
