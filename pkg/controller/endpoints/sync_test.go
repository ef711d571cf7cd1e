// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoints

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	kube "github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints/fakekube"
)

// brief writes subsets as "http:8080/TCP ready[10.0.0.1] notReady[10.0.0.2]".
func brief(subsets []corev1.EndpointSubset) []string {
	lines := []string{}
	for _, subset := range subsets {
		line := ""
		for _, port := range subset.Ports {
			line += fmt.Sprintf("%s:%d/%s ", port.Name, port.Port, port.Protocol)
		}
		line += fmt.Sprint("ready", ips(subset.Addresses))
		if len(subset.NotReadyAddresses) > 0 {
			line += fmt.Sprint(" notReady", ips(subset.NotReadyAddresses))
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func ips(addresses []corev1.EndpointAddress) []string {
	var out []string
	for _, address := range addresses {
		out = append(out, address.IP)
	}
	return out
}

func headless(service *corev1.Service) { service.Spec.ClusterIP = corev1.ClusterIPNone }

func withoutPorts(service *corev1.Service) { service.Spec.Ports = nil }

func publishNotReady(service *corev1.Service) { service.Spec.PublishNotReadyAddresses = true }

func families(families ...corev1.IPFamily) func(*corev1.Service) {
	return func(service *corev1.Service) { service.Spec.IPFamilies = families }
}

func clusterIP(ip string) func(*corev1.Service) {
	return func(service *corev1.Service) { service.Spec.ClusterIP = ip }
}

func targets(ports ...intstr.IntOrString) func(*corev1.Service) {
	return func(service *corev1.Service) {
		service.Spec.Ports = nil
		for i, port := range ports {
			service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
				Name: fmt.Sprint("p", i), Port: int32(80 + i), Protocol: corev1.ProtocolTCP, TargetPort: port,
			})
		}
	}
}

func podIPs(ips ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.PodIPs = nil
		for _, ip := range ips {
			pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: ip})
		}
	}
}

func sidecarPort(name string, number int32, restart *corev1.ContainerRestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.InitContainers = []corev1.Container{{
			Name: "sidecar", RestartPolicy: restart,
			Ports: []corev1.ContainerPort{{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}},
		}}
	}
}

