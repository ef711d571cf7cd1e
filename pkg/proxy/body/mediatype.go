// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"mime"
	"strings"
)

const (
	jsonPatchType      = "application/json-patch+json"
	mergePatchType     = "application/merge-patch+json"
	strategicPatchType = "application/strategic-merge-patch+json"
	protobufType       = "application/vnd.kubernetes.protobuf"
)

// MediaType returns the type in a Content-Type in lower case, without parameters.
func MediaType(contentType string) string {
	mediaType := contentType
	if parsed, _, err := mime.ParseMediaType(contentType); err == nil {
		mediaType = parsed
	} else if before, _, ok := strings.Cut(contentType, ";"); ok {
		// kube-apiserver cuts the type of a patch at the semicolon, whatever follows.
		mediaType = before
	}
	return strings.ToLower(strings.TrimSpace(mediaType))
}

// encoding is a way to write a document.
type encoding int

const (
	unknownEncoding encoding = iota
	jsonEncoding
	jsonPatchEncoding
	yamlEncoding
	protobufEncoding // in the envelope of Kubernetes
	cborEncoding
	opaqueEncoding // one that upstream might read and this package cannot
)

// encodingOf returns the encoding that a Content-Type stands for. None at all is JSON, as it is for kube-apiserver.
func encodingOf(contentType string) encoding {
	mediaType := MediaType(contentType)
	switch {
	case mediaType == jsonPatchType:
		return jsonPatchEncoding
	case mediaType == "", mediaType == "application/json", strings.HasSuffix(mediaType, "+json"):
		return jsonEncoding
	case mediaType == "application/yaml", strings.HasSuffix(mediaType, "+yaml"):
		return yamlEncoding
	case mediaType == protobufType:
		return protobufEncoding
	case mediaType == "application/cbor", strings.HasSuffix(mediaType, "+cbor"):
		return cborEncoding
	case strings.HasSuffix(mediaType, "protobuf"):
		return opaqueEncoding
	}
	return unknownEncoding
}
