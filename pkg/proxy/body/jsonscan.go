// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The functions of this file read JSON that json.Valid has accepted: they need no checks, no recursion and no memory. Spans of
// values begin with their first byte. encoding/json's decoder would allocate each key and string on the way.

// skipSpace returns the position of the first byte from pos that is no white space.
func skipSpace(data []byte, pos int) int {
	for pos < len(data) && (data[pos] == ' ' || data[pos] == '\n' || data[pos] == '\t' || data[pos] == '\r') {
		pos++
	}
	return pos
}

// stringEnd returns the position after the string that begins at pos.
func stringEnd(data []byte, pos int) int {
	for pos++; data[pos] != '"'; pos++ {
		if data[pos] == '\\' {
			pos++
		}
	}
	return pos + 1
}

// valueEnd returns the position after the value that begins at pos.
func valueEnd(data []byte, pos int) int {
	depth := 0
	for pos < len(data) {
		switch data[pos] {
		case '"':
			pos = stringEnd(data, pos)
		case '{', '[':
			depth++
			pos++
			continue
		case '}', ']':
			depth--
			pos++
		case ' ', '\n', '\t', '\r', ',', ':':
			pos++
			continue
		default: // a number or a word
			for pos < len(data) && !endsWord(data[pos]) {
				pos++
			}
		}
		if depth == 0 {
			break
		}
	}
	return pos
}

func endsWord(c byte) bool {
	switch c {
	case ' ', '\n', '\t', '\r', ',', '}', ']':
		return true
	}
	return false
}

// document returns the outermost value.
func document(data []byte) span {
	start := skipSpace(data, 0)
	return span{start, valueEnd(data, start)}
}

// jsonMember is one of an object. Its name is a string with quotes.
type jsonMember struct{ name, value span }

// members returns the members of an object, none if the value is something else or the zero span.
func members(data []byte, value span) iter.Seq[jsonMember] {
	return func(yield func(jsonMember) bool) {
		if value == (span{}) || data[value.start] != '{' {
			return
		}
		for pos := skipSpace(data, value.start+1); data[pos] != '}'; {
			var m jsonMember
			m.name = span{pos, stringEnd(data, pos)}
			pos = skipSpace(data, m.name.end)
			pos = skipSpace(data, pos+1) // after the colon
			m.value = span{pos, valueEnd(data, pos)}
			if !yield(m) {
				return
			}
			pos = nextItem(data, m.value.end)
		}
	}
}

// elements returns the elements of an array, none if the value is something else or the zero span.
func elements(data []byte, value span) iter.Seq[span] {
	return func(yield func(span) bool) {
		if value == (span{}) || data[value.start] != '[' {
			return
		}
		for pos := skipSpace(data, value.start+1); data[pos] != ']'; {
			element := span{pos, valueEnd(data, pos)}
			if !yield(element) {
				return
			}
			pos = nextItem(data, element.end)
		}
	}
}

// nextItem returns the position of what follows the comma, if there is one, or of the closing bracket.
func nextItem(data []byte, pos int) int {
	if pos = skipSpace(data, pos); data[pos] == ',' {
		pos = skipSpace(data, pos+1)
	}
	return pos
}

// jsonString returns the text of a string, nil if the value is something else. It is part of data if there are no escapes.
func jsonString(data []byte, value span) []byte {
	raw := value.of(data)
	if raw[0] != '"' {
		return nil
	}
	raw = raw[1 : len(raw)-1]
	for i, c := range raw {
		if c == '\\' {
			return appendUnescaped(append(make([]byte, 0, len(raw)), raw[:i]...), raw[i:])
		}
	}
	return raw
}

// isName reports whether the string at a span spells name, which is ASCII.
func isName(data []byte, at span, name string) bool {
	raw := data[at.start+1 : at.end-1]
	if len(raw) == len(name) {
		return string(raw) == name // an escape would make it shorter
	}
	if len(raw) < len(name) || len(raw) > len(`\u0000`)*len(name) {
		return false
	}
	var buffer [128]byte
	return string(appendUnescaped(buffer[:0], raw)) == name
}

// appendUnescaped appends the text of a string without its quotes.
func appendUnescaped(text, raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			text = append(text, raw[i])
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			text = append(text, '\b')
		case 'f':
			text = append(text, '\f')
		case 'n':
			text = append(text, '\n')
		case 'r':
			text = append(text, '\r')
		case 't':
			text = append(text, '\t')
		case 'u':
			r := hexRune(raw[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				low := rune(utf8.RuneError)
				if len(raw) > i+6 && raw[i+1] == '\\' && raw[i+2] == 'u' {
					low = hexRune(raw[i+3:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			text = utf8.AppendRune(text, r)
		default: // a quote, a slash or a backslash
			text = append(text, raw[i])
		}
	}
	return text
}

func hexRune(digits []byte) rune {
	value, _ := strconv.ParseUint(string(digits[:4]), 16, 16)
	return rune(value)
}
