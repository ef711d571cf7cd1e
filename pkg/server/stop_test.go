// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/grid-apiserver/grid-apiserver/pkg/server"
	"github.com/grid-apiserver/grid-apiserver/pkg/state"
)

func TestStopEndsOpenWatchesAndAHangingRequest(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, fixture(slice("s-1", "s", "n1"))...)
	g := readyGrid(t, u)
	client, admin := g.client(t), newClient(t, g.bearer(adminToken))
	var open []watch.Interface
	for range 25 {
		local, err := client.DiscoveryV1().EndpointSlices("").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		proxied, err := admin.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, local, proxied)
	}
	for _, w := range open {
		<-w.ResultChan() // it is being served
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+g.address+podsPath+"/p/log?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := newHTTPClient(t, g.bearer(adminToken)).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); err != nil || line != "first line\n" {
		t.Fatalf("%q, %v", line, err)
	}

	g.stop(t)
	ended := time.After(soon)
	for i, w := range open {
		for going := true; going; {
			select {
			case _, going = <-w.ResultChan():
			case <-ended:
				t.Fatalf("watch %d is still open", i)
			}
		}
	}
	if line, err := lines.ReadString('\n'); err == nil {
		t.Errorf("the log goes on with %q", line)
	}
}

func TestStopWhileUpstreamDoesNotAnswer(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, fixture()...)
	u.hold()
	g := startGrid(t, u)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	client := newHTTPClient(t, g.bearer(adminToken))
	go func() {
		defer close(done)
		_, _ = tryFetch(ctx, client, "https://"+g.address+podsPath, asJSON)
	}()
	eventually(t, patience, func() bool { return u.count(func(s seen) bool { return s.resource == "pods" }) == 1 },
		func() any { return "the request has not reached upstream" })
	g.stop(t)
	<-done
}

func TestStartAndStopLeaveNothingBehind(t *testing.T) {
	u := newUpstream(t, fixture(slice("s-1", "s", "n1"), endpoints("s", "n1"))...)
	before := goleak.IgnoreCurrent()
	u.start(t)
	dir := t.TempDir()
	for range 5 {
		g := startGridIn(t, u, dir, "127.0.0.1:0")
		g.waitReady(t)
		followEndpoints(t, g.client(t)).watch.Stop()
		g.stop(t)
	}
	u.stop()
	// It looks for half a second.
	var left error
	eventually(t, patience, func() bool {
		left = goleak.Find(append(processGoroutines(), before)...)
		return left == nil
	}, func() any { return left })
}

func TestConfigThatIsNotCompleteIsRefused(t *testing.T) {
	for name, config := range map[string]*server.Config{
		"nothing":     {},
		"no upstream": {NodeName: "n1"},
		"no listener": {NodeName: "n1", Upstream: (&upstream{}).config(""), DataDir: t.TempDir()},
	} {
		if _, err := config.Complete().New(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSecondServerOnADataDirectoryChangesNothing(t *testing.T) {
	u := startUpstream(t, fixture()...)
	g := readyGrid(t, u)
	contents := func() map[string]string {
		files := map[string]string{}
		err := filepath.WalkDir(g.dir, func(path string, entry fs.DirEntry, err error) error {
			// The database is written while it is open.
			if err != nil || entry.IsDir() || filepath.Ext(path) == ".db" {
				return err
			}
			content, err := os.ReadFile(path)
			files[path] = string(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	before := contents()
	listener := listen(t, "127.0.0.1:0")
	defer listener.Close()
	config := &server.Config{
		NodeName: "another", DataDir: g.dir, Upstream: u.config(serverToken),
		SecureServing: &genericapiserver.SecureServingInfo{Listener: listener},
	}
	if _, err := config.Complete().New(t.Context()); !errors.Is(err, state.ErrInUse) {
		t.Errorf("a second server: %v, want that the directory is in use", err)
	}
	if diff := cmp.Diff(before, contents()); diff != "" {
		t.Errorf("files of the running server have changed (-before +after):\n%s", diff)
	}
}
