// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pod is what matters of a pod to the controllers. The zero values make a pod on node n1 with the label app=web,
// running and not ready, without address.
type pod struct {
	name      string
	labels    map[string]string
	ips       string // separated by spaces
	node      string // "-": none
	ports     []any  // from port
	ready     bool
	phase     string
	hostname  string
	subdomain string
	finalizer bool
	restart   string
}

// port is a container port.
func port(name string, number int64, protocol ...string) map[string]any {
	p := map[string]any{"containerPort": number}
	if name != "" {
		p["name"] = name
	}
	if len(protocol) > 0 {
		p["protocol"] = protocol[0]
	}
	return p
}

func (p pod) object() *unstructured.Unstructured {
	labels := map[string]any{"app": "web"}
	if p.labels != nil {
		labels = map[string]any{}
		for key, value := range maps.All(p.labels) {
			labels[key] = value
		}
	}
	container := map[string]any{"name": "main", "image": "registry.invalid/main:1"}
	if p.ports != nil {
		container["ports"] = p.ports
	}
	spec := map[string]any{"containers": []any{container}}
	for key, value := range map[string]string{"nodeName": p.nodeName(), "hostname": p.hostname, "subdomain": p.subdomain, "restartPolicy": p.restart} {
		if value != "" {
			spec[key] = value
		}
	}
	metadata := map[string]any{"name": p.name, "labels": labels}
	if p.finalizer {
		metadata["finalizers"] = []any{"lab.example/hold"}
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}}
}

func (p pod) nodeName() string {
	switch p.node {
	case "":
		return "n1"
	case "-":
		return ""
	}
	return p.node
}

// status is what the pod's kubelet would write.
func (p pod) status() map[string]any {
	ready := "False"
	if p.ready {
		ready = "True"
	}
	phase := p.phase
	if phase == "" {
		phase = "Running"
	}
	status := map[string]any{"phase": phase, "conditions": []any{map[string]any{"type": "Ready", "status": ready}}}
	if ips := strings.Fields(p.ips); len(ips) > 0 {
		var list []any
		for _, ip := range ips {
			list = append(list, map[string]any{"ip": ip})
		}
		status["podIP"], status["podIPs"] = ips[0], list
	}
	return status
}

// pods creates pods and writes their status.
func (w *world) pods(pods ...pod) {
	for _, p := range pods {
		w.createObject(p.object())
		w.setStatus(p)
	}
}

// setStatus writes the status of a pod that exists.
func (w *world) setStatus(pods ...pod) {
	for _, p := range pods {
		object, err := w.resourceOf("Pod", w.namespace).Get(w.ctx, p.name, metav1.GetOptions{})
		if err == nil {
			object.Object["status"] = p.status()
			object, err = w.resourceOf("Pod", w.namespace).UpdateStatus(w.ctx, object, metav1.UpdateOptions{})
		}
		w.record("status of", object, "Pod", p.name, err)
	}
}
