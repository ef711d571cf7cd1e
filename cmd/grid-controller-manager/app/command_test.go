// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	logsapi "k8s.io/component-base/logs/api/v1"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	// The command runs several times in this process.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	// It belongs to the process.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// execute runs the command and returns what it prints.
func execute(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := NewCommand(ctx)
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.Execute()
	return out.String(), err
}

func TestHelpText(t *testing.T) {
	got, err := execute(t.Context(), "--help")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "help.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("--help (-want +got), run with -update if it is meant:\n%s", diff)
	}
}

func TestArgumentsAreRefused(t *testing.T) {
	_, err := execute(t.Context(), "start")
	if err == nil || !strings.Contains(err.Error(), `"start"`) {
		t.Errorf("%v", err)
	}
}

func TestBadFlagsEndTheCommand(t *testing.T) {
	_, err := execute(t.Context(), "--controllers=x", "--concurrent-syncs=0", "--kubeconfig=/nowhere")
	for _, want := range []string{"--controllers", "--concurrent-syncs"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
