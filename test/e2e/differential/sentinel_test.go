// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// sentinelName begins the names of the sentinel's objects, and labels them.
const sentinelName = "sentinel"

// sentinel shows that the controllers have seen what was written before: it changes a pod, a Service and an Endpoints
// object of its own, and waits for what the controllers make of that. Informers deliver the events of a resource in
// order, and work queues hand out in order, so changes made before are then at least being worked on. Without it a
// step whose change must lead to nothing would be compared before the controllers have woken up.
type sentinel struct {
	*world
	count int
}

// newSentinel makes the namespace and, in it, the sentinel's objects.
func newSentinel(w *world) (*sentinel, error) {
	s := &sentinel{world: w}
	w.create(
		`{apiVersion: v1, kind: Namespace, metadata: {name: `+w.namespace+`}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: sentinel}, spec: {selector: {app: sentinel}, ports: [{port: 80}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: sentinel-mirror}, spec: {ports: [{port: 80}]}}`,
		`{apiVersion: v1, kind: Endpoints, metadata: {name: sentinel-mirror}, subsets: [{addresses: [{ip: 10.255.0.1}], ports: [{port: 80}]}]}`,
	)
	w.pods(pod{name: sentinelName, labels: map[string]string{"app": sentinelName}, ips: "10.255.0.1", ready: true})
	return s, errors.Join(w.refused...)
}

// pass makes the changes and waits for their effect.
func (s *sentinel) pass(ctx context.Context) error {
	s.count++
	ip := fmt.Sprintf("10.255.%d.%d", s.count/250, 1+s.count%250)
	label := fmt.Sprint(s.count)
	patch := func(kind, name, body string, subresources ...string) error {
		_, err := s.resourceOf(kind, s.namespace).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
		return err
	}
	err := errors.Join(
		patch("Pod", sentinelName, fmt.Sprintf(`{"status":{"podIP":%[1]q,"podIPs":[{"ip":%[1]q}]}}`, ip), "status"),
		patch("Service", sentinelName, fmt.Sprintf(`{"metadata":{"labels":{"count":%q}}}`, label)),
		patch("Endpoints", "sentinel-mirror", fmt.Sprintf(`{"metadata":{"labels":{"count":%q}}}`, label)),
	)
	if err != nil {
		return err
	}
	return lab.WaitFor(ctx, 30*time.Second, "the controllers follow the sentinel", func(ctx context.Context) error {
		endpoints, err := s.resourceOf("Endpoints", s.namespace).Get(ctx, sentinelName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if endpoints.GetLabels()["count"] != label || !contains(endpoints.Object, ip) {
			return errors.New("Endpoints do not")
		}
		for service, want := range map[string]string{sentinelName: ip, "sentinel-mirror": ""} {
			list, err := s.resourceOf("EndpointSlice", s.namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service + ",count=" + label})
			if err != nil {
				return err
			}
			if len(list.Items) != 1 || !contains(list.Items[0].Object, want) {
				return fmt.Errorf("the EndpointSlice of %s does not", service)
			}
		}
		return nil
	})
}
