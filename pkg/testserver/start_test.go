// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone"
	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

func TestWithoutOptionsThereIsAServerAndNoView(t *testing.T) {
	t.Parallel()
	server, client := start(t, testserver.Options{})
	if server.View != nil {
		t.Error("there is a view, of no node")
	}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), newConfigMap("a", nil), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if groups, err := client.Discovery().ServerGroups(); err != nil {
		t.Error(err)
	} else {
		for _, group := range groups.Groups {
			if group.Name == "apiextensions.k8s.io" {
				t.Error("custom resources are served, though nobody asked for them")
			}
		}
	}
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: lamps.example.org
spec:
  group: example.org
  scope: Namespaced
  names: {plural: lamps, singular: lamp, kind: Lamp, listKind: LampList}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                watts: {type: integer, default: 7}
            status:
              type: object
              properties:
                lit: {type: boolean}
---
apiVersion: example.org/v1
kind: Lamp
metadata: {name: from-a-file}
spec: {}
status: {lit: true}
`

var lamps = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "lamps"}

func TestOptionsPrepareTheServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lamps.yaml"), []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	node := newNode("n1", map[string]string{"zone1": "a"})
	given := newPod("p", "n1", "10.0.0.1", map[string]string{"app": "s"})
	server, client := start(t, testserver.Options{
		Node: node, CustomResources: true, Manifests: []string{dir},
		Objects: []runtime.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "team"}, Data: map[string]string{"a": "1"}},
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.org/v1", "kind": "Lamp", "metadata": map[string]any{"name": "given", "namespace": "team"},
				"spec": map[string]any{"watts": int64(3)},
			}},
			newService("s", nil), given,
		},
	})
	if _, err := client.CoreV1().ConfigMaps("team").Get(t.Context(), "settings", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	pod, err := client.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(given.Status.PodIPs, pod.Status.PodIPs); diff != "" || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the status of the Pod: %v", pod.Status)
	}
	if given.TypeMeta != (metav1.TypeMeta{}) || given.ResourceVersion != "" || node.ResourceVersion != "" {
		t.Error("the given objects were changed")
	}
	dynamicClient, err := dynamic.NewForConfig(server.Upstream)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		namespace, name string
		want            map[string]any
	}{
		{"default", "from-a-file", map[string]any{"spec": map[string]any{"watts": int64(7)}, "status": map[string]any{"lit": true}}},
		{"team", "given", map[string]any{"spec": map[string]any{"watts": int64(3)}}},
	} {
		lamp, err := dynamicClient.Resource(lamps).Namespace(test.namespace).Get(t.Context(), test.name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		for _, field := range []string{"spec", "status"} {
			if value, ok := lamp.Object[field]; ok {
				got[field] = value
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	waitAddresses(t, newClient(t, server.View), "s", "10.0.0.1")
}

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	type unknown struct{ corev1.Pod }
	for name, test := range map[string]struct {
		options testserver.Options
		want    string
	}{
		"a file in place of the directory": {testserver.Options{DataDir: file}, file},
		"a directory below a file":         {testserver.Options{DataDir: filepath.Join(file, "data")}, file},
		"no such manifest":                 {testserver.Options{Manifests: []string{file + "s"}}, file + "s"},
		"an empty manifest":                {testserver.Options{Manifests: []string{file}}, file},
		"an object without a name":         {testserver.Options{Objects: []runtime.Object{&corev1.Pod{}}}, "object 0: a Pod without a name"},
		"an object of an unknown type":     {testserver.Options{Objects: []runtime.Object{&unknown{}}}, "apiVersion and kind"},
		"an invalid object":                {testserver.Options{Objects: []runtime.Object{newPod("p", "", "10.0.0.1", nil), newPod("BAD", "", "10.0.0.2", nil)}}, `Pod BAD`},
		"a definition without the option": {testserver.Options{Objects: []runtime.Object{&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "x"},
		}}}}, "CustomResourceDefinition x"},
		"a node without a name":        {testserver.Options{Node: &corev1.Node{}}, "creating the node"},
		"a node whose name is no name": {testserver.Options{Node: newNode("../n1", nil)}, "../n1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := testserver.Run(t.Context(), test.options)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that names %q", err, test.want)
			}
			if server != nil {
				t.Error("there is a server beside the error")
			}
		})
	}
}

func TestDataDirectoryHasOneServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start(t, testserver.Options{DataDir: dir})
	if _, err := testserver.Run(t.Context(), testserver.Options{DataDir: dir}); !errors.Is(err, standalone.ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second server: %v, want that the directory is in use", err)
	}
}

func TestDataDirectoryKeepsTheCredentialsAndNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := testserver.Options{DataDir: dir, Node: newNode("n1", nil)}
	var token, ca string
	for round := range 2 {
		server, err := testserver.Run(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{standalone.AdminKubeconfig, "view-n1.kubeconfig"} {
			config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			client := newClient(t, config)
			_, err = client.CoreV1().ConfigMaps("default").Create(t.Context(), newConfigMap(strings.ToLower(name), nil), metav1.CreateOptions{})
			if err != nil {
				t.Errorf("round %d, with %s: %v", round, name, err)
			}
		}
		if round > 0 && (server.Upstream.BearerToken != token || string(server.Upstream.CAData) != ca) {
			t.Error("the token or the certificate is another one after the restart")
		}
		token, ca = server.Upstream.BearerToken, string(server.Upstream.CAData)
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, standalone.AdminKubeconfig)); err != nil {
			t.Error("the caller's directory was removed")
		}
	}
}

func TestViewWaitsForItsNode(t *testing.T) {
	t.Parallel()
	server, client := start(t, testserver.Options{})
	impatient, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("no patience")
	context.AfterFunc(t.Context(), func() { cancel(nil) })
	result := make(chan error, 1)
	go func() {
		_, err := server.StartView(impatient, "n1")
		result <- err
	}()
	// It is never ready without the node, however far the start of the view has come.
	cancel(stopped)
	if err := <-result; err == nil || !strings.Contains(err.Error(), "n1") {
		t.Errorf("got %v, want an error that names the node", err)
	}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), newNode("n1", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	first, err := server.StartView(t.Context(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	second, err := server.StartView(t.Context(), "n1")
	if err != nil {
		t.Fatal(err)
	}
	if first.Host != second.Host {
		t.Errorf("two views of one node: %s and %s", first.Host, second.Host)
	}
	first.BearerToken = "changed"
	if third, err := server.StartView(t.Context(), "n1"); err != nil || third.BearerToken == "changed" {
		t.Errorf("the configuration is shared: %v", err)
	}
}

func TestWithoutControllersEndpointsAreTheTests(t *testing.T) {
	t.Parallel()
	_, client := start(t, testserver.Options{WithoutControllers: true, Objects: []runtime.Object{
		newService("s", nil), newPod("p", "", "10.0.0.1", map[string]string{"app": "s"}),
	}})
	if _, err := client.CoreV1().Endpoints("default").Create(t.Context(), &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	// The content of namespaces is the server's own affair.
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Namespaces().Delete(t.Context(), "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) string {
		if _, err := client.CoreV1().Namespaces().Get(ctx, "team", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return "the namespace is still there"
		}
		return ""
	})
}