func TestBuild(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for _, test := range []struct {
		name    string
		service *corev1.Service
		pods    []*corev1.Pod
		want    []string
	}{
		{"no pods", kube.Service("s"), nil, []string{}},
		{
			"ready and not ready pods",
			kube.Service("s"),
			[]*corev1.Pod{kube.Pod("a", "s", "10.0.0.2"), kube.Pod("b", "s", "10.0.0.1"), kube.Pod("c", "s", "10.0.0.3", kube.Unready)},
			[]string{"http:8080/TCP ready[10.0.0.1 10.0.0.2] notReady[10.0.0.3]"},
		},
		{
			"a pod without conditions is not ready",
			kube.Service("s"),
			[]*corev1.Pod{kube.Pod("a", "s", "10.0.0.1", func(pod *corev1.Pod) { pod.Status.Conditions = nil })},
			[]string{"http:8080/TCP ready[] notReady[10.0.0.1]"},
		},
		{
			"pods that are terminating, have ended or have no address are left out",
			kube.Service("s"),
			[]*corev1.Pod{
				kube.Pod("a", "s", "10.0.0.1", kube.Terminating), kube.Pod("b", "s", "10.0.0.2", kube.Phase(corev1.PodSucceeded)),
				kube.Pod("c", "s", "10.0.0.3", kube.Phase(corev1.PodFailed)), kube.Pod("d", "s", "", podIPs()),
			},
			[]string{},
		},
		{
			"addresses published before they are ready",
			kube.Service("s", publishNotReady),
			[]*corev1.Pod{
				kube.Pod("a", "s", "10.0.0.1", kube.Unready), kube.Pod("b", "s", "10.0.0.2", kube.Terminating), kube.Pod("c", "s", "10.0.0.3", kube.Unready, kube.Terminating),
				kube.Pod("d", "s", "10.0.0.4", kube.Phase(corev1.PodSucceeded)), kube.Pod("e", "s", "10.0.0.5", kube.Phase(corev1.PodFailed), kube.Terminating),
			},
			[]string{"http:8080/TCP ready[10.0.0.1 10.0.0.2 10.0.0.3]"},
		},
		{
			"a named port differs by pod, and one pod lacks it",
			kube.Service("s", targets(intstr.FromString("web"))),
			[]*corev1.Pod{
				kube.Pod("a", "s", "10.0.0.1", kube.NamedPort("web", 80)), kube.Pod("b", "s", "10.0.0.2", kube.NamedPort("web", 8080)),
				kube.Pod("c", "s", "10.0.0.3"), kube.Pod("d", "s", "10.0.0.4", kube.NamedPort("web", 80)),
			},
			[]string{"p0:80/TCP ready[10.0.0.1 10.0.0.4]", "p0:8080/TCP ready[10.0.0.2]"},
		},
		{
			"a pod that has one of two ports",
			kube.Service("s", targets(intstr.FromString("web"), intstr.FromInt32(9090))),
			[]*corev1.Pod{kube.Pod("a", "s", "10.0.0.1", kube.NamedPort("web", 80)), kube.Pod("b", "s", "10.0.0.2")},
			[]string{"p0:80/TCP ready[10.0.0.1]", "p1:9090/TCP ready[10.0.0.1 10.0.0.2]"},
		},
		{
			"a named port of another protocol is another port",
			kube.Service("s", targets(intstr.FromString("web")), func(s *corev1.Service) { s.Spec.Ports[0].Protocol = corev1.ProtocolUDP }),
			[]*corev1.Pod{kube.Pod("a", "s", "10.0.0.1", kube.NamedPort("web", 80))},
			[]string{},
		},
		{
			"ports of sidecars count, those of other init containers do not",
			kube.Service("s", targets(intstr.FromString("web"))),
			[]*corev1.Pod{kube.Pod("a", "s", "10.0.0.1", sidecarPort("web", 80, &always)), kube.Pod("b", "s", "10.0.0.2", sidecarPort("web", 80, nil))},
			[]string{"p0:80/TCP ready[10.0.0.1]"},
		},
		{
			"headless without ports",
			kube.Service("s", headless, withoutPorts),
			[]*corev1.Pod{kube.Pod("a", "s", "10.0.0.1"), kube.Pod("b", "s", "10.0.0.2", kube.Unready)},
			[]string{"ready[10.0.0.1] notReady[10.0.0.2]"},
		},
		{
			"a cluster IP without ports",
			kube.Service("s", withoutPorts),
			[]*corev1.Pod{kube.Pod("a", "s", "10.0.0.1")},
			[]string{},
		},
		{
			"the primary family of a dual-stack Service",
			kube.Service("s", families(corev1.IPv6Protocol, corev1.IPv4Protocol)),
			[]*corev1.Pod{
				kube.Pod("a", "s", "10.0.0.1", podIPs("10.0.0.1", "fd00::1")), kube.Pod("b", "s", "10.0.0.2"),
				kube.Pod("c", "s", "fd00::3", podIPs("fd00::3", "10.0.0.3")),
			},
			[]string{"http:8080/TCP ready[fd00::1 fd00::3]"},
		},
		{
			"without families the cluster IP decides",
			kube.Service("s", families(), clusterIP("fd00:96::1")),
			[]*corev1.Pod{kube.Pod("a", "s", "10.0.0.1", podIPs("10.0.0.1", "fd00::1"))},
			[]string{"http:8080/TCP ready[fd00::1]"},
		},
		{
			"without families and cluster IP each pod decides",
			kube.Service("s", families(), headless),
			[]*corev1.Pod{
				kube.Pod("a", "s", "10.0.0.1", podIPs("10.0.0.1", "fd00::1")), kube.Pod("b", "s", "fd00::2", podIPs("fd00::2", "10.0.0.2")),
			},
			[]string{"http:8080/TCP ready[10.0.0.1 fd00::2]"},
		},
		{
			"addresses are rewritten in their usual form, and what is none is left out",
			kube.Service("s"),
			[]*corev1.Pod{kube.Pod("a", "s", "010.0.0.01"), kube.Pod("b", "s", "nonsense")},
			[]string{"http:8080/TCP ready[10.0.0.1]"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			built, overCapacity := Build(test.service, test.pods)
			if diff := cmp.Diff(test.want, brief(built)); diff != "" {
				t.Errorf("subsets (-want +got):\n%s", diff)
			}
			if overCapacity {
				t.Error("over capacity")
			}
		})
	}
}

