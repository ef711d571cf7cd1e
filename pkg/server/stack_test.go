// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import "testing"

// BenchmarkStackRoom runs something deep on new goroutines, with room made for it
// before and without.
func BenchmarkStackRoom(b *testing.B) {
	for name, before := range map[string]func(){"grown as needed": func() {}, "grown at once": func() { growStack(0) }} {
		b.Run(name, func(b *testing.B) {
			done := make(chan byte)
			for b.Loop() {
				go func() {
					before()
					done <- descend(40)
				}()
				<-done
			}
		})
	}
}

//go:noinline
func descend(levels int) byte {
	var frame [200]byte
	if levels == 0 {
		return frame[0]
	}
	return descend(levels-1) + frame[levels]
}
