// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/metrics/legacyregistry"
)

// follower is a client that watches and, like an informer, watches on where its
// watch has ended.
type follower struct {
	client                *http.Client
	url, encoding, accept string
	events                int          // how many are expected of a change
	arrived               chan<- error // told each time that so many have come
	seen                  int
}

func (f *follower) run(ctx context.Context, resourceVersion string) {
	for ctx.Err() == nil {
		last, err := f.follow(ctx, resourceVersion)
		if err == nil && last != nil {
			resourceVersion, err = revisionOf(last, f.encoding)
		}
		if err != nil && ctx.Err() == nil {
			f.arrived <- err
			return
		}
	}
}

// follow watches once, and returns the last event when the watch has ended.
func (f *follower) follow(ctx context.Context, resourceVersion string) (last []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+resourceVersion, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", f.accept)
	response, err := f.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	next := frames(response.Body, f.encoding)
	for {
		frame, err := next()
		if err != nil { // the server ends watches in the middle of a connection
			return last, nil //nolint:nilerr // as a client does, it watches on
		}
		last = append(last[:0], frame...)
		if f.seen++; f.seen%f.events == 0 {
			f.arrived <- nil
		}
	}
}

// frames returns what reads the next event of a watch, valid until the next call.
func frames(r io.Reader, encoding string) func() ([]byte, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	if encoding == "json" {
		return func() ([]byte, error) { return buffered.ReadSlice('\n') }
	}
	var frame []byte
	return func() ([]byte, error) {
		var size [4]byte
		if _, err := io.ReadFull(buffered, size[:]); err != nil {
			return nil, err
		}
		frame = slices.Grow(frame[:0], int(binary.BigEndian.Uint32(size[:])))[:binary.BigEndian.Uint32(size[:])]
		_, err := io.ReadFull(buffered, frame)
		return frame, err
	}
}

// revisionOf returns the resourceVersion of the object of an event; an event
// that is not of an object is an error.
func revisionOf(frame []byte, encoding string) (string, error) {
	var event metav1.WatchEvent
	var err error
	if encoding == "json" {
		err = json.Unmarshal(frame, &event)
	} else {
		err = event.Unmarshal(frame)
	}
	if err != nil {
		return "", err
	}
	obj, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(event.Object.Raw, nil, nil)
	if err != nil {
		return "", err
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", fmt.Errorf("event %s: %w", event.Type, err)
	}
	return accessor.GetResourceVersion(), nil
}

// terminatedWatchers counts the watches of slices that a watch cache has closed.
func terminatedWatchers(b *testing.B) float64 {
	b.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		b.Fatal(err)
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() != "apiserver_terminated_watchers_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			if strings.Contains(m.String(), "endpointslices") {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return total
}
