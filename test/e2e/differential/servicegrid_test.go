// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

func grid(name, metadata, spec string) string {
	return `{apiVersion: superedge.io/v1, kind: ServiceGrid, metadata: {name: ` + name + metadata + `}, spec: {` + spec + `}}`
}

const gridSpec = `gridUniqKey: zone1, template: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}`

// TestServiceGrids compares grid-controller-manager in a real cluster with the same controller within standalone.
func TestServiceGrids(t *testing.T) {
	runScenarios(t, []scenario{
		{"life of a ServiceGrid", []step{
			{name: "created", do: func(w *world) {
				onePod(w)
				w.create(grid("demo", ", labels: {team: edge}, annotations: {note: x, topologyKeys: mine}", gridSpec))
			}},
			{name: "a port and the type change", do: func(w *world) {
				w.patch("ServiceGrid", "demo", `{spec: {template: {type: NodePort, ports: [{name: http, port: 81, targetPort: 8080}, {name: https, port: 443}]}}}`)
			}},
			{name: "the selector changes", do: func(w *world) { w.patch("ServiceGrid", "demo", `{spec: {template: {selector: {app: other}}}}`) }},
			{name: "a label goes, another one comes", do: func(w *world) {
				w.patch("ServiceGrid", "demo", `{metadata: {labels: {team: null, color: blue}, annotations: {note: z}}}`)
			}},
			{name: "the key changes", do: func(w *world) {
				w.patch("ServiceGrid", "demo", `{spec: {gridUniqKey: topology.kubernetes.io/zone}}`)
			}},
			{name: "somebody edits the Service", do: func(w *world) {
				w.strategic("Service", "demo-svc", `{metadata: {labels: {theirs: kept}, annotations: {topologyKeys: theirs}}, spec: {selector: {theirs: gone}}}`)
			}},
			{name: "somebody deletes the Service", do: func(w *world) { w.delete("Service", "demo-svc") }},
			{name: "to LoadBalancer", do: func(w *world) { w.patch("ServiceGrid", "demo", `{spec: {template: {type: LoadBalancer}}}`) }},
			{name: "to ClusterIP", do: func(w *world) {
				w.patch("ServiceGrid", "demo", `{spec: {template: {type: null, ports: [{name: http, port: 80}]}}}`)
			}},
			{name: "a template that the server refuses", do: func(w *world) {
				w.patch("ServiceGrid", "demo", `{spec: {template: {ports: [{name: A_B, port: 80}]}}}`)
			}},
			{name: "a good one again", do: func(w *world) {
				w.patch("ServiceGrid", "demo", `{spec: {template: {ports: [{name: http, port: 80}]}}}`)
			}},
			{name: "deleted", do: func(w *world) { w.delete("ServiceGrid", "demo") }},
		}},
		{"conflicts and bad keys", []step{
			{name: "the Service is somebody else's", do: func(w *world) {
				w.create(serviceNamed("demo-svc", ""), grid("demo", "", gridSpec))
			}},
			{name: "it goes", do: func(w *world) { w.delete("Service", "demo-svc") }},
			{name: "keys that are none", refused: true, do: func(w *world) {
				w.create(
					grid("bad", "", `gridUniqKey: "", template: {ports: [{port: 80}]}`),
					grid("bad", "", `gridUniqKey: "a b", template: {ports: [{port: 80}]}`),
					grid("bad", "", `template: {ports: [{port: 80}]}`),
				)
			}},
			{name: "orphaned", do: func(w *world) {
				orphan := metav1.DeletePropagationOrphan
				err := w.resourceOf("ServiceGrid", w.namespace).Delete(w.ctx, "demo", metav1.DeleteOptions{PropagationPolicy: &orphan})
				w.record("delete", nil, "ServiceGrid", "demo", err)
			}},
			{name: "adopted again", do: func(w *world) { w.create(grid("demo", "", gridSpec)) }},
		}},
	})
}

