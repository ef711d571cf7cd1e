// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package watchcache

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/grid-apiserver/grid-apiserver/pkg/topology"
)

// The ports of a slice come from upstream, but for default/kubernetes: there an
// annotation can change them while upstream's slice and the address stay.
func TestLocalPortChangesThePortOfKubernetes(t *testing.T) {
	f := standard(t)
	slice := newSlice("kubernetes", "kubernetes", "-")
	slice.Ports = []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](6443)}}
	r := f.record("endpointslices")
	f.view.SetEndpointSlice(slice)
	r.catchUp()
	for _, step := range []struct {
		port string
		want int32
	}{{"9443", 9443}, {"9444", 9444}, {"", 6443}} {
		annotations := map[string]string{topology.LocalEndpointAnnotation: "127.0.0.9", topology.LocalPortAnnotation: step.port}
		if step.port == "" {
			annotations = nil
		}
		f.view.SetKubernetesAnnotations(annotations)
		if events := r.catchUp(); len(events) != 1 {
			t.Errorf("port %q: %v, want one event", step.port, events)
		}
		if ports := f.listSlices()[0].Ports; len(ports) != 1 || *ports[0].Port != step.want {
			t.Errorf("port %q: %+v, want %d", step.port, ports, step.want)
		}
	}
}
