// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// sortManagers puts the entries of managedFields in an order that does not depend on when they were written: the server
// sorts them by the second.
func sortManagers(text string) string {
	const start = `"managedFields":[`
	var all strings.Builder
	for {
		before, after, found := strings.Cut(text, start)
		all.WriteString(before)
		if !found {
			return sortYAMLManagers(all.String())
		}
		var entries []json.RawMessage
		decoder := json.NewDecoder(strings.NewReader("[" + after))
		if decoder.Decode(&entries) != nil {
			all.WriteString(start)
			text = after
			continue
		}
		slices.SortFunc(entries, func(a, b json.RawMessage) int { return strings.Compare(string(a), string(b)) })
		all.WriteString(start)
		for i, entry := range entries {
			if i > 0 {
				all.WriteByte(',')
			}
			all.Write(entry)
		}
		all.WriteByte(']')
		text = after[decoder.InputOffset()-1:]
	}
}

var yamlManagers = regexp.MustCompile(`(?m)^( *)managedFields:\n((?: *- | {2,}).*\n)+`)

func sortYAMLManagers(text string) string {
	return yamlManagers.ReplaceAllStringFunc(text, func(block string) string {
		indent := block[:strings.Index(block, "managedFields")]
		head, rest, _ := strings.Cut(block, "\n")
		var entries []string
		ended := "" // what is no longer of the block
		for line := range strings.Lines(rest) {
			switch {
			case ended != "" || !strings.HasPrefix(line, indent+"- ") && !strings.HasPrefix(line, indent+"  "):
				ended += line
			case strings.HasPrefix(line, indent+"- "):
				entries = append(entries, line)
			default:
				entries[len(entries)-1] += line
			}
		}
		slices.Sort(entries)
		return head + "\n" + strings.Join(entries, "") + ended
	})
}