// TestGridControllerManagers is about two of them in a real cluster.
func TestGridControllerManagers(t *testing.T) {
	w := &world{side: reference, ctx: t.Context(), namespace: "grid-managers", names: newNames()}
	t.Cleanup(func() {
		if err := w.remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w.create(`{apiVersion: v1, kind: Namespace, metadata: {name: grid-managers}}`, grid("demo", "", gridSpec))
	if err := errors.Join(w.refused...); err != nil {
		t.Fatal(err)
	}
	expectPorts(t, w, 80)
	second, err := reference.grids.Start(t.Context(), "grid-controller-manager-second", 51009, "--resync-period=1s")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Kill()

	t.Run("another one takes over when the leader is killed", func(t *testing.T) {
		reference.gridManager.Kill()
		w.patch("ServiceGrid", "demo", `{spec: {template: {ports: [{name: http, port: 81, targetPort: 8080}]}}}`)
		expectPorts(t, w, 81)
	})
	t.Run("nothing is written while nothing changes", func(t *testing.T) {
		// The garbage collector is still busy with what the scenarios left.
		err := lab.WaitFor(t.Context(), time.Minute, "no namespace is being deleted", func(ctx context.Context) error {
			return noneTerminating(ctx, reference)
		})
		if err != nil {
			t.Fatal(err)
		}
		syncs := func(ctx context.Context) int { return reference.grids.Syncs(ctx, 51009) }
		before, first := writes(t), syncs(t.Context())
		err = lab.WaitFor(t.Context(), 30*time.Second, "it has looked at the ServiceGrid again five times", func(ctx context.Context) error {
			if n := syncs(ctx) - first; n < 5 {
				return fmt.Errorf("%d times", n)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if after := writes(t); after != before {
			t.Errorf("writes before: %s, after: %s", before, after)
		}
	})
	t.Run("a leader that ends gives its lease back", func(t *testing.T) {
		if took, graceful := second.Stop(5 * time.Second); !graceful {
			t.Errorf("did not end in %v", took)
		}
		lease, err := reference.lab.Cloud.Kubernetes.CoordinationV1().Leases(metav1.NamespaceSystem).Get(t.Context(), lab.GridManager, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
			t.Errorf("the lease is still held by %s", *holder)
		}
		if reference.gridManager, err = reference.grids.Start(t.Context(), "grid-controller-manager-third", 51008); err != nil {
			t.Fatal(err)
		}
		w.patch("ServiceGrid", "demo", `{spec: {template: {ports: [{name: http, port: 82, targetPort: 8080}]}}}`)
		expectPorts(t, w, 82)
	})
	t.Run("the Service goes with its ServiceGrid", func(t *testing.T) {
		w.delete("ServiceGrid", "demo")
		err := lab.WaitFor(t.Context(), 30*time.Second, "the Service is gone", func(ctx context.Context) error {
			_, err := w.resourceOf("Service", w.namespace).Get(ctx, "demo-svc", metav1.GetOptions{})
			if err == nil {
				return errors.New("it is there")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func noneTerminating(ctx context.Context, s *side) error {
	list, err := s.resourceOf("Namespace", "").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, namespace := range list.Items {
		if namespace.GetDeletionTimestamp() != nil {
			return fmt.Errorf("%s is", namespace.GetName())
		}
	}
	return nil
}

// expectPorts waits until the Service of the grid has exactly one port, and the address that it had before.
func expectPorts(t *testing.T, w *world, want int64) {
	t.Helper()
	err := lab.WaitFor(t.Context(), 30*time.Second, fmt.Sprintf("the Service has port %d", want), func(ctx context.Context) error {
		service, err := w.resourceOf("Service", w.namespace).Get(ctx, "demo-svc", metav1.GetOptions{})
		if err != nil {
			return err
		}
		object := w.names.object(service)
		ports, _, _ := unstructured.NestedSlice(object, "spec", "ports")
		if ip, _, _ := unstructured.NestedString(object, "spec", "clusterIP"); ip != "<ClusterIP of demo-svc IPv4 1>" {
			t.Errorf("the ClusterIP changed: %s", ip)
		}
		if len(ports) != 1 || ports[0].(map[string]any)["port"] != want {
			return fmt.Errorf("ports: %v", ports)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var mutating = regexp.MustCompile(`(?m)^apiserver_request_total\{.*resource="(services|servicegrids|events)",scope="resource",.*verb="(POST|PUT|PATCH|APPLY|DELETE)".*\} .*$`)

// writes returns kube-apiserver's counters of the writes that a ServiceGrid controller could make. Those of whole
// namespaces are not its own.
func writes(t *testing.T) string {
	t.Helper()
	metrics, err := reference.lab.Cloud.Kubernetes.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(mutating.FindAllString(string(metrics), -1), "\n")
}
