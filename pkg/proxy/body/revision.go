// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"bytes"
	"strconv"
	"strings"
)

// MinViewRevision is the smallest revision that can only be one of the view. View revisions are microseconds of the
// wall clock (about 1.8e15 today, 1e15 was in September 2001); an upstream etcd that commits 10,000 times a second
// needs three thousand years to reach it.
const MinViewRevision uint64 = 1_000_000_000_000_000

// viewRevisionDigits is the length of MinViewRevision in decimal.
const viewRevisionDigits = 16

// maxRevision is the length of the largest revision in decimal.
const maxRevision = 20

// IsViewRevision reports whether a resourceVersion can only be one of the view.
func IsViewRevision(value string) bool {
	// The length is looked at first because an error of strconv holds a copy of the value.
	if len(value) < viewRevisionDigits || leadingDigits([]byte(value)) != len(value) {
		return false
	}
	revision, err := strconv.ParseUint(value, 10, 64)
	return err == nil && revision >= MinViewRevision
}

// translator decides what becomes of a value that stands where a revision does.
type translator struct {
	translate func(string) (string, bool)
	viewOnly  bool // leaves all but revisions of the view alone

	// The last value and what became of it: a body can repeat one very often.
	value, replacement string
	ok                 bool
}

// of returns the replacement of value, false if it stays.
func (t *translator) of(value []byte) (string, bool) {
	if t.viewOnly && len(value) < viewRevisionDigits || !t.viewOnly && len(value) > maxRevision {
		return "", false
	}
	if t.value == "" || t.value != string(value) {
		t.value = string(value)
		t.replacement, t.ok = t.decide(t.value)
	}
	return t.replacement, t.ok
}

func (t *translator) decide(value string) (string, bool) {
	if value == "" {
		return "", false
	}
	if t.viewOnly {
		if !IsViewRevision(value) {
			return "", false
		}
		value = strings.TrimLeft(value, "0")
	}
	replacement, ok := t.translate(value)
	return replacement, ok && replacement != value
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func leadingDigits(text []byte) int {
	n := 0
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return n
}

// hasDigits reports whether data has as many ASCII digits in a row as a revision of the view.
func hasDigits(data []byte) bool {
	// Such a run covers one of every viewRevisionDigits positions, so the others are looked at only around a digit there.
	for i := viewRevisionDigits - 1; i < len(data); i += viewRevisionDigits {
		if !isDigit(data[i]) {
			continue
		}
		start := i
		for start > 0 && i-start < viewRevisionDigits && isDigit(data[start-1]) {
			start--
		}
		if leadingDigits(data[start:min(len(data), start+viewRevisionDigits)]) == viewRevisionDigits {
			return true
		}
	}
	return false
}

// escapedDigit is how JSON may write a digit (U+0030 to U+0039) but for the last character.
var escapedDigit = []byte(`\u003`)

func hasEscapedDigit(data []byte) bool {
	for {
		_, after, ok := bytes.Cut(data, escapedDigit)
		if !ok {
			return false
		}
		if len(after) > 0 && isDigit(after[0]) {
			return true
		}
		data = after
	}
}
