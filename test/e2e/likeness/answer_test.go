// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// answer is what a client sees of a response. The parts are compared one by one, by their names: "status",
// "header X", "trailer X", "body", "end" (how the body ended) and, for writes, "effect".
type answer struct {
	code  int
	body  []byte // decoded, as it came
	parts map[string]string
	// shown is the body in a form that can be compared, which takes time for one of megabytes.
	shown func() string
}

// chanceHeaders are those whose value is different for each answer.
var chanceHeaders = map[string]bool{"Audit-Id": true, "Date": true}

// read reads a response to its end and closes it.
func read(response *http.Response, normal func(string) string) *answer {
	defer response.Body.Close()
	a := &answer{code: response.StatusCode, parts: map[string]string{"status": strconv.Itoa(response.StatusCode)}}
	raw, err := io.ReadAll(response.Body)
	a.body = raw
	if err != nil {
		a.parts["end"] = err.Error()
	}
	for name, values := range response.Header {
		value := normal(strings.Join(values, "\n"))
		switch {
		case chanceHeaders[name]:
			value = "<chance>"
		case name == "Content-Length":
			// Whether a length is known depends on buffers; it has to be true.
			if response.Request.Method == http.MethodHead || value == strconv.Itoa(len(raw)) {
				continue
			}
			value = fmt.Sprintf("%s for a body of %d bytes", value, len(raw))
		}
		a.parts["header "+name] = value
	}
	for name, values := range response.Trailer {
		a.parts["trailer "+name] = strings.Join(values, "\n")
	}
	if response.Header.Get("Content-Encoding") == "gzip" {
		if a.body, err = gunzip(raw); err != nil {
			a.parts["end"] = err.Error()
		}
	}
	a.shown = func() string { return text(response.Header.Get("Content-Type"), a.body, normal) }
	return a
}

// whole is the status and the body.
func (a *answer) whole() string { return a.parts["status"] + " " + a.shown() }

// text is a body in a form that can be compared line by line.
func text(contentType string, body []byte, normal func(string) string) string {
	switch {
	case isProtobuf(contentType) && strings.Contains(contentType, "stream=watch"):
		return normal(showEvents(protobufEvents(body)))
	case isProtobuf(contentType):
		return normal(protobufObject(body))
	case bytes.HasPrefix(body, []byte(`{"type":"`)):
		return normal(showEvents(strings.SplitAfter(string(body), "\n")))
	}
	return normal(string(body))
}

func isProtobuf(contentType string) bool {
	return strings.HasPrefix(contentType, "application/vnd.kubernetes.protobuf")
}

func gunzip(data []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}
