// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// oldSessions are for a kubectl that may be years older than that of the lab: Debian's knows no aggregated discovery, no
// OpenAPI v3, no field validation by the server and no subresources.
var oldSessions = []session{
	{name: "old kubectl", given: []string{"service", "endpoints", "slice", "configmap"}, commands: []command{
		{args: "get services,endpoints,endpointslices -o wide"},
		{args: "get namespace/{ns} node/{node} -o wide"},
		{args: "get all"},
		{args: "get service web -o yaml"},
		{args: "get services --watch --request-timeout=3s"},
		{args: "get service nothing", exit: 1},
		{args: "describe service web"},
		{args: "describe endpoints web"},
		{args: "describe node {node}"},
		{args: "api-versions"},
		{args: "explain service.spec.ports"},
		{args: "apply -f testdata/applied.yaml"},
		{args: "apply -f testdata/applied-two.yaml", effect: inNS + "/services/applied"},
		{args: "apply --server-side -f testdata/widget.yaml"},
		{args: "edit service web", effect: inNS + "/services/web"},
		{args: "edit endpointslice web-1", effect: discovery + "/namespaces/{ns}/endpointslices/web-1"},
		{args: "label service web color=red"},
		{args: "replace -f -", stdin: `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"ports":[{"name":"http","port":81}]}}`},
		{args: "delete service web --wait"},
		{args: "delete services,endpoints,endpointslices,configmaps --all"},
	}},
}

func TestOldKubectl(t *testing.T) {
	if _, err := os.Stat(lab.DistributionKubectl); err != nil {
		t.Skipf("the distribution has no kubectl: %v", err)
	}
	version, err := exec.CommandContext(t.Context(), lab.DistributionKubectl, "version", "--client").CombinedOutput()
	must(t, err)
	t.Logf("%s: %s", lab.DistributionKubectl, strings.TrimSpace(string(version)))
	for _, s := range oldSessions {
		t.Run(s.name, func(t *testing.T) { runSession(t, lab.DistributionKubectl, s, "") })
	}
}
