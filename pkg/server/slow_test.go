// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/grid-apiserver/grid-apiserver/pkg/watchcache"
)

// numbered is a slice that says how often it was written, with a kilobyte besides.
func numbered(n int) *discoveryv1.EndpointSlice {
	s := slice("s-1", "s", "n1")
	s.Annotations = map[string]string{"n": strconv.Itoa(n), "padding": strings.Repeat("x", 1<<10)}
	return s
}

// numberedReader reads events of a numbered slice.
type numberedReader struct {
	n        int      // of the last event
	revision string   // of the last event
	seen     []string // number@resourceVersion
}

// read reads to the end of the stream, or to the number last.
func (r *numberedReader) read(body io.Reader, last int) error {
	lines := bufio.NewReaderSize(body, 1<<14)
	for r.n < last {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("after %d: %w", r.n, err)
		}
		if err := r.take(valueOf(line, "n"), valueOf(line, "resourceVersion")); err != nil {
			return fmt.Errorf("after %d: %w: %.300s", r.n, err, line)
		}
	}
	return nil
}

func (r *numberedReader) take(n, revision string) (err error) {
	r.n, err = strconv.Atoi(n)
	r.revision = revision
	r.seen = append(r.seen, n+"@"+revision)
	return err
}

// readStore reads the changes of a store up to the number last.
func (r *numberedReader) readStore(t *testing.T, changes watch.Interface, last int) {
	t.Helper()
	for r.n < last {
		select {
		case event := <-changes.ResultChan():
			s, ok := event.Object.(*discoveryv1.EndpointSlice)
			if !ok {
				t.Fatalf("the store sends %v", event)
			}
			if err := r.take(s.Annotations["n"], s.ResourceVersion); err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatalf("the store has %d, want %d", r.n, last)
		}
	}
}

// valueOf returns the first string with a key in JSON without spaces.
func valueOf(line []byte, key string) string {
	_, after, _ := bytes.Cut(line, []byte(`"`+key+`":"`))
	value, _, _ := bytes.Cut(after, []byte(`"`))
	return string(value)
}

// follow watches until the number last, and resumes where a watch ends.
func (r *numberedReader) follow(ctx context.Context, g *grid, client *http.Client, last int) error {
	for r.n < last {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+g.address+slicesPath+"?watch=1&resourceVersion="+r.revision, nil)
		if err != nil {
			return err
		}
		request.Header.Set("Accept", asJSON)
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		err = r.read(response.Body, last)
		response.Body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// stuckStream is a watch for whose answer there is no room until it is read.
type stuckStream struct {
	conn   *tls.Conn
	framer *http2.Framer
}

func newStuckStream(t *testing.T, g *grid, revision string) *stuckStream {
	t.Helper()
	var fields bytes.Buffer
	encoder := hpack.NewEncoder(&fields)
	for _, field := range []hpack.HeaderField{
		{Name: ":method", Value: http.MethodGet}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: g.address},
		{Name: ":path", Value: slicesPath + "?watch=1&resourceVersion=" + revision},
		{Name: "accept", Value: asJSON}, {Name: "authorization", Value: "Bearer " + adminToken},
	} {
		if err := encoder.WriteField(field); err != nil {
			t.Fatal(err)
		}
	}
	conn, framer := dialWithoutRoom(t, g)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	return &stuckStream{conn, framer}
}

// waitForAnswer reads the headers of the answer: from then on the watch is open.
func (s *stuckStream) waitForAnswer() error {
	if err := s.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	for {
		frame, err := s.framer.ReadFrame()
		if err != nil {
			return err
		}
		if headers, ok := frame.(*http2.MetaHeadersFrame); ok {
			if status := headers.PseudoValue("status"); status != "200" {
				return fmt.Errorf("the watch was answered with %s", status)
			}
			return nil
		}
	}
}

// readAll makes room for the rest of the answer, and returns it when it ends.
func (s *stuckStream) readAll() (io.Reader, error) {
	const room = 1 << 30
	if err := errors.Join(s.conn.SetReadDeadline(time.Now().Add(patience)), s.framer.WriteWindowUpdate(0, room), s.framer.WriteWindowUpdate(1, room)); err != nil {
		return nil, err
	}
	var body bytes.Buffer
	for {
		frame, err := s.framer.ReadFrame()
		if err != nil {
			return nil, fmt.Errorf("after %d bytes: %w", body.Len(), err)
		}
		if data, ok := frame.(*http2.DataFrame); ok {
			body.Write(data.Data())
			if data.StreamEnded() {
				return &body, nil
			}
		}
	}
}

