// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of the conformance cases in docs/testing.md")

const suite = "k8s.io/apiserver/pkg/storage/testing"

// TestConformanceIsComplete checks that conformanceCases names and runs every function that the suite has, so that one
// that a later version brings is not overlooked.
func TestConformanceIsComplete(t *testing.T) {
	found, err := build.Import(suite, ".", build.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	notTests := func(name string) bool { return !strings.HasSuffix(name, "_test.go") }
	want := map[string]bool{}
	for _, file := range parseFiles(t, found.Dir, notTests) {
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && isCase(function) {
				want[function.Name.Name] = true
			}
		}
	}
	if len(want) == 0 {
		t.Fatalf("no functions found in %s", found.Dir)
	}
	named := map[string]bool{}
	for i := range conformanceCases {
		named[conformanceCases[i].function] = true
	}
	if diff := cmp.Diff(want, named); diff != "" {
		t.Errorf("functions of the suite that conformanceCases names (-suite +cases):\n%s", diff)
	}
	called := map[string]bool{}
	cases := func(name string) bool { return name == "conformance_cases_test.go" }
	for _, file := range parseFiles(t, ".", cases) {
		ast.Inspect(file, func(n ast.Node) bool {
			if name, ok := selected(n, "storagetesting"); ok && strings.HasPrefix(name, "Run") {
				called[name] = true
			}
			return true
		})
	}
	if diff := cmp.Diff(want, called); diff != "" {
		t.Errorf("functions of the suite that conformanceCases runs (-suite +cases):\n%s", diff)
	}
}

func parseFiles(t *testing.T, dir string, filter func(name string) bool) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []*ast.File
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".go" || !filter(e.Name()) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, file)
	}
	return out
}

// isCase tells whether function is one that tests call, not a benchmark or a helper.
func isCase(function *ast.FuncDecl) bool {
	if function.Recv != nil || !strings.HasPrefix(function.Name.Name, "Run") {
		return false
	}
	for _, parameter := range function.Type.Params.List {
		if pointer, ok := parameter.Type.(*ast.StarExpr); ok {
			if name, ok := selected(pointer.X, "testing"); ok && name == "B" {
				return false
			}
		}
	}
	return true
}

// selected returns the name in pkg.name.
func selected(n ast.Node, pkg string) (string, bool) {
	selector, ok := n.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	x, ok := selector.X.(*ast.Ident)
	return selector.Sel.Name, ok && x.Name == pkg
}

// TestConformanceIsDocumented keeps the table in docs/testing.md.
func TestConformanceIsDocumented(t *testing.T) {
	const begin, end = "<!-- conformance: written by make update -->\n", "<!-- conformance: end -->\n"
	path := filepath.Join("..", "..", "..", "docs", "testing.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, foundBegin := strings.Cut(string(data), begin)
	got, after, foundEnd := strings.Cut(rest, end)
	if !foundBegin || !foundEnd {
		t.Fatalf("%s has no part between %q and %q", path, begin, end)
	}
	want := conformanceTable()
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not up to date, run make update (-want +got):\n%s", path, diff)
	}
}

func conformanceTable() string {
	functions := map[string]bool{}
	var counts, skips, alterations strings.Builder
	for i := range conformanceCases {
		c := &conformanceCases[i]
		functions[c.function] = true
		writeRows(&skips, c.name(), c.skip)
		writeRows(&alterations, c.name(), c.alteration)
	}
	for _, e := range environments {
		skipped := 0
		for i := range conformanceCases {
			if conformanceCases[i].skip(e) != "" {
				skipped++
			}
		}
		fmt.Fprintf(&counts, "| %s | %d | %d |\n", e, len(conformanceCases)-skipped, skipped)
	}
	return fmt.Sprintf("\nThe suite has %d functions; some run in variants, which makes %d cases.\n\n"+
		"| | run | skipped |\n|---|---|---|\n%s\n| case | skipped in | reason |\n|---|---|---|\n%s\n"+
		"Some cases that run do not ask all of it of the store:\n\n| case | altered in | how |\n|---|---|---|\n%s\n",
		len(functions), len(conformanceCases), counts.String(), skips.String(), alterations.String())
}

// writeRows writes a row for each remark that there is about the case called name, with the environments that it is about.
func writeRows(out *strings.Builder, name string, remark func(environment) string) {
	var remarks []string
	where := map[string][]string{}
	for _, e := range environments {
		about := remark(e)
		if about == "" {
			continue
		}
		if !slices.Contains(remarks, about) {
			remarks = append(remarks, about)
		}
		where[about] = append(where[about], e.String())
	}
	for _, about := range remarks {
		fmt.Fprintf(out, "| %s | %s | %s |\n", name, strings.Join(where[about], ", "), about)
	}
}
