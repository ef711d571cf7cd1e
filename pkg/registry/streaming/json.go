// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package streaming

import (
	"bytes"
	"encoding/json"
	"io"
)

// indent is that of json.MarshalIndent in the serializers of k8s.io/apimachinery.
const indent = "  "

// encodeIndentedJSON writes what json.MarshalIndent does.
func encodeIndentedJSON(c collection, w io.Writer) error {
	rest, err := json.MarshalIndent(c.rest, "", indent)
	if err != nil {
		return err
	}
	beginning := append(bytes.TrimSuffix(rest, []byte("\n}")), ",\n"+indent+`"`+itemsField+`": [`...)
	if err := writeBeginning(w, beginning); err != nil {
		return err
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetIndent(indent+indent, indent)
	before := "\n" + indent + indent
	for _, item := range c.items {
		buffer.Reset()
		buffer.WriteString(before)
		if err := encoder.Encode(item); err != nil {
			return err
		}
		buffer.Truncate(buffer.Len() - 1) // the newline of Encode
		if _, err := w.Write(buffer.Bytes()); err != nil {
			return err
		}
		before = ",\n" + indent + indent
	}
	_, err = io.WriteString(w, "\n"+indent+"]\n}")
	return err
}

// writeBeginning writes one byte alone. The response writer of k8s.io/apiserver
// decides by the first write whether the answer is large enough to be compressed,
// unless that has four bytes at most: then it waits for more.
func writeBeginning(w io.Writer, beginning []byte) error {
	for _, part := range [][]byte{beginning[:1], beginning[1:]} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
