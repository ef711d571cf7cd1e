// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/grid-apiserver/grid-apiserver/internal/manifest"
)

func names(objects []*unstructured.Unstructured) (out []string) {
	for _, object := range objects {
		out = append(out, object.GetKind()+"/"+object.GetName())
	}
	return out
}

const (
	configMapA = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"
	configMapB = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n"
)

func TestDecode(t *testing.T) {
	both := []string{"ConfigMap/a", "ConfigMap/b"}
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                             {"", nil},
		"comments alone":                      {"# nothing\n---\n# here\n", nil},
		"two documents":                       {configMapA + "---\n" + configMapB, both},
		"separators around":                   {"---\n" + configMapA + "---\n---\n" + configMapB + "---\n", both},
		"a comment on the separator":          {configMapA + "--- # the second\n" + configMapB, both},
		"a document that is ended by dots":    {configMapA + "...\n---\n" + configMapB, both},
		"line ends of Windows":                {strings.ReplaceAll(configMapA+"---\n"+configMapB, "\n", "\r\n"), both},
		"JSON":                                {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, both[:1]},
		"a list":                              {`{"apiVersion":"v1","kind":"List","items":[` + jsonOf(t, configMapA) + "," + jsonOf(t, configMapB) + "]}", both},
		"a list of a kind":                    {`{"apiVersion":"v1","kind":"ConfigMapList","items":[` + jsonOf(t, configMapA) + "]}", both[:1]},
		"an empty list":                       {`{"apiVersion":"v1","kind":"List","items":[]}`, nil},
		"three dashes in the text of a field": {configMapA + "data:\n  text: |\n    ---\n    x\n", both[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Decode(strings.NewReader(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, names(objects)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func jsonOf(t *testing.T, document string) string {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestNumbersAreThoseOfAnUnstructured(t *testing.T) {
	objects, err := manifest.Decode(strings.NewReader(configMapA + "spec: {whole: 3, part: 0.5, large: 9007199254740993}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"whole": int64(3), "part": 0.5, "large": int64(9007199254740993)}
	if diff := cmp.Diff(want, objects[0].DeepCopy().Object["spec"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatIsNoObjectIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no YAML":            {configMapA + "---\n\t{", "document 2"},
		"a scalar":           {"hello", "document 1"},
		"an array":           {"- a\n- b\n", "document 1"},
		"no kind":            {"apiVersion: v1\nmetadata: {name: a}\n", "'Kind' is missing"},
		"no apiVersion":      {"kind: ConfigMap\nmetadata: {name: a}\n", "apiVersion is missing"},
		"no name":            {"apiVersion: v1\nkind: ConfigMap\n", "metadata.name"},
		"a key twice":        {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nkind: Secret\n", `"kind"`},
		"an item of no name": {`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap"}]}`, "item 0"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Decode(strings.NewReader(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v and %v, want an error that names %q", names(objects), err, test.want)
			}
		})
	}
}

func TestDecodePath(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"20-b.yml": configMapB, "10-a.yaml": configMapA, "30-c.json": jsonOf(t, configMapA),
		"kustomization.yaml": "resources: [10-a.yaml]\n", "README.md": "# not YAML: [",
	} {
		write(t, filepath.Join(dir, name), content)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.DecodePath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ConfigMap/a", "ConfigMap/b", "ConfigMap/a"}, names(objects)); diff != "" {
		t.Errorf("a folder (-want +got):\n%s", diff)
	}
	if objects, err = manifest.DecodePath(filepath.Join(dir, "20-b.yml")); err != nil || len(objects) != 1 {
		t.Errorf("a file: %v, %v", names(objects), err)
	}
	write(t, filepath.Join(dir, "40-bad.yaml"), "a: [")
	for name, path := range map[string]string{
		"40-bad.yaml: document 1": dir,
		"no such file":            filepath.Join(dir, "missing"),
		"there is no object":      filepath.Join(dir, "folder.yaml"),
	} {
		if _, err := manifest.DecodePath(path); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error that names %q", err, name)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// FuzzDecode checks that what is accepted is complete, and is the same after it
// was written and read again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(configMapA + "---\n" + configMapB))
	f.Add([]byte(configMapA + "--- # second\n" + configMapB))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"x":1.5e300}]}`))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","metadata":{"name":"a"}}]}`)) // without a kind
	f.Add([]byte("a: &x [1]\nb: *x\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		objects, err := manifest.Decode(bytes.NewReader(content))
		if err != nil {
			return
		}
		var again bytes.Buffer
		for _, object := range objects {
			if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
				t.Fatalf("not complete: %v", object.Object)
			}
			text, err := yaml.Marshal(object.DeepCopy().Object)
			if err != nil {
				t.Fatal(err)
			}
			again.WriteString("---\n")
			again.Write(text)
		}
		reread, err := manifest.Decode(&again)
		if err != nil {
			t.Fatalf("reading %q again: %v", again.String(), err)
		}
		if diff := cmp.Diff(objects, reread); diff != "" {
			t.Errorf("after writing and reading again (-want +got):\n%s", diff)
		}
	})
}
