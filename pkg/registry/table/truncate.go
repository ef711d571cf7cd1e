// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"strings"
)

// maxListed is how many values kube-apiserver shows before it counts the rest.
const maxListed = 3

// Listing collects the values of one cell and shows the first three of them.
// The zero value is empty and ready to use; it is not safe for concurrent use.
type Listing struct {
	shown []string
	count int
}

// Add appends a value. value is called only for those that are shown, because
// a Service may have thousands of endpoints.
func (l *Listing) Add(value func() string) {
	if l.count < maxListed {
		l.shown = append(l.shown, value())
	}
	l.count++
}

// String returns "a,b,c + 2 more...", or empty when nothing was added.
func (l *Listing) String(empty string) string {
	text := strings.Join(l.shown, ",")
	switch {
	case l.count > maxListed:
		return fmt.Sprintf("%s + %d more...", text, l.count-maxListed)
	case text == "":
		return empty
	default:
		return text
	}
}
