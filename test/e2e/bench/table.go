// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// row is a line of the table that is printed.
type row struct{ what, upstream, grid, note string }

func (b *bench) add(what, upstream, grid, note string) {
	report("%s: kube-apiserver %s, grid-apiserver %s", what, cmp.Or(upstream, "-"), grid)
	b.rows = append(b.rows, row{what, upstream, grid, note})
}

// print writes the table in markdown.
func (b *bench) print(w io.Writer) {
	fmt.Fprintln(w, "| | kube-apiserver | grid-apiserver | |")
	fmt.Fprintln(w, "|---|---|---|---|")
	for _, r := range b.rows {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.what, r.upstream, r.grid, r.note)
	}
}

// percentile returns the value below which p of 100 values are. It sorts them.
func percentile[T cmp.Ordered](values []T, p int) T {
	slices.Sort(values)
	return values[min(len(values)*p/100, len(values)-1)]
}

func median[T cmp.Ordered](values []T) T { return percentile(values, 50) }

func inMS(d time.Duration) string { return fmt.Sprintf("%.3g ms", d.Seconds()*1000) }

func ratio(part, whole time.Duration) string {
	return fmt.Sprintf("%.2f", part.Seconds()/whole.Seconds())
}
