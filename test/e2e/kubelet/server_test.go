// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
)

// thisMachine is a Host.
type thisMachine struct{ net.Dialer }

func (*thisMachine) Command(ctx context.Context, path string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, path, args...)
}

func (m *thisMachine) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return m.DialContext(ctx, network, address)
}

// serve serves one pod, default/pod/main, that answers each line until "quit".
func serve(t *testing.T) (address string, pod *Pod) {
	t.Helper()
	s := New(&thisMachine{}, t.TempDir())
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	t.Cleanup(s.Close)
	pod, err := s.Run("default", "pod", "main", "/bin/sh", "-c", `while read -r line; do [ "$line" = quit ] && exit; echo "got $line"; done`)
	if err != nil {
		t.Fatal(err)
	}
	return front.URL, pod
}

func stream(t *testing.T, address, path string, query url.Values, options remotecommand.StreamOptions) error {
	t.Helper()
	target, err := url.Parse(address + path + "/default/pod/main?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{Host: address}, http.MethodPost, target)
	if err != nil {
		t.Fatal(err)
	}
	return executor.StreamWithContext(t.Context(), options)
}

func TestExec(t *testing.T) {
	address, _ := serve(t)
	for _, test := range []struct {
		name, script, in, out, errOut string
		tty                           bool
		code                          int
	}{
		{name: "streams apart", script: "echo out; echo err >&2", out: "out\n", errOut: "err\n"},
		{name: "exit code", script: "exit 3", code: 3},
		{name: "end of the input", script: "cat; echo end", in: "abc", out: "abcend\n"},
		{name: "command that reads no input", script: "echo out", in: "abc", out: "out\n"},
		{name: "terminal", script: "test -t 0 && echo out; exit 4", tty: true, out: "out\r\n", code: 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			query := url.Values{"command": {"/bin/sh", "-c", test.script}, "output": {"1"}}
			var out, errOut bytes.Buffer
			options := remotecommand.StreamOptions{Stdout: &out, Tty: test.tty}
			if test.tty {
				query.Set("tty", "1")
			} else {
				query.Set("error", "1")
				options.Stderr = &errOut
			}
			if test.in != "" {
				query.Set("input", "1")
				options.Stdin = strings.NewReader(test.in)
			}
			err := stream(t, address, "/exec", query, options)
			code := 0
			var exit utilexec.CodeExitError
			if errors.As(err, &exit) {
				code = exit.Code
			} else if err != nil {
				t.Error(err)
			}
			if code != test.code || out.String() != test.out || errOut.String() != test.errOut {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, out.String(), errOut.String())
			}
		})
	}
}

func TestAttach(t *testing.T) {
	address, _ := serve(t)
	var out bytes.Buffer
	err := stream(t, address, "/attach", url.Values{"input": {"1"}, "output": {"1"}},
		remotecommand.StreamOptions{Stdin: strings.NewReader("one\ntwo\nquit\n"), Stdout: &out})
	if err != nil || out.String() != "got one\ngot two\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestLogs(t *testing.T) {
	address, pod := serve(t)
	get := func(query string) io.ReadCloser {
		response, err := http.Get(address + "/containerLogs/default/pod/main" + query) //nolint:noctx // it ends with the pod
		if err != nil {
			t.Fatal(err)
		}
		return response.Body
	}
	follow := get("?follow=true")
	defer follow.Close()
	if err := pod.Input("one\ntwo\nquit\n"); err != nil {
		t.Fatal(err)
	}
	if all, err := io.ReadAll(follow); err != nil || string(all) != "got one\ngot two\n" {
		t.Errorf("followed to the end: %q %v", all, err)
	}
	<-pod.Done()
	for query, want := range map[string]string{
		"":                         "got one\ngot two\n",
		"?tailLines=0":             "",
		"?tailLines=1":             "got two\n",
		"?tailLines=2&follow=true": "got one\ngot two\n",
		"?tailLines=9":             "got one\ngot two\n",
	} {
		body := get(query)
		if got, err := io.ReadAll(body); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", query, got, err)
		}
		_ = body.Close()
	}
}

func TestPortForwardEndsEachDirectionByItself(t *testing.T) {
	address, _ := serve(t)
	listener, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // closed below
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		defer connection.Close()
		all, _ := io.ReadAll(connection)
		_, _ = connection.Write(append(all, "end"...))
	}()
	transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{Host: address})
	if err != nil {
		t.Fatal(err)
	}
	target, _ := url.Parse(address + "/portForward/default/pod")
	stop, ready := make(chan struct{}), make(chan struct{})
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	forwarder, err := portforward.NewOnAddresses(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target),
		[]string{"127.0.0.1"}, []string{"0:" + port}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	defer func() { close(stop); <-ended }()
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	connection, err := net.DialTCP("tcp4", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(ports[0].Local)})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = connection.Write([]byte("sent "))
	_ = connection.CloseWrite()
	if got, err := io.ReadAll(connection); err != nil || string(got) != "sent end" {
		t.Errorf("%q %v", got, err)
	}
}

func TestUnknownPodsAndContainers(t *testing.T) {
	address, _ := serve(t)
	for _, path := range []string{"/exec/default/none/main?output=1&command=ls", "/attach/default/pod/none?output=1", "/portForward/other/pod", "/containerLogs/default/pod/none"} {
		response, err := http.Get(address + path) //nolint:noctx // answered at once
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, response.Status)
		}
	}
}
