// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"text/template"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// demo sets up two node units and a Service that is closed over them, and returns what to try.
func demo(ctx context.Context, l *lab.Lab) (string, error) {
	if err := l.SetUnits(ctx, "nodeunit1", "nodeunit2", "nodeunit2"); err != nil {
		return "", err
	}
	service := lab.Service(lab.DemoService, map[string]string{lab.TopologyKeys: lab.TopologyValue})
	service, err := l.CreateService(ctx, service, l.EchoEndpoints()...)
	if err != nil {
		return "", err
	}
	if err := l.StartNodes(ctx, lab.ViaGrid, lab.NFTables); err != nil {
		return "", err
	}
	var guide strings.Builder
	err = guideTemplate.Execute(&guide, map[string]any{
		"Nodes":   l.Nodes,
		"Service": service,
		"Kubectl": l.Programs.Path("kubectl"),
		"Cloud":   l.Cloud,
		"Logs":    l.Logs,
		"Token":   lab.AdminToken,
	})
	return guide.String(), err
}

var guideTemplate = template.Must(template.New("guide").Parse(`
{{- $node0 := index .Nodes 0 }}{{ $node2 := index .Nodes 2 -}}
node0 is in the node unit nodeunit1, node1 and node2 are in nodeunit2. Service {{ .Service.Name }} has an echo server on
each node and the annotation topologyKeys: '["zone1"]'. Each node runs a grid-apiserver and a kube-proxy that reads from it.

What the Service answers on each node:
{{- range .Nodes }}
  ip netns exec {{ .Namespace }} curl -s http://{{ $.Service.Spec.ClusterIP }}/
{{- end }}

kubectl on node0, with the identity that kube-proxy has; it sees the node's view:
  alias k0='ip netns exec {{ $node0.Namespace }} {{ .Kubectl }} --kubeconfig={{ $node0.LocalKubeconfig }}'
  k0 get svc,endpoints,endpointslices
  k0 get endpointslices -w
with the rights of an administrator, through grid-apiserver; everything else goes upstream:
  k0 --token={{ .Token }} get nodes -L zone1

The upstream itself:
  alias kc='ip netns exec {{ .Cloud.Namespace }} {{ .Kubectl }} --kubeconfig={{ .Cloud.AdminKubeconfig }}'
  kc get endpointslices

Move node2 to the unit of node0, and try the Service again:
  kc label node node2 zone1=nodeunit1 --overwrite
Open the Service to everyone:
  kc annotate svc {{ .Service.Name }} topologyKeys-
Close it again:
  kc annotate svc {{ .Service.Name }} 'topologyKeys=["zone1"]'

What node0 waits for, or that it is ready: k0 get --raw '/readyz?verbose'
Logs: {{ .Logs }}
End the lab: make lab-down
`))
