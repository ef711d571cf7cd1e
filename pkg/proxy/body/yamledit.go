// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v2"
)

// The parser does not tell where in the text a value was. So each number in the text is replaced by a marker of its own,
// and the marker that the parser finds in the place of the revision tells which number to edit. The edited text is parsed
// again, and must differ from the original in the revision alone.

// yamlNumber is a run of digits in the text that may be a whole scalar, with its marker.
type yamlNumber struct {
	at     span
	marker string
}

// findNumbers returns the runs of digits that may be a value, of at least size digits. Those in anchors, aliases and tags are
// none.
func findNumbers(data []byte, size int) []yamlNumber {
	var found []yamlNumber
	for pos := 0; pos < len(data); pos++ {
		at := span{pos, pos + leadingDigits(data[pos:])}
		if at.end == at.start {
			continue
		}
		pos = at.end // which is no digit
		if at.end-at.start < size || at.start > 0 && bytes.IndexByte(yamlBefore, data[at.start-1]) < 0 ||
			at.end < len(data) && bytes.IndexByte(yamlAfter, data[at.end]) < 0 {
			continue
		}
		found = append(found, yamlNumber{at, markerOf(at.of(data), len(found))})
	}
	return found
}

// What can be next to a scalar.
var (
	yamlBefore = []byte(" \t\r\n'\":,[{")
	yamlAfter  = []byte(" \t\r\n'\",]}")
)

// markerOf returns a number like the given one, which is not in the text as a rule. Where it is by chance or malice, the
// edited text fails its check. Leading zeros stay, because they may make it an octal number or a string.
func markerOf(number []byte, index int) string {
	zeros := len(number) - len(bytes.TrimLeft(number, "0"))
	return fmt.Sprintf("%s9%0*d", number[:zeros], max(viewRevisionDigits, len(number)-zeros)-1, index)
}

// indexOf returns which of the numbers has a marker.
func indexOf(numbers []yamlNumber, marker string) (int, bool) {
	digits := strings.TrimLeft(marker, "0")
	if len(digits) < viewRevisionDigits || digits[0] != '9' {
		return 0, false
	}
	index, err := strconv.Atoi(digits[1:])
	if err != nil || index >= len(numbers) || numbers[index].marker != marker {
		return 0, false
	}
	return index, true
}

// editYAML translates the preconditions of a request. The error is ErrNotEditable if that is not possible.
func editYAML(data []byte, revisions *translator) ([]byte, error) {
	numbers := findNumbers(data, viewRevisionDigits)
	var decoded yamlRequest
	if !parseMarked(data, numbers, &decoded) {
		return data, nil
	}
	return editYAMLNumbers(data, numbers, decoded.revisions(), revisions)
}

// editYAMLAnswer translates the revisions of an answer.
func editYAMLAnswer(data []byte, revisions *translator) ([]byte, bool) {
	numbers := findNumbers(data, 1)
	var decoded yamlAnswer
	if !parseMarked(data, numbers, &decoded) {
		return data, false
	}
	edited, err := editYAMLNumbers(data, numbers, decoded.revisions(), revisions)
	return edited, err == nil
}

// parseMarked decodes the document with its markers; false if it is malformed.
func parseMarked(data []byte, numbers []yamlNumber, into any) bool {
	marked := splice{source: data}
	for _, number := range numbers {
		marked.replace(number.at, []byte(number.marker))
	}
	return ignoreTypes(yaml.Unmarshal(marked.result(), into)) == nil
}

// yamlChange is what becomes of one revision.
type yamlChange struct {
	path     []any
	at       span
	from, to string
}

func editYAMLNumbers(data []byte, numbers []yamlNumber, found []yamlRevision, revisions *translator) ([]byte, error) {
	var changes []yamlChange
	for _, revision := range found {
		index, ok := indexOf(numbers, revision.value)
		if !ok {
			if _, hidden := revisions.of([]byte(revision.value)); hidden {
				return data, ErrNotEditable
			}
			continue
		}
		at := numbers[index].at
		from := at.of(data)
		if to, ok := revisions.of(from); ok {
			changes = append(changes, yamlChange{revision.path, at, string(from), to})
		}
	}
	if len(changes) == 0 {
		return data, nil
	}
	return applyYAML(data, changes)
}

// maxAnchored is the size up to which a document with anchors is edited. Its check decodes aliases, each into a copy: at
// maxCostlyBody that cost 176 MiB and 1.3 s.
const maxAnchored = 16 * 1024

// applyYAML makes the changes, and checks that nothing else has changed.
func applyYAML(data []byte, changes []yamlChange) ([]byte, error) {
	if len(data) > maxAnchored && hasAnchors(data) {
		return data, ErrNotEditable
	}
	slices.SortFunc(changes, func(a, b yamlChange) int { return cmp.Compare(a.at.start, b.at.start) })
	result := splice{source: data}
	for _, change := range changes {
		if change.at.start < result.copied {
			return data, ErrNotEditable // two revisions are one alias
		}
		result.replace(change.at, []byte(change.to))
	}
	edited := result.result()
	var before, after any
	if yaml.Unmarshal(data, &before) != nil {
		return data, nil //nolint:nilerr // malformed in a way that the part which was decoded before did not show
	}
	if yaml.Unmarshal(edited, &after) != nil {
		return data, ErrNotEditable
	}
	for _, change := range changes {
		if !swapYAML(before, change.path, change.from, change.to) {
			return data, ErrNotEditable
		}
	}
	if !reflect.DeepEqual(before, after) {
		return data, ErrNotEditable
	}
	return edited, nil
}

// swapYAML replaces the string at path in a decoded document, if it is there.
func swapYAML(value any, path []any, from, to string) bool {
	for i, step := range path {
		last := i == len(path)-1
		switch step := step.(type) {
		case string:
			object, ok := value.(map[any]any)
			if !ok {
				return false
			}
			if last {
				if object[step] != from {
					return false
				}
				object[step] = to
			}
			value = object[step]
		case int:
			list, ok := value.([]any)
			if !ok || step >= len(list) {
				return false
			}
			value = list[step]
		}
	}
	return true
}
