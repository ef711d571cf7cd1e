// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStreamsExec(t *testing.T) {
	n, k := setUpStreams(t)
	runPod(t, k, "exec", echoLines...)
	big := randomBytes(4 << 20)
	eachWay(t, n, true, func(t *testing.T, way streamWay) {
		ctx := streamContext(t)
		stdout, stderr, code := run(t, way.command(ctx, "exec", "exec", "--", "/bin/sh", "-c", "echo out; echo err >&2; exit 3"), nil)
		if stdout != "out\n" || !strings.Contains(stderr, "err\n") || strings.Contains(stderr, "out\n") || code != 3 {
			t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
		// cat ends only when its input does.
		stdout, stderr, code = run(t, way.command(ctx, "exec", "-i", "exec", "--", "cat"), bytes.NewReader(big))
		if code != 0 || stdout != string(big) {
			t.Errorf("exit code %d, %d of %d bytes came back, equal: %t, stderr %q", code, len(stdout), len(big), stdout == string(big), stderr)
		}
	})
}

func TestStreamsCopy(t *testing.T) {
	n, k := setUpStreams(t)
	runPod(t, k, "copy", echoLines...)
	source := filepath.Join(t.TempDir(), "tree")
	for i := range 100 {
		size := 100 * i
		if i == 50 {
			size = 5 << 20
		}
		file := filepath.Join(source, "dir"+strconv.Itoa(i%7), "file"+strconv.Itoa(i))
		must(t, os.MkdirAll(filepath.Dir(file), 0o750))
		must(t, os.WriteFile(file, randomBytes(size), 0o600))
	}
	want := checksums(t, source)
	if len(want) != 100 {
		t.Fatalf("%d files", len(want))
	}
	eachWay(t, n, true, func(t *testing.T, way streamWay) {
		ctx := streamContext(t)
		// A pod has no files of its own here: what is copied into it lands on this machine.
		dir := t.TempDir()
		inside, back := filepath.Join(dir, "inside"), filepath.Join(dir, "back")
		for _, step := range []struct{ from, to, files string }{
			{source, "copy:" + inside, inside},
			{"copy:" + inside, back, back},
		} {
			if _, stderr, code := run(t, way.command(ctx, "cp", step.from, step.to), nil); code != 0 {
				t.Fatalf("cp %s %s: exit code %d: %s", step.from, step.to, code, stderr)
			}
			if diff := cmp.Diff(want, checksums(t, step.files)); diff != "" {
				t.Errorf("cp %s %s: (-want +got)\n%s", step.from, step.to, diff)
			}
		}
	})
}

func TestStreamsAttach(t *testing.T) {
	n, k := setUpStreams(t)
	names := 0
	eachWay(t, n, true, func(t *testing.T, way streamWay) {
		names++
		name := "attach-" + strconv.Itoa(names)
		pod := runPod(t, k, name, echoLines...)
		cmd := way.command(streamContext(t), "attach", "-i", name)
		stdin, err := cmd.StdinPipe()
		must(t, err)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		lines := startLines(t, cmd)
		eventually(t, streamTime, "kubectl is attached", attached(pod))
		must(t, pod.Input("from elsewhere\n"))
		expectLine(t, lines, streamTime, "got from elsewhere")
		_, err = stdin.Write([]byte("from the client\n"))
		must(t, err)
		expectLine(t, lines, streamTime, "got from the client")
		_, err = stdin.Write([]byte("quit\n"))
		must(t, err)
		for line := range lines {
			t.Errorf("line %q", line)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the end of the process is not that of kubectl: %v: %s", err, stderr.String())
		}
		if !strings.Contains(stderr.String(), "err from the client\n") {
			t.Errorf("stderr %q", stderr.String())
		}
	})
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// checksums are those of all files below a folder.
func checksums(t *testing.T, dir string) map[string][sha256.Size]byte {
	t.Helper()
	sums := map[string][sha256.Size]byte{}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	must(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		must(t, err)
		name, err := filepath.Rel(dir, file)
		must(t, err)
		sums[name] = sha256.Sum256(content)
	}
	return sums
}
