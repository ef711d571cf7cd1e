// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"regexp"
	"strings"
)

// chance are the parts of an answer that differ by nature, in JSON, YAML, the text of protobuf and what kubectl prints.
var chance = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"},
	{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z`), "<time>"},
	{regexp.MustCompile(`\b[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]+ ([+-][0-9]{4}|GMT)`), "<time>"},
	// A revision is never empty nor 0 by chance.
	{regexp.MustCompile(`(\\*"resourceVersion\\*": ?\\*")[1-9][0-9]*(\\*")`), "${1}<revision>${2}"}, // also in JSON within JSON
	{regexp.MustCompile(`(resourceVersion: ")[1-9][0-9]*"`), "${1}<revision>\""},
	{regexp.MustCompile(`(?m)^(\t+[0-9]+ )"[0-9]{1,16}"$`), "${1}\"<revision>\""}, // a string of digits in protobuf
	{regexp.MustCompile(`("continue": ?")[^"]+"`), "${1}<token>\""},
	{regexp.MustCompile(`(Too large resource version: )[0-9]+(, current: )[0-9]+`), "${1}<revision>${2}<revision>"},
	{regexp.MustCompile(`(too old resource version: [0-9]+ \()[0-9]+`), "${1}<revision>"},
	{regexp.MustCompile(`(ResourceVersion in the precondition \()[0-9]+(\) does not match the ResourceVersion in record \()[0-9]+`), "${1}<revision>${2}<revision>"},
	{regexp.MustCompile(`\b10\.9[69]\.[0-9]+\.[0-9]+\b`), "<ClusterIP>"},
	{regexp.MustCompile(`\b3[0-2][0-9]{3}\b`), "<NodePort>"},
	{regexp.MustCompile(`"([0-9]+[smhd])+"`), "\"<age>\""},           // a cell of a table
	{regexp.MustCompile(`(?m)^( *- )([0-9]+[smhd])+$`), "${1}<age>"}, // the same in YAML
}

// normalizer returns what makes the answers of one side comparable with those of the other.
func normalizer(namespace string) func(string) string {
	return func(text string) string {
		text = strings.ReplaceAll(text, namespace, "<ns>")
		for _, c := range chance {
			text = c.pattern.ReplaceAllString(text, c.instead)
		}
		return sortManagers(text)
	}
}