func TestBuildAddress(t *testing.T) {
	pod := kube.Pod("a", "s", "10.0.0.1", func(pod *corev1.Pod) { pod.Spec.Hostname, pod.Spec.Subdomain = "host", "s" })
	other := kube.Pod("b", "s", "10.0.0.2", func(pod *corev1.Pod) {
		pod.Spec.Hostname, pod.Spec.Subdomain, pod.Spec.NodeName = "host", "other", ""
	})
	built, _ := Build(kube.Service("s"), []*corev1.Pod{pod, other})
	want := []corev1.EndpointAddress{
		{
			IP: "10.0.0.1", Hostname: "host", NodeName: &pod.Spec.NodeName,
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: kube.Namespace, Name: "a", UID: "uid-of-a"},
		},
		{
			IP:        "10.0.0.2",
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: kube.Namespace, Name: "b", UID: "uid-of-b"},
		},
	}
	if diff := cmp.Diff(want, built[0].Addresses); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

// crowd returns pods of the Service s, the ready ones first in order.
func crowd(ready, notReady int) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range ready + notReady {
		pod := kube.Pod(fmt.Sprintf("p%04d", i), "s", fmt.Sprintf("10.0.%d.%d", i/250, i%250))
		if i >= ready {
			kube.Unready(pod)
		}
		pods = append(pods, pod)
	}
	return pods
}

func TestPlanOverCapacity(t *testing.T) {
	service := kube.Service("s")
	for _, test := range []struct {
		name            string
		ready, notReady int
		wantReady       int
		wantNotReady    int
		over            bool
	}{
		{"at capacity", 1000, 0, 1000, 0, false},
		{"one too many", 1001, 0, 1000, 0, true},
		{"ready pods come first", 900, 200, 900, 100, true},
		{"unready pods go", 1100, 200, 1000, 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			planned := Plan(nil, service, crowd(test.ready, test.notReady), time.Time{})
			subset := planned.Subsets[0]
			if len(subset.Addresses) != test.wantReady || len(subset.NotReadyAddresses) != test.wantNotReady {
				t.Errorf("%d ready and %d not ready addresses, want %d and %d", len(subset.Addresses), len(subset.NotReadyAddresses), test.wantReady, test.wantNotReady)
			}
			want := ""
			if test.over {
				want = "truncated"
			}
			if got := planned.Annotations[corev1.EndpointsOverCapacity]; got != want {
				t.Errorf("annotation %q, want %q", got, want)
			}
			planned.ResourceVersion = "5"
			if again := Plan(planned, service, crowd(test.ready, test.notReady), time.Time{}); again != nil {
				t.Error("what is right is written again")
			}
			fewer := Plan(planned, service, crowd(1000, 0), time.Time{})
			if test.over && fewer == nil {
				t.Fatal("nothing to write when no pod is too many any more")
			}
			if fewer != nil {
				if _, noted := fewer.Annotations[corev1.EndpointsOverCapacity]; noted {
					t.Error("the annotation is still there at capacity")
				}
			}
		})
	}
}

