// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

func TestKubectlShowsTheViewOfTheNode(t *testing.T) {
	service := createService(t, lab.Service(lab.DemoService, closed()))
	setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit2)
	expectReached(t, 5*time.Second, service, "node0")
	n := cluster.Nodes[0]
	own, other := n.Address.String(), cluster.Nodes[1].Address.String()
	name := lab.DemoService
	for _, test := range []struct {
		args   string
		has    []string
		hasNot []string
	}{
		{args: "get svc", has: []string{"CLUSTER-IP", "kubernetes", name, service.Spec.ClusterIP, "80/TCP"}},
		{args: "get svc -A", has: []string{"NAMESPACE", name}},
		{args: "get svc -n default " + name + " -o yaml", has: []string{"kind: Service", "topologyKeys", service.Spec.ClusterIP}},
		{args: "get svc -l no=such", hasNot: []string{name}},
		{args: "get endpoints " + name, has: []string{own + ":8080"}, hasNot: []string{other}},
		{args: "get endpoints -A", has: []string{name, own}, hasNot: []string{other}},
		{args: "get endpoints " + name + " -o yaml", has: []string{"kind: Endpoints", own}, hasNot: []string{other}},
		{args: "get endpointslices", has: []string{"ADDRESSTYPE", name + "-1", own}, hasNot: []string{other}},
		{args: "get endpointslices -A", has: []string{name + "-1", own}, hasNot: []string{other}},
		{args: "get endpointslices -l kubernetes.io/service-name=" + name, has: []string{name + "-1"}, hasNot: []string{"kubernetes"}},
		{args: "get endpointslices --field-selector metadata.name=" + name + "-1 -o name", has: []string{"endpointslice.discovery.k8s.io/" + name + "-1"}, hasNot: []string{"kubernetes"}},
		{args: "get endpointslices -n default " + name + "-1 -o yaml", has: []string{"kind: EndpointSlice", own}, hasNot: []string{other}},
		{args: "get node node0 -o wide", has: []string{"node0", own}},
		{args: "describe svc " + name, has: []string{service.Spec.ClusterIP, own + ":8080"}, hasNot: []string{other}},
	} {
		t.Run(test.args, func(t *testing.T) {
			out, err := n.Kubectl(t.Context(), strings.Fields(test.args)...)
			must(t, err)
			for _, s := range test.has {
				if !strings.Contains(out, s) {
					t.Errorf("lacks %q:\n%s", s, out)
				}
			}
			for _, s := range test.hasNot {
				if strings.Contains(out, s) {
					t.Errorf("has %q:\n%s", s, out)
				}
			}
		})
	}
	// By selector: with a name, kubectl keeps the first event of its watch to itself and with it a change made
	// after its GET, whatever the server.
	for _, watch := range []struct{ args, before, after string }{
		{"get endpointslices -w --field-selector metadata.name=" + name + "-1", own, own + "," + other},
		{"get endpoints -w --field-selector metadata.name=" + name, own + ":8080", own + ":8080," + other + ":8080"},
	} {
		t.Run(watch.args, func(t *testing.T) {
			moveToUnit(t, "node1", unit2)
			lines := startKubectl(t, n, strings.Fields(watch.args)...)
			expectLine(t, lines, 10*time.Second, watch.before+" ")
			moveToUnit(t, "node1", unit1)
			expectLine(t, lines, propagation, watch.after+" ")
		})
	}
	t.Run("get svc -w", func(t *testing.T) {
		lines := startKubectl(t, n, "get", "svc", "-w", "-o", "custom-columns=A:metadata.name,B:metadata.annotations."+lab.TopologyKeys)
		expectLine(t, lines, 10*time.Second, lab.TopologyValue)
		annotate(t, name, "null")
		expectLine(t, lines, propagation, "<none>")
	})
}