// TestClientThatStopsReadingDelaysNobody has one client that does not read its watch while others follow all changes. They
// reach the end while it is still stuck. When it reads again, it gets what was on its way, and then the end of its watch
// and not a gap: it can resume.
func TestClientThatStopsReadingDelaysNobody(t *testing.T) {
	t.Parallel()
	const updates, readers, last = 600, 50, 1_000_000
	u := startUpstream(t, fixture(numbered(0))...)
	g := readyGrid(t, u)
	start := decode[metav1.PartialObjectMetadataList](t, g.get(t, g.local, slicesPath, asJSON)).ResourceVersion
	stream := newStuckStream(t, g, start)
	if err := stream.waitForAnswer(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
	defer cancel()
	changes, err := g.stores[watchcache.EndpointSlices].Watch(ctx, "/endpointslices", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: start})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	var group sync.WaitGroup
	all := make([]numberedReader, readers)
	clients := []*http.Client{newHTTPClient(t, g.local), newHTTPClient(t, g.local), newHTTPClient(t, g.local)}
	for i := range all {
		group.Go(func() {
			all[i].revision = start
			if err := all[i].follow(ctx, g, clients[i%len(clients)], last); err != nil {
				t.Errorf("reader %d: %v", i, err)
			}
		})
	}
	// What the store has is what all must see. It may skip numbers: those of a time in which the server reads everything anew.
	stored := numberedReader{revision: start}
	for n := 1; len(stored.seen) < updates; n++ {
		u.put(t, numbered(n))
		if n%5 == 0 { // upstream ends a watch that a burst outruns
			stored.readStore(t, changes, n)
		}
	}
	u.put(t, numbered(last))
	stored.readStore(t, changes, last)
	group.Wait()
	for i := range all {
		if !t.Failed() && !slices.Equal(stored.seen, all[i].seen) {
			t.Fatalf("reader %d (-store +reader):\n%s", i, cmp.Diff(stored.seen, all[i].seen))
		}
	}

	body, err := stream.readAll()
	if err != nil {
		t.Fatal(err)
	}
	stuck := numberedReader{revision: start}
	if err := stuck.read(body, last); err != nil {
		t.Fatal(err)
	}
	if stuck.n == last {
		t.Error("the watch that was not read lacks nothing: it was not stuck")
	}
	if err := stuck.follow(ctx, g, clients[0], last); err != nil {
		t.Errorf("resuming after %d: %v", stuck.n, err)
	}
	if diff := cmp.Diff(stored.seen, stuck.seen); diff != "" {
		t.Errorf("the client that did not read (-store +client):\n%s", diff)
	}
}

// watchesInFlight is what the metrics tell of all servers of this process.
func watchesInFlight(t testing.TB) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var total float64
	for _, family := range families {
		if family.GetName() != "apiserver_longrunning_requests" {
			continue
		}
		for _, m := range family.GetMetric() {
			total += m.GetGauge().GetValue()
		}
	}
	return total
}

// abortWatches opens watches that their clients abort, before and after the first event. It returns how many were in
// flight in the middle, and a function that closes the connections.
func abortWatches(t *testing.T, g *grid, start string, watches int) (during float64, closeConnections func()) {
	t.Helper()
	const clients = 10
	var group sync.WaitGroup
	var all []*http.Client
	for i := range clients {
		client := newHTTPClient(t, g.local)
		all = append(all, client)
		group.Go(func() {
			for j := range watches / clients / 2 { // two each
				ctx, cancel := context.WithCancel(t.Context())
				for k, query := range []string{"?watch=1&resourceVersion=" + start, "?" + "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"} {
					request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+g.address+slicesPath+query, nil)
					if err != nil {
						t.Error(err)
						break
					}
					if j%3 == 2 { // aborted in the middle of the request
						time.AfterFunc(time.Duration(j)*100*time.Microsecond, cancel)
					}
					response, err := client.Do(request)
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
						}
						break
					}
					if k == 1 && j%3 == 0 {
						_, _ = response.Body.Read(make([]byte, 1))
					}
				}
				if i == 0 && j == watches/clients/4 {
					during = watchesInFlight(t)
				}
				cancel() // the bodies are left as they are
			}
		})
	}
	group.Wait()
	return during, func() {
		for _, client := range all {
			client.CloseIdleConnections()
		}
	}
}

