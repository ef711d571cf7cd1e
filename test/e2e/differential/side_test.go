// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// testerName is the field manager of the test.
const testerName = "differential-test"

// side is one of the two clusters.
type side struct {
	kind   lab.Kind
	lab    *lab.Lab
	client dynamic.Interface
	// grids starts grid-controller-managers, and gridManager is the one that runs; standalone has its own.
	grids       *lab.GridManagerInstall
	gridManager *lab.Process
}

// The nodes of all scenarios: two zones.
var nodeZones = map[string]string{"n1": "zone-a", "n2": "zone-a", "n3": "zone-b", "n4": "zone-b"}

func newSide(ctx context.Context, l *lab.Lab) (*side, error) {
	config, err := l.Cloud.Config(l.Cloud.AdminKubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = testerName
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	s := &side{kind: l.Cloud.Kind, lab: l, client: client}
	for name, zone := range nodeZones {
		if err := s.createNode(ctx, name, zone); err != nil {
			return nil, err
		}
	}
	if s.kind == lab.KubeAPIServer {
		if s.grids, err = l.InstallGridManager(ctx); err != nil {
			return nil, err
		}
		if s.gridManager, err = s.grids.Start(ctx, lab.GridManager, 51008); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// createNode makes a Node that can take traffic: hints are given in proportion to the CPUs of ready nodes.
func (s *side) createNode(ctx context.Context, name, zone string) error {
	node := parse(fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %[1]s, labels: {kubernetes.io/hostname: %[1]s, topology.kubernetes.io/zone: %[2]s}}}`, name, zone))
	nodes := s.resource(node, "")
	created, err := nodes.Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Object["status"] = parse(`{status: {allocatable: {cpu: "4"}, capacity: {cpu: "4"}, conditions: [{type: Ready, status: "True"}]}}`).Object["status"]
	_, err = nodes.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	return err
}

// resources are the kinds that scenarios use.
var resources = map[string]schema.GroupVersionResource{
	"ConfigMap":     {Version: "v1", Resource: "configmaps"},
	"Endpoints":     {Version: "v1", Resource: "endpoints"},
	"EndpointSlice": {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	"Namespace":     {Version: "v1", Resource: "namespaces"},
	"Node":          {Version: "v1", Resource: "nodes"},
	"Pod":           {Version: "v1", Resource: "pods"},
	"Service":       {Version: "v1", Resource: "services"},
	"ServiceGrid":   {Group: "superedge.io", Version: "v1", Resource: "servicegrids"},
}

func (s *side) resource(object *unstructured.Unstructured, namespace string) dynamic.ResourceInterface {
	return s.resourceOf(object.GetKind(), namespace)
}

func (s *side) resourceOf(kind, namespace string) dynamic.ResourceInterface {
	gvr, ok := resources[kind]
	if !ok {
		panic("no such kind: " + kind)
	}
	if kind == "Node" || kind == "Namespace" {
		return s.client.Resource(gvr)
	}
	return s.client.Resource(gvr).Namespace(namespace)
}

// parse reads one YAML document, where tabs may stand for two spaces.
func parse(text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "\t", "  ")), &object.Object); err != nil {
		panic(fmt.Sprintf("%v in:\n%s", err, text))
	}
	return object
}
