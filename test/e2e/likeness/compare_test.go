// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"bytes"
	"flag"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// allowance is a difference that is meant: where it applies, the pattern is replaced on both sides before they are
// compared.
type allowance struct {
	reason string
	// cases matches the names of the cases, and part those of the parts of an answer (see answer), as a whole.
	cases, part string
	// pattern matches what differs; empty: all of the part, also where one side lacks it.
	pattern, instead string
}

// needed holds the allowances without which something would have differed.
var needed struct {
	sync.Mutex
	reasons map[string]bool
}

// applies tells the allowances for a part of an answer.
func applies(name, part string) []allowance {
	return slices.DeleteFunc(slices.Clone(allowed), func(a allowance) bool {
		return !whole(a.cases, name) || !whole(a.part, part)
	})
}

func whole(pattern, text string) bool {
	return pattern == "" || regexp.MustCompile("^(?:"+pattern+")$").MatchString(text)
}

// forgive changes a part as the allowances say.
func forgive(text string, allowances []allowance) string {
	for _, a := range allowances {
		if a.pattern == "" {
			return ""
		}
		text = regexp.MustCompile(a.pattern).ReplaceAllString(text, a.instead)
	}
	return text
}

// compare compares two answers part by part.
func compare(t *testing.T, name string, direct, other *answer) {
	t.Helper()
	if !bytes.Equal(direct.body, other.body) {
		direct.parts["body"], other.parts["body"] = direct.shown(), other.shown()
	}
	keys := maps.Clone(direct.parts)
	maps.Copy(keys, other.parts)
	for _, part := range slices.Sorted(maps.Keys(keys)) {
		a, b := direct.parts[part], other.parts[part]
		if part == "unwanted" {
			if a != "" { // of the other side, the status is compared
				t.Error(a)
			}
			continue
		}
		if _, ok := direct.parts[part]; !ok {
			a = "<absent>"
		}
		if _, ok := other.parts[part]; !ok {
			b = "<absent>"
		}
		if same(name, part, a, b) {
			continue
		}
		if diff := gocmp.Diff(lines(a), lines(b)); len(diff) < maxDiff {
			t.Errorf("%s differs (-%s +%s):\n%s", part, sides[0].title, sides[1].title, diff)
		} else {
			t.Errorf("%s differs (-%s +%s):\n%s\n...", part, sides[0].title, sides[1].title, diff[:maxDiff])
		}
	}
}

// maxDiff is how much of a difference is shown.
const maxDiff = 4000

// same tells whether two texts are equal but for what is allowed.
func same(name, part, a, b string) bool {
	if a == b {
		return true
	}
	allowances := applies(name, part)
	if len(allowances) == 0 || forgive(a, allowances) != forgive(b, allowances) {
		return false
	}
	for i, one := range allowances {
		others := slices.Delete(slices.Clone(allowances), i, i+1)
		if forgive(a, others) != forgive(b, others) {
			needed.Lock()
			if needed.reasons == nil {
				needed.reasons = map[string]bool{}
			}
			needed.reasons[one.reason] = true
			needed.Unlock()
		}
	}
	return true
}

// lines splits a text where it is easy to read; a body of JSON is one line.
func lines(text string) []string {
	return strings.Split(strings.NewReplacer(`,"`, ",\n\"", `{"`, "{\n\"").Replace(text), "\n")
}

// unneeded returns the reasons of the allowances that made no difference, after all tests have run.
func unneeded() []string {
	if *through != gridAPIServer || flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" {
		return nil
	}
	var reasons []string
	for _, a := range allowed {
		if !needed.reasons[a.reason] {
			reasons = append(reasons, a.reason)
		}
	}
	return reasons
}
