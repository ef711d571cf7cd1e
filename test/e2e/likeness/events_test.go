// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// initialEnd is in the one bookmark that a client waits for.
const initialEnd = "k8s.io/initial-events-end"

// showEvents joins the events of a watch. Whether a bookmark comes before the end is a matter of milliseconds, but for
// the one that ends the initial events.
func showEvents(events []string) string {
	var all strings.Builder
	for _, event := range events {
		if strings.Contains(event, `"BOOKMARK"`) && !strings.Contains(event, initialEnd) {
			continue
		}
		all.WriteString(event)
	}
	return all.String()
}

// showUntil reads the beginning of a watch, up to a text in it, and puts it back. If it is the last that is wanted, the
// event is read to its end, and the watch ends there.
func showUntil(response *http.Response, want string, last bool) error {
	var seen []byte
	buffer := make([]byte, 4096)
	for !bytes.Contains(seen, []byte(want)) || last && !endsWithEvent(response, seen) {
		n, err := response.Body.Read(buffer)
		seen = append(seen, buffer[:n]...)
		if err != nil && !bytes.Contains(seen, []byte(want)) {
			return fmt.Errorf("ended without %q: %w: %q", want, err, seen)
		}
		if err != nil {
			break
		}
	}
	var body io.Reader = bytes.NewReader(seen)
	if !last {
		body = io.MultiReader(body, response.Body)
	}
	response.Body = &joined{body, response.Body}
	return nil
}

func endsWithEvent(response *http.Response, seen []byte) bool {
	if isProtobuf(response.Header.Get("Content-Type")) {
		return !strings.Contains(strings.Join(protobufEvents(seen), ""), cutShort)
	}
	return bytes.HasSuffix(seen, []byte("\n"))
}

// joined reads from one and closes the other.
type joined struct {
	io.Reader
	io.Closer
}
