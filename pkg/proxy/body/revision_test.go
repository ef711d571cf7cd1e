// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"strings"
	"testing"
)

func TestIsViewRevision(t *testing.T) {
	for value, want := range map[string]bool{
		"1000000000000000":        true,
		"1800000000000000":        true,
		"0001800000000000000":     true,
		"18446744073709551615":    true,
		"999999999999999":         false,
		"0999999999999999":        false,
		"18446744073709551616":    false,
		"99999999999999999999999": false,
		"":                        false,
		"-1800000000000000":       false,
		"+1800000000000000":       false,
		" 1800000000000000":       false,
		"1_800_000_000_000_000":   false,
		"180000000000000x":        false,
	} {
		if got := IsViewRevision(value); got != want {
			t.Errorf("%q: got %t", value, got)
		}
	}
}

func TestHasDigits(t *testing.T) {
	for before := range 40 {
		for size := range 40 {
			for _, filler := range []string{"x", "12345678901234x", "123456789012345/", ":9"} {
				for _, after := range []string{"", "x", "x123456789012345"} {
					start := strings.Repeat(filler, before)
					text := start + strings.Repeat("7", size) + after
					run := size
					for i := len(start); i > 0 && isDigit(start[i-1]); i-- {
						run++
					}
					if got, want := hasDigits([]byte(text)), run >= viewRevisionDigits; got != want {
						t.Fatalf("%q: got %t", text, got)
					}
				}
			}
		}
	}
}

func TestMediaType(t *testing.T) {
	for contentType, want := range map[string]string{
		"":                                 "",
		"application/json":                 "application/json",
		"Application/JSON; charset=utf-8":  "application/json",
		"application/json ;x":              "application/json",
		" application/json;;;":             "application/json",
		"Application/Apply-Patch+YAML;a=b": "application/apply-patch+yaml",
		"nonsense":                         "nonsense",
	} {
		if got := MediaType(contentType); got != want {
			t.Errorf("%q: got %q", contentType, got)
		}
	}
}