func TestPlan(t *testing.T) {
	service := kube.Service("s", func(s *corev1.Service) { s.Labels = map[string]string{"team": "blue"} })
	pods := []*corev1.Pod{kube.Pod("a", "s", "10.0.0.1"), kube.Pod("b", "s", "10.0.0.2")}
	trigger := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	right := Plan(nil, service, pods, trigger)
	right.ResourceVersion = "5"
	right.Annotations["keep"] = "me"

	wantMeta := metav1.ObjectMeta{
		Namespace: kube.Namespace, Name: "s", ResourceVersion: "5",
		Labels:      map[string]string{"team": "blue", LabelManagedBy: ManagedBy},
		Annotations: map[string]string{"keep": "me", corev1.EndpointsLastChangeTriggerTime: "2026-01-02T02:04:05.000000006Z"},
	}
	if diff := cmp.Diff(wantMeta, right.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}

	for _, test := range []struct {
		name  string
		edit  func(*corev1.Endpoints)
		write bool
	}{
		{"nothing", func(*corev1.Endpoints) {}, false},
		{"no trigger time", func(e *corev1.Endpoints) { delete(e.Annotations, corev1.EndpointsLastChangeTriggerTime) }, false},
		{"a strange annotation", func(e *corev1.Endpoints) { e.Annotations["strange"] = "x" }, false},
		{"the headless label", func(e *corev1.Endpoints) { e.Labels[corev1.IsHeadlessService] = "" }, false},
		{"a revision of a pod", func(e *corev1.Endpoints) { e.Subsets[0].Addresses[0].TargetRef.ResourceVersion = "9" }, false},
		{"another order", func(e *corev1.Endpoints) { slices.Reverse(e.Subsets[0].Addresses) }, false},
		{"a missing label", func(e *corev1.Endpoints) { delete(e.Labels, "team") }, true},
		{"another value of a label", func(e *corev1.Endpoints) { e.Labels["team"] = "red" }, true},
		{"a strange label", func(e *corev1.Endpoints) { e.Labels["strange"] = "" }, true},
		{"no managed-by label", func(e *corev1.Endpoints) { delete(e.Labels, LabelManagedBy) }, true},
		{"another managed-by label", func(e *corev1.Endpoints) { e.Labels[LabelManagedBy] = "x" }, true},
		{"no subsets", func(e *corev1.Endpoints) { e.Subsets = nil }, true},
		{"a missing address", func(e *corev1.Endpoints) { e.Subsets[0].Addresses = e.Subsets[0].Addresses[:1] }, true},
		{"another node", func(e *corev1.Endpoints) { e.Subsets[0].Addresses[0].NodeName = nil }, true},
		{"another port", func(e *corev1.Endpoints) { e.Subsets[0].Ports[0].Port++ }, true},
		{"the annotation of what is over capacity", func(e *corev1.Endpoints) { e.Annotations[corev1.EndpointsOverCapacity] = "truncated" }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			current := right.DeepCopy()
			test.edit(current)
			before := current.DeepCopy()
			planned := Plan(current, service, pods, trigger)
			if diff := cmp.Diff(before, current); diff != "" {
				t.Errorf("the argument has changed:\n%s", diff)
			}
			if (planned != nil) != test.write {
				t.Fatalf("written: %t", planned != nil)
			}
			if test.write {
				if diff := cmp.Diff(right, planned); diff != "" {
					t.Errorf("planned (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestPlanLabels(t *testing.T) {
	labels := func(labels map[string]string) func(*corev1.Service) {
		return func(service *corev1.Service) { service.Labels = labels }
	}
	for _, test := range []struct {
		name    string
		service *corev1.Service
		want    map[string]string
	}{
		{"none", kube.Service("s"), map[string]string{LabelManagedBy: ManagedBy}},
		{"headless", kube.Service("s", headless), map[string]string{LabelManagedBy: ManagedBy, corev1.IsHeadlessService: ""}},
		{"no cluster IP yet", kube.Service("s", clusterIP("")), map[string]string{LabelManagedBy: ManagedBy, corev1.IsHeadlessService: ""}},
		{
			"the Service's own do not win",
			kube.Service("s", labels(map[string]string{"a": "b", LabelManagedBy: "me", corev1.IsHeadlessService: "yes"})),
			map[string]string{"a": "b", LabelManagedBy: ManagedBy},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			planned := Plan(nil, test.service, nil, time.Time{})
			if diff := cmp.Diff(test.want, planned.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			planned.ResourceVersion = "5"
			if Plan(planned, test.service, nil, time.Time{}) != nil {
				t.Error("what is right is written again")
			}
		})
	}
}
