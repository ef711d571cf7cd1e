// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/grid-apiserver/grid-apiserver/pkg/server"
)

var listMemory = flag.Bool("listmemory", false, "measure what LISTs add to the memory of a server in a process of its own (Linux)")

const (
	asMetadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	asYAML     = "application/yaml"
	// The environment of the process that TestServerOfItsOwn serves in.
	upstreamVariable  = "GRID_TEST_UPSTREAM"
	directoryVariable = "GRID_TEST_DATA_DIR"
)

// wideOpen is the large cluster without a Service that is closed over its unit:
// its LIST of slices is the largest answer that a server of that size has.
func wideOpen() []object {
	all := []object{benchNode(0, 0)}
	for i := range large.services {
		all = append(all, large.slice(i, 0))
	}
	return all
}

// TestPeakMemoryOfLists prints a table and asserts nothing: resident memory is up
// to the garbage collector and the kernel. docs/performance.md has the results;
// TestCollectionsAreWrittenPieceByPiece of pkg/registry/install keeps them.
func TestPeakMemoryOfLists(t *testing.T) {
	if !*listMemory {
		t.Skip("it measures; -listmemory switches it on")
	}
	u := startUpstream(t, wideOpen()...)
	t.Log("\n| answer | clients | bytes | resident before | peak | added |\n|---|---:|---:|---:|---:|---:|")
	for _, c := range []struct{ name, query, accept, compression string }{
		{"JSON", "", asJSON, "identity"},
		{"JSON, gzip", "", asJSON, "gzip"},
		{"protobuf", "", asProtobuf, "identity"},
		{"protobuf, gzip", "", asProtobuf, "gzip"},
		{"metadata, JSON", "", asMetadata, "identity"},
		{"Table", "", asTable, "identity"},
		{"Table, gzip", "", asTable, "gzip"},
		{"Table with whole objects", "?includeObject=Object", asTable, "identity"},
		{"Table, limit 500", "?limit=500", asTable, "gzip"},
		{"JSON, indented (curl)", "?pretty=1", asJSON, "identity"},
		{"YAML", "", asYAML, "identity"},
	} {
		for _, clients := range []int{1, 8} {
			if c.accept == asYAML && clients > 1 {
				continue // two cores need longer than the request may take
			}
			p := startProcess(t, u)
			before := p.settle(t)
			size := p.list(t, clients, slicesPath+c.query, c.accept, c.compression)
			peak := p.status(t, "VmHWM")
			t.Logf("\n| %s | %d | %.1f MB | %d MiB | %d MiB | %d MiB |", c.name, clients, float64(size)/1e6, before>>10, peak>>10, (peak-before)>>10)
			p.end(t)
		}
	}
}

// process is a server in a process of its own.
type process struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Scanner
	address string
	local   *rest.Config
}

// startProcess starts the test binary once more, as a server that follows u.
func startProcess(t *testing.T, u *upstream) *process {
	t.Helper()
	dir := t.TempDir()
	ca := filepath.Join(dir, "upstream.crt")
	if err := os.WriteFile(ca, u.ca, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{command: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServerOfItsOwn$")}
	p.command.Env = append(os.Environ(), upstreamVariable+"="+u.address, directoryVariable+"="+dir)
	p.command.Stderr = os.Stderr
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	p.stdout = bufio.NewScanner(stdout)
	p.address = p.answer(t)
	if p.local, err = clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kube-proxy.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	return p
}

// answer returns the next line that the process prints for its parent.
func (p *process) answer(t *testing.T) string {
	t.Helper()
	for p.stdout.Scan() {
		if line, ok := strings.CutPrefix(p.stdout.Text(), "grid: "); ok {
			return line
		}
	}
	t.Fatal("the process has ended")
	return ""
}

// settle has the process give its garbage back, and returns its resident memory
// in KiB, from which its peak is counted.
func (p *process) settle(t *testing.T) int {
	t.Helper()
	if _, err := io.WriteString(p.stdin, "\n"); err != nil {
		t.Fatal(err)
	}
	p.answer(t)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.command.Process.Pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	return p.status(t, "VmRSS")
}

// status returns a field of the kernel's status of the process, in KiB.
func (p *process) status(t *testing.T, field string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			n, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s in %s", field, text)
	return 0
}

// list sends the same LIST from a number of clients at once, and returns the size
// of the answer.
func (p *process) list(t *testing.T, clients int, path, accept, compression string) int64 {
	t.Helper()
	sizes, errs := make([]int64, clients), make([]error, clients)
	var group sync.WaitGroup
	for i := range clients {
		client := newHTTPClient(t, p.local)
		group.Go(func() { sizes[i], errs[i] = readAway(t, client, "https://"+p.address+path, accept, compression) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return sizes[0]
}

// readAway sends a GET and returns how many bytes came, as they came.
func readAway(t testing.TB, client *http.Client, url, accept, compression string) (int64, error) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Accept-Encoding", compression)
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return io.Copy(io.Discard, response.Body)
}

// end kills the process. It would end by itself with its input, but not before it
// has complained of connections to an upstream that is still there.
func (p *process) end(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.command.Wait()
}

// TestServerOfItsOwn is no test but the process that TestPeakMemoryOfLists starts.
// It serves until its input ends, and gives memory back at each line of it.
func TestServerOfItsOwn(t *testing.T) {
	address, dir := os.Getenv(upstreamVariable), os.Getenv(directoryVariable)
	if address == "" {
		t.Skip("it is started by TestPeakMemoryOfLists")
	}
	ca, err := os.ReadFile(filepath.Join(dir, "upstream.crt"))
	if err != nil {
		t.Fatal(err)
	}
	g := startConfig(t, &server.Config{NodeName: "n1", DataDir: dir, Upstream: (&upstream{address: address, ca: ca}).config(serverToken)}, "127.0.0.1:0")
	g.waitReady(t)
	_, _ = fmt.Fprintln(os.Stdout, "\ngrid: "+g.address)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		debug.FreeOSMemory()
		_, _ = fmt.Fprintln(os.Stdout, "\ngrid: settled")
	}
}
