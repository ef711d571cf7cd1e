// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

// span is a range of bytes in a document.
type span struct{ start, end int }

func (s span) of(data []byte) []byte { return data[s.start:s.end] }

// splice replaces spans of a document, given in their order, and leaves the document itself as it is.
type splice struct {
	source []byte
	edited []byte
	copied int // up to here source is in edited
}

func (s *splice) replace(at span, text []byte) {
	if s.edited == nil {
		s.edited = make([]byte, 0, len(s.source)+len(text))
	}
	s.edited = append(s.edited, s.source[s.copied:at.start]...)
	s.edited = append(s.edited, text...)
	s.copied = at.end
}

// result is the source itself if nothing was replaced.
func (s *splice) result() []byte {
	if s.edited == nil {
		return s.source
	}
	return append(s.edited, s.source[s.copied:]...)
}
