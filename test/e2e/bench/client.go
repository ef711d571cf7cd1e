// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// client is an HTTP client with a connection of its own. It reads answers as bytes: what it costs itself is on the
// same two cores as what is measured.
type client struct {
	*http.Client
	host string
}

func newClient(config *rest.Config) (*client, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: tlsConfig, DialContext: config.Dial})
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, err
	}
	return &client{&http.Client{Transport: wrapped}, config.Host}, nil
}

// open sends a GET. An answer other than 200 is an error.
func (c *client) open(ctx context.Context, path, accept string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.host+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	// As a client of client-go asks, but nothing is unpacked here.
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return nil, fmt.Errorf("GET %s: %s: %s", path, response.Status, body)
	}
	return response, nil
}

// get sends a GET and reads the answer; it returns the time of both, and the size as it was sent.
func (c *client) get(ctx context.Context, path, accept string) (time.Duration, int64, error) {
	start := time.Now()
	response, err := c.open(ctx, path, accept)
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	size, err := io.Copy(io.Discard, response.Body)
	return time.Since(start), size, err
}

// follow watches slices from a revision until ctx ends, and calls fn with each event, encoded. Where the server ends
// the watch, it watches on from there, as an informer does.
func (c *client) follow(ctx context.Context, resourceVersion, contentType string, fn func(event []byte)) error {
	for {
		last, err := c.watch(ctx, resourceVersion, contentType, fn)
		if err == nil && last != nil {
			resourceVersion, err = revisionOf(last, contentType)
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was to end
		case err != nil:
			return err
		}
	}
}

// watch watches once, and returns the last event when the server ends the watch.
func (c *client) watch(ctx context.Context, resourceVersion, contentType string, fn func(event []byte)) ([]byte, error) {
	accept := contentType
	if contentType == runtime.ContentTypeProtobuf {
		accept += ";stream=watch"
	}
	response, err := c.open(ctx, slicesPath+"?watch=1&resourceVersion="+resourceVersion, accept)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	reader := bufio.NewReaderSize(response.Body, 1<<16)
	var event, last []byte
	for {
		if contentType == runtime.ContentTypeProtobuf {
			event, err = protobufFrame(reader, event)
		} else {
			event, err = reader.ReadSlice('\n')
		}
		if err != nil {
			return last, nil //nolint:nilerr // that is how a watch ends
		}
		last = append(last[:0], event...)
		fn(event)
	}
}

// protobufFrame reads the next event of a watch in protobuf into buffer, or a larger one.
func protobufFrame(r io.Reader, buffer []byte) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint32(size[:]))
	if cap(buffer) < length {
		buffer = make([]byte, length)
	}
	_, err := io.ReadFull(r, buffer[:length])
	return buffer[:length], err
}

// listRevision returns the present revision of the slices.
func (c *client) listRevision(ctx context.Context) (string, error) {
	response, err := c.open(ctx, slicesPath+"?limit=1", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return "", err
	}
	return list.ResourceVersion, nil
}

// revisionOf returns the resourceVersion of the object of an event.
func revisionOf(encoded []byte, contentType string) (string, error) {
	var event metav1.WatchEvent
	var err error
	if contentType == runtime.ContentTypeProtobuf {
		err = event.Unmarshal(encoded)
	} else {
		err = json.Unmarshal(encoded, &event)
	}
	if err != nil {
		return "", err
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(event.Object.Raw, nil, nil)
	if err != nil {
		return "", err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return "", fmt.Errorf("a watch has ended with %s: %s: %w", event.Type, encoded, err)
	}
	return accessor.GetResourceVersion(), nil
}