func TestKubectlWithAnAdministratorsTokenUsesTheWholeAPI(t *testing.T) {
	setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit2)
	n := cluster.Nodes[0]
	t.Cleanup(func() {
		_, err := cluster.Kubectl(context.Background(), "delete", "--ignore-not-found", "configmap/lab", "service/lab", "pod/lab")
		if err != nil {
			t.Error(err)
		}
	})
	for _, step := range []struct{ args, want string }{
		{"version", "Server Version: v1."},
		{"api-resources", "endpointslices"},
		{"explain service.spec.clusterIP", "FIELD: clusterIP"},
		{"get nodes -L zone1", "nodeunit2"},
		{"create configmap lab --from-literal=a=b", "configmap/lab created"},
		{"get configmap lab -o yaml", "a: b"},
		{"annotate configmap lab note=kept", "annotated"},
		{"create service clusterip lab --tcp=80:8080", "service/lab created"},
		{"get service lab", "80/TCP"},
		{"label service lab color=blue", "labeled"},
		{"get service -l color=blue -o name", "service/lab"},
		{"run lab --image=registry.invalid/none --restart=Never", "pod/lab created"},
		{"get pods", "Pending"},
		{"delete pod lab", "deleted"},
		{"delete service lab", "deleted"},
		{"delete configmap lab", "deleted"},
		{"auth can-i delete nodes", "yes"},
	} {
		args := append([]string{"--token=" + lab.AdminToken}, strings.Fields(step.args)...)
		try := func(ctx context.Context) error {
			out, err := n.Kubectl(ctx, args...)
			if err != nil || !strings.Contains(out, step.want) {
				return fmt.Errorf("kubectl %s: lacks %q: %w\n%s", step.args, step.want, err, out)
			}
			return nil
		}
		if strings.HasPrefix(step.args, "get ") {
			// A read right after a write may be a moment ahead of the view.
			eventually(t, 2*time.Second, step.args, try)
		} else if err := try(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if out, err := cluster.Kubectl(t.Context(), "get", "configmap,service,pod", "-o", "name"); err != nil || strings.Contains(out, "/lab") {
		t.Errorf("left behind upstream: %v\n%s", err, out)
	}
}

func TestFilteredObjectsAreNotWrittenBackTruncated(t *testing.T) {
	service := createService(t, lab.Service(lab.DemoService, closed()))
	setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit2)
	expectReached(t, 5*time.Second, service, "node0")
	n := cluster.Nodes[0]
	name := lab.DemoService
	slice := "endpointslice/" + name + "-1"
	other := cluster.Nodes[1].Address.String()
	// An editor that changes every port that it finds.
	t.Setenv("KUBE_EDITOR", "sed -i s/8080/8081/")
	for _, object := range []string{slice, "endpoints/" + name} {
		out, err := n.Kubectl(t.Context(), "--token="+lab.AdminToken, "edit", object)
		if err == nil || !strings.Contains(err.Error()+out, "node0") {
			t.Errorf("kubectl edit %s is not refused with the name of the node: %v\n%s", object, err, out)
		}
		manifest, err := n.Kubectl(t.Context(), "--token="+lab.AdminToken, "get", object, "-o", "yaml")
		must(t, err)
		file := filepath.Join(t.TempDir(), "object.yaml")
		must(t, os.WriteFile(file, []byte(manifest), 0o600))
		if out, err := n.Kubectl(t.Context(), "--token="+lab.AdminToken, "replace", "-f", file); err == nil {
			t.Errorf("kubectl replace of %s is not refused:\n%s", object, out)
		}
		_, err = n.Kubectl(t.Context(), "--token="+lab.AdminToken, "label", "--overwrite", object, "color=blue")
		must(t, err)
		upstream, err := cluster.Kubectl(t.Context(), "get", object, "-o", "yaml")
		must(t, err)
		for _, want := range []string{other, "8080", "color: blue"} {
			if !strings.Contains(upstream, want) {
				t.Errorf("%s lacks %q upstream:\n%s", object, want, upstream)
			}
		}
	}
}

func TestForbiddenRequestsAnswerAStatusWith403(t *testing.T) {
	setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit2)
	n := cluster.Nodes[0]
	local, err := n.LocalConfig()
	must(t, err)
	nobody, err := n.TokenConfig(lab.NobodyToken)
	must(t, err)
	for _, test := range []struct {
		name, path string
		nobody     bool
	}{
		{name: "local identity, pods", path: "/api/v1/pods"},
		{name: "local identity, secrets", path: "/api/v1/namespaces/kube-system/secrets"},
		{name: "token without rights, local resource", path: "/api/v1/services", nobody: true},
		{name: "token without rights, proxied resource", path: "/api/v1/pods", nobody: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := local
			if test.nobody {
				config = nobody
			}
			code, body, err := lab.Probe(t.Context(), config, test.path)
			must(t, err)
			var status metav1.Status
			if err := json.Unmarshal([]byte(body), &status); err != nil {
				t.Fatalf("%d, not a Status: %s", code, body)
			}
			if code != http.StatusForbidden || status.Kind != "Status" || status.Code != http.StatusForbidden || status.Reason != metav1.StatusReasonForbidden {
				t.Errorf("%d %s", code, body)
			}
		})
	}
	for _, args := range []string{"get pods", "get secrets -A", "delete svc kubernetes", "create configmap lab"} {
		if out, err := n.Kubectl(t.Context(), strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), "is forbidden: User") {
			t.Errorf("kubectl %s with the local identity: %v %s", args, err, out)
		}
	}
}

func TestRequestsWithoutCredentialsReachHealthOnly(t *testing.T) {
	setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit2)
	config, err := cluster.Nodes[0].TokenConfig("")
	must(t, err)
	for path, want := range map[string]int{
		"/readyz":          http.StatusOK,
		"/livez":           http.StatusOK,
		"/metrics":         http.StatusUnauthorized,
		"/api/v1/services": http.StatusUnauthorized,
		"/api/v1/pods":     http.StatusUnauthorized,
		"/version":         http.StatusUnauthorized,
	} {
		code, body, err := lab.Probe(t.Context(), config, path)
		if err != nil || code != want {
			t.Errorf("%s: %d %v, want %d: %s", path, code, err, want, body)
		}
	}
}

// startKubectl runs kubectl on a node until the end of the test and returns the lines that it prints.
func startKubectl(t *testing.T, n *lab.Node, args ...string) <-chan string {
	t.Helper()
	cmd := n.KubectlCommand(t.Context(), args...)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		// The end of the test's context has killed it.
		for range lines {
		}
		_ = cmd.Wait()
	})
	return lines
}

// expectLine waits for a line that contains want.
func expectLine(t *testing.T, lines <-chan string, timeout time.Duration, want string) {
	t.Helper()
	deadline := time.After(timeout)
	var seen []string
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatalf("ended without a line that contains %q; lines: %q", want, seen)
			}
			if strings.Contains(line, want) {
				return
			}
			seen = append(seen, line)
		case <-deadline:
			t.Fatalf("no line that contains %q within %v; lines: %q", want, timeout, seen)
		}
	}
}
