// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// command is one command line of kubectl, without the namespace. It is split at spaces; a word may be quoted by '.
// "{ns}" and "{node}" are filled in.
type command struct {
	args string
	exit int
	// stdin is what the command reads.
	stdin string
	// effect is what is read straight from kube-apiserver afterwards, and compared as well.
	effect string
}

// session is a series of commands in a namespace.
type session struct {
	name     string
	given    []string
	commands []command
}

// editor changes what the sessions let it edit.
const editor = "KUBE_EDITOR=sed -i s/8080/8081/;s/blue/green/"

func TestKubectlReads(t *testing.T) {
	kubectl := cluster.Programs.Path("kubectl")
	// Who comes first asks for the API groups, and fails in other words than who finds them in the cache of its side.
	runSession(t, kubectl, session{name: "first", commands: []command{{args: "get services"}}}, "")
	runSession(t, kubectl, session{name: "kubectl", commands: reading}, sharedNamespace)
}

func TestKubectlWrites(t *testing.T) {
	for _, s := range sessions {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			runSession(t, cluster.Programs.Path("kubectl"), s, "")
		})
	}
}

// runSession runs the commands on both sides at the same time and compares after each. In a namespace that is named, which
// the sides share, they run in parallel.
func runSession(t *testing.T, kubectl string, s session, shared string) {
	own := newNamespace()
	var talks [2]*conversation
	for i, at := range sides {
		namespace := own + at.id
		if shared != "" {
			namespace = shared
		}
		talks[i] = newConversation(at, namespace)
		if shared == "" {
			must(t, talks[i].give(t.Context(), s.given))
		}
	}
	for _, c := range s.commands {
		t.Run(c.args, func(t *testing.T) {
			if shared != "" {
				t.Parallel()
			}
			var answers [2]*answer
			var errs [2]error
			var wg sync.WaitGroup
			for i, talk := range talks {
				wg.Go(func() { answers[i], errs[i] = talk.kubectl(t.Context(), kubectl, c) })
			}
			wg.Wait()
			must(t, errors.Join(errs[:]...))
			compare(t, s.name+"/"+c.args, answers[0], answers[1])
		})
	}
}

// kubectl runs a command and returns what it prints and how it ends.
func (c *conversation) kubectl(ctx context.Context, path string, line command) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	replacer := strings.NewReplacer(c.values...)
	args := []string{
		"--kubeconfig=" + c.side.kubeconfig, "--cache-dir=" + filepath.Join(cluster.Dir, filepath.Base(filepath.Dir(path))+"-cache-"+c.side.id),
	}
	if !strings.Contains(line.args, "-A") && !strings.Contains(line.args, "-n ") {
		args = append(args, "--namespace="+c.namespace)
	}
	cmd := c.side.host.Command(ctx, path, append(args, lab.Words(replacer.Replace(line.args))...)...)
	// Without garbage collection it takes a tenth less CPU time.
	cmd.Env = append(os.Environ(), editor, "GOGC=off")
	cmd.Stdin = strings.NewReader(replacer.Replace(line.stdin))
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	a := &answer{code: cmd.ProcessState.ExitCode(), parts: map[string]string{
		"exit":   fmt.Sprint(cmd.ProcessState.ExitCode()),
		"stdout": c.plain(stdout.String()),
		"stderr": c.plain(stderr.String()),
	}}
	if a.code != line.exit {
		a.parts["unwanted"] = fmt.Sprintf("%s: kubectl %s: exit code %d, want %d: %.500s%.500s", c.side.title, line.args, a.code, line.exit, &stdout, &stderr)
	}
	if line.effect != "" {
		response, err := sides[0].open(ctx, c.fill(step{path: line.effect}))
		if err != nil {
			return nil, err
		}
		a.parts["effect"] = read(response, normalizer(c.namespace)).whole()
	}
	return a, nil
}

// printed are the parts of kubectl's output that differ by nature, besides chance.
var printed = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`/tmp/(LIVE|MERGED)-[0-9]+`), "$1"},
	{regexp.MustCompile(`(?m)^(---|\+\+\+) (LIVE|MERGED)(\S*)\t.*$`), "$1 $2$3"},
	{regexp.MustCompile(`\b([0-9]+(\.[0-9]+)?(ms|[smhd]))+\b`), "<age>"},
	{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]+( [+-][0-9]+)?`), "<time>"},
	{regexp.MustCompile(`\b[EWI][0-9]{4} [0-9:.]+ +[0-9]+`), "<log>"},
	{regexp.MustCompile(`(kubectl-edit-)[0-9]+`), "$1<n>"},
	// The width of a column depends on the values above.
	{regexp.MustCompile(`[ \t]+`), " "},
	{regexp.MustCompile(`-{3,}`), "---"},
}

func (c *conversation) plain(out string) string {
	out = normalizer(c.namespace)(strings.ReplaceAll(out, c.side.base, "<server>"))
	for _, p := range printed {
		out = p.pattern.ReplaceAllString(out, p.instead)
	}
	var all []string
	for line := range strings.Lines(out) {
		all = append(all, strings.TrimRight(line, " \n"))
	}
	return strings.Join(all, "\n")
}
