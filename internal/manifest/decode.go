// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Decode reads YAML or JSON documents until the end of r. Empty documents are
// left out; a List stands for its items. Errors count the documents from 1.
func Decode(r io.Reader) ([]*unstructured.Unstructured, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(r))
	var objects []*unstructured.Unstructured
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		found, err := decodeDocument(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		objects = append(objects, found...)
	}
}

func decodeDocument(document []byte) ([]*unstructured.Unstructured, error) {
	content := map[string]any{}
	if err := yaml.UnmarshalStrict(document, &content); err != nil {
		return nil, err
	}
	if len(content) == 0 {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	// Through JSON, because only then the numbers are of the kinds that an Unstructured may hold.
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, err
	}
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	if !object.IsList() {
		return []*unstructured.Unstructured{object}, named(object)
	}
	list, err := object.ToList()
	if err != nil {
		return nil, err
	}
	var items []*unstructured.Unstructured
	for i := range list.Items {
		if err := named(&list.Items[i]); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		items = append(items, &list.Items[i])
	}
	return items, nil
}

func named(object *unstructured.Unstructured) error {
	switch {
	case object.GetAPIVersion() == "":
		return errors.New("apiVersion is missing")
	case object.GetKind() == "":
		return errors.New("kind is missing")
	case object.GetName() == "":
		return fmt.Errorf("a %s without metadata.name", object.GetKind())
	}
	return nil
}

// DecodePath reads a file, or the files of a folder whose names end with .yaml,
// .yml or .json, in the order of their names. Folders in it are left out.
func DecodePath(path string) ([]*unstructured.Unstructured, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	paths := []string{path}
	if info.IsDir() {
		if paths, err = manifestsIn(path); err != nil {
			return nil, err
		}
	}
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		found, err := decodeFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		objects = append(objects, found...)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s: there is no object in it", path)
	}
	return objects, nil
}

func manifestsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, entry := range entries {
		if isManifest(entry) {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	return paths, nil
}

func isManifest(entry fs.DirEntry) bool {
	// kustomization.yaml describes files and is no object of the API.
	return !entry.IsDir() && entry.Name() != "kustomization.yaml" && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name()))
}

func decodeFile(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return Decode(file)
}