// TestAbortedWatchesLeaveNothing aborts 1,000 watches, and counts goroutines and requests in flight. It does not run beside
// others, whose goroutines it would count.
func TestAbortedWatchesLeaveNothing(t *testing.T) {
	u := startUpstream(t, fixture(numbered(0))...)
	g := readyGrid(t, u)
	start := decode[metav1.PartialObjectMetadataList](t, g.get(t, g.local, slicesPath, asJSON)).ResourceVersion
	inFlight := watchesInFlight(t)

	// What starts with the first requests, and stays, is no leak.
	_, closeConnections := abortWatches(t, g, start, 100)
	lowest, looks := runtime.NumGoroutine(), 0
	eventually(t, patience, func() bool {
		closeConnections()
		if now := runtime.NumGoroutine(); now < lowest {
			lowest, looks = now, 0
		}
		looks++
		return watchesInFlight(t) <= inFlight && looks >= 100
	}, func() any {
		return fmt.Sprintf("%d goroutines, the fewest for %d looks; %v watches in flight, %v before", lowest, looks, watchesInFlight(t), inFlight)
	})

	during, closeConnections := abortWatches(t, g, start, 1_000)
	if during <= inFlight {
		t.Errorf("%v watches in flight while some were open, %v before: they are not counted", during, inFlight)
	}
	const comeAndGo = 5 // goroutines that have nothing to do with watches
	eventually(t, patience, func() bool {
		closeConnections()
		return watchesInFlight(t) <= inFlight && runtime.NumGoroutine() <= lowest+comeAndGo
	}, func() any {
		return fmt.Sprintf("%d goroutines, %d before; %v watches in flight, %v before", runtime.NumGoroutine(), lowest, watchesInFlight(t), inFlight)
	})
}

// TestManyAndLargeObjects reads 10,000 slices in all ways, and an object of a megabyte.
func TestManyAndLargeObjects(t *testing.T) {
	t.Parallel()
	const count = 10_000
	large := endpoints("large", "n1")
	large.Annotations = map[string]string{"padding": strings.Repeat("0123456789abcdef", 1<<16)}
	objects := fixture(large)
	for i := range count {
		objects = append(objects, slice(fmt.Sprintf("s-%05d", i), "s", "n1", "n3"))
	}
	g := readyGrid(t, startUpstream(t, objects...))
	client := newClient(t, g.as(asProtobuf))
	got, err := client.CoreV1().Endpoints("default").Get(t.Context(), "large", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Annotations["padding"] != large.Annotations["padding"] {
		t.Errorf("the padding of the large object has %d bytes, or others", len(got.Annotations["padding"]))
	}

	seen := 0
	check := func(name string, endpoints int) {
		if want := fmt.Sprintf("s-%05d", seen); name != want || endpoints != 1 {
			t.Fatalf("slice %d is %s with %d endpoints, want %s with 1", seen, name, endpoints, want)
		}
		seen++
	}
	for _, limit := range []int64{0, 3_000} {
		seen = 0
		for opts := (metav1.ListOptions{Limit: limit}); ; {
			list, err := client.DiscoveryV1().EndpointSlices(corev1.NamespaceAll).List(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				check(list.Items[i].Name, len(list.Items[i].Endpoints))
			}
			if opts.Continue = list.Continue; opts.Continue == "" {
				break
			}
		}
		if seen != count {
			t.Errorf("%d slices in pages of %d, want %d", seen, limit, count)
		}
	}
	yes := true
	w, err := client.DiscoveryV1().EndpointSlices(corev1.NamespaceAll).Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	seen = 0
	for event := range w.ResultChan() {
		s, ok := event.Object.(*discoveryv1.EndpointSlice)
		if !ok {
			t.Fatalf("%s with %T after %d slices", event.Type, event.Object, seen)
		}
		if s.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			break
		}
		check(s.Name, len(s.Endpoints))
	}
	if seen != count {
		t.Errorf("%d slices by WatchList, want %d", seen, count)
	}
}
