// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// changed returns an example with a merge patch.
func changed(t *testing.T, name, patch string) *unstructured.Unstructured {
	t.Helper()
	data, err := json.Marshal(example(t, name).Object)
	if err != nil {
		t.Fatal(err)
	}
	if data, err = jsonpatch.MergePatch(data, []byte(patch)); err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// causes returns what the error of a refused write complains about, as in
// "FieldValueRequired spec.containers", each once.
func causes(t *testing.T, err error) []string {
	t.Helper()
	status := &apierrors.StatusError{}
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		t.Fatalf("got %v, want Invalid", err)
	}
	var out []string
	for _, cause := range status.ErrStatus.Details.Causes {
		out = append(out, fmt.Sprintf("%s %s", strings.TrimPrefix(string(cause.Type), "FieldValue"), cause.Field))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestInvalidObjectsAreRefused(t *testing.T) {
	s := newServer(t)
	many := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	for _, test := range []struct {
		example, patch string
		want           []string
	}{
		{"pod", `{"metadata":{"name":"Web"}}`, []string{"Invalid metadata.name"}},
		{"pod", `{"metadata":{"labels":{"a b":"c"}}}`, []string{"Invalid metadata.labels"}},
		{"pod", `{"spec":{"containers":null}}`, []string{"Required spec.containers"}},
		{"pod", `{"spec":{"containers":[{}]}}`, []string{"Required spec.containers[0].image", "Required spec.containers[0].name"}},
		{"pod", `{"spec":{"containers":[{"name":"a","image":"a"},{"name":"a","image":"a"}]}}`, []string{"Duplicate spec.containers[1].name"}},
		{"pod", `{"spec":{"containers":[{"name":"prepare","image":"a"}]}}`, []string{"Duplicate spec.initContainers[0].name"}},
		{"pod", `{"spec":{"containers":[{"name":"a_b","image":"a"}]}}`, []string{"Invalid spec.containers[0].name"}},
		{"pod", `{"spec":{"hostNetwork":false,"containers":[{"name":"a","image":"a","ports":[{"protocol":"X","containerPort":70000},{"hostPort":-1},{"containerPort":1,"name":"TOO_LONG_A_NAME"}]}]}}`, []string{
			"Invalid spec.containers[0].ports[0].containerPort", "Invalid spec.containers[0].ports[1].hostPort", "Invalid spec.containers[0].ports[2].name",
			"NotSupported spec.containers[0].ports[0].protocol", "Required spec.containers[0].ports[1].containerPort",
		}},
		{"pod", `{"spec":{"containers":[{"name":"a","image":"a","ports":[{"containerPort":80},{"containerPort":80}]}]}}`, []string{"Duplicate spec.containers[0].ports[1].hostPort"}},
		{"pod", `{"spec":{"containers":[{"name":"a","image":"a","imagePullPolicy":"Often","terminationMessagePolicy":"X"}]}}`, []string{
			"NotSupported spec.containers[0].imagePullPolicy", "NotSupported spec.containers[0].terminationMessagePolicy",
		}},
		{"pod", `{"spec":{"containers":[{"name":"a","image":"a","volumeMounts":[{"name":"none","mountPath":"/a"},{"name":"host","mountPath":"/a"},{"name":"host"}]}]}}`, []string{
			"Invalid spec.containers[0].volumeMounts[1].mountPath", "NotFound spec.containers[0].volumeMounts[0].name", "Required spec.containers[0].volumeMounts[2].mountPath",
		}},
		{"pod", `{"spec":{"containers":[{"name":"a","image":"a","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1","memory":"-1"}}}]}}`, []string{
			"Invalid spec.containers[0].resources.limits[memory]", "Invalid spec.containers[0].resources.requests", "Invalid spec.containers[0].resources.requests[memory]",
		}},
		{"pod", `{"spec":{"containers":[{"name":"a","image":"a","env":[{"name":""},{"name":"A","valueFrom":{}},{"name":"B","value":"b","valueFrom":{"secretKeyRef":{"name":"s","key":""}}}],"envFrom":[{}]}]}}`, []string{
			"Invalid spec.containers[0].envFrom", "Invalid spec.containers[0].env[1].valueFrom", "Invalid spec.containers[0].env[2].valueFrom",
			"Required spec.containers[0].env[0].name", "Required spec.containers[0].env[2].valueFrom.secretKeyRef.key",
		}},
		{"pod", `{"spec":{"containers":[{"name":"a","image":"a","livenessProbe":{"successThreshold":2,"httpGet":{"port":0},"tcpSocket":{"port":1}},"readinessProbe":{}}]}}`, []string{
			"Forbidden spec.containers[0].livenessProbe.tcpSocket", "Invalid spec.containers[0].livenessProbe.httpGet.port",
			"Invalid spec.containers[0].livenessProbe.successThreshold", "Required spec.containers[0].readinessProbe",
		}},
		{"pod", `{"spec":{"initContainers":[{"name":"i","image":"a","livenessProbe":{"exec":{"command":["true"]}}}]}}`, []string{"Forbidden spec.initContainers[0].livenessProbe"}},
		{"pod", `{"spec":{"restartPolicy":"Sometimes","dnsPolicy":"Never"}}`, []string{"NotSupported spec.dnsPolicy", "NotSupported spec.restartPolicy"}},
		{"pod", `{"spec":{"volumes":[{"name":"a","emptyDir":{},"hostPath":{"path":"/a/../b"}},{"name":"b","secret":{}},{"name":"b","emptyDir":{}},{"name":"b","emptyDir":{}},{"emptyDir":{}}]}}`, []string{
			"Duplicate spec.volumes[3].name", "Forbidden spec.volumes[0].hostPath", "Required spec.volumes[1].secret.secretName", "Required spec.volumes[4].name",
		}},
		{"pod", `{"spec":{"volumes":[{"name":"a","hostPath":{"path":"/a/../b"}},{"name":"b","nfs":{}}]}}`, []string{
			"Invalid spec.volumes[0].hostPath.path", "Required spec.volumes[1].nfs.path", "Required spec.volumes[1].nfs.server",
		}},
		{"pod", `{"spec":{"containers":[{"name":"a","image":"a","resources":{"requests":{"example.com/gpu":"1","memories":"1"},"limits":{"example.com/fpga":"500m","a b":"1"}}}]}}`, []string{
			"Invalid spec.containers[0].resources.limits[a b]", "Invalid spec.containers[0].resources.limits[example.com/fpga]",
			"Invalid spec.containers[0].resources.requests[a b]", "Invalid spec.containers[0].resources.requests[example.com/fpga]",
			"Invalid spec.containers[0].resources.requests[memories]", "Required spec.containers[0].resources.limits",
		}},
		{"pod", `{"spec":{"tolerations":[{"value":"x"},{"key":"a","operator":"Exists","value":"b"},{"key":"a","operator":"In"},{"key":"a","effect":"Away","tolerationSeconds":1}]}}`, []string{
			"Invalid spec.tolerations[0].operator", "Invalid spec.tolerations[1].operator", "Invalid spec.tolerations[3].effect",
			"NotSupported spec.tolerations[2].operator", "NotSupported spec.tolerations[3].effect",
		}},
		{"pod", `{"spec":{"nodeName":"A b","hostname":"a.b","serviceAccount":"A","activeDeadlineSeconds":0,"hostAliases":[{"ip":"1.2.3"}]}}`, []string{
			"Invalid spec.activeDeadlineSeconds", "Invalid spec.hostAliases[0].ip", "Invalid spec.hostname", "Invalid spec.nodeName", "Invalid spec.serviceAccountName",
		}},
		{"pod", `{"spec":{"nodeName":"a","schedulingGates":[{"name":"g"},{"name":"g"}]}}`, []string{"Duplicate spec.schedulingGates[1]", "Forbidden spec.nodeName"}},
		{"pod", `{"spec":{"ephemeralContainers":[{"name":"e","image":"a"}]}}`, []string{"Forbidden spec.ephemeralContainers"}},

		{"node", `{"spec":{"podCIDR":"10.0.0.0/8","podCIDRs":["10.0.0.0/8","11.0.0.0/8"]}}`, []string{"Invalid spec.podCIDRs"}},
		{"node", `{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoSchedule"},{"key":"a b","effect":"Go"}]}}`, []string{
			"Duplicate metadata.taints[1]", "Invalid metadata.taints[2].key", "NotSupported metadata.taints[2].effect",
		}},
		{"node", `{"status":{"capacity":{"cpu":"-1","example.com/gpu":"500m"}}}`, []string{
			"Invalid status.allocatable.cpu", "Invalid status.allocatable.example.com/gpu", "Invalid status.capacity.cpu", "Invalid status.capacity.example.com/gpu",
		}},

		{"endpoints", `{"subsets":[{}]}`, []string{"Required subsets[0]"}},
		{"endpoints", `{"subsets":[{"addresses":[{"ip":"127.0.0.1"},{"ip":"10.0.0"},{"ip":"10.0.0.1","hostname":"a.b","nodeName":"A"}],"ports":[{"port":0},{"port":1,"name":"b","protocol":"X"}]}]}`, []string{
			"Invalid subsets[0].addresses[0].ip", "Invalid subsets[0].addresses[1].ip", "Invalid subsets[0].addresses[2].hostname", "Invalid subsets[0].addresses[2].nodeName",
			"Invalid subsets[0].ports[0].port", "NotSupported subsets[0].ports[1].protocol", "Required subsets[0].ports[0].name",
		}},
		{"endpointslice", `{"addressType":null}`, []string{"Required addressType"}},
		{"endpointslice", `{"addressType":"IPv6"}`, []string{"Invalid endpoints[0].addresses"}},
		{"endpointslice", `{"endpoints":[{"addresses":[]},{"addresses":["127.0.0.1"]},{"addresses":["x"],"nodeName":"A","hostname":"a.b","hints":{"forZones":[{"name":"a"},{"name":"a"}]}}]}`, []string{
			"Duplicate endpoints[2].hints.forZones[1].name", "Invalid endpoints[1].addresses[0]", "Invalid endpoints[2].addresses[0]",
			"Invalid endpoints[2].hostname", "Invalid endpoints[2].nodeName", "Required endpoints[0].addresses",
		}},
		{"endpointslice", `{"ports":[{"name":"a"},{"name":"a","protocol":"X"},{"name":"A"}]}`, []string{"Duplicate ports[1].name", "Invalid ports[2].name", "NotSupported ports[1].protocol"}},
		{"endpointslice", `{"endpoints":[` + many(1001, `{"addresses":["10.0.0.1"]}`) + `]}`, []string{"TooMany endpoints"}},
		{"endpointslice", `{"endpoints":[{"addresses":[` + many(101, `"10.0.0.1"`) + `]}]}`, []string{"TooMany endpoints[0].addresses"}},

		{"configmap", `{"data":{"a/b":"","blob":""}}`, []string{"Invalid data[a/b]", "Invalid data[blob]"}},
		{"configmap", `{"data":{"a":"` + strings.Repeat("x", 1<<20) + `"}}`, []string{"TooLong []"}},
		{"secret", `{"data":{"a/b":""}}`, []string{"Invalid data[a/b]"}},
		{"secret", `{"stringData":{"a":"` + strings.Repeat("x", 1<<20+1) + `"}}`, []string{"TooLong data"}},
		{"secret", `{"type":"kubernetes.io/tls"}`, []string{"Required data[tls.crt]", "Required data[tls.key]"}},
		{"secret", `{"type":"kubernetes.io/basic-auth"}`, []string{"Required data[password]", "Required data[username]"}},
		{"secret", `{"type":"kubernetes.io/ssh-auth"}`, []string{"Required data[ssh-privatekey]"}},
		{"secret", `{"type":"kubernetes.io/dockerconfigjson","stringData":{".dockerconfigjson":"x"}}`, []string{"Invalid data[.dockerconfigjson]"}},
		{"secret", `{"type":"kubernetes.io/service-account-token"}`, []string{"Required metadata.annotations[kubernetes.io/service-account.name]"}},

		{"event", `{"involvedObject":{"namespace":"other"}}`, []string{"Invalid involvedObject.namespace"}},
		{"event", `{"eventTime":"2026-06-01T11:00:00.000000Z"}`, []string{"Invalid reportingComponent", "Required action", "Required reportingComponent", "Required reportingInstance"}},
		{"event.events", `{"eventTime":null}`, []string{"Required eventTime"}},
		{"event.events", `{"type":"Bad","deprecatedCount":1,"deprecatedSource":{"component":"a"},"series":{"count":1,"lastObservedTime":null}}`, []string{
			"Invalid count", "Invalid series.count", "Invalid source", "Invalid type", "Required series.lastObservedTime",
		}},
		{"event.events", `{"action":"` + strings.Repeat("x", 129) + `","note":"` + strings.Repeat("x", 1025) + `"}`, []string{"Invalid action", "Invalid message"}},

		{"lease", `{"spec":{"leaseDurationSeconds":0,"leaseTransitions":-1}}`, []string{"Invalid spec.leaseDurationSeconds", "Invalid spec.leaseTransitions"}},
		{"servicecidr", `{"spec":{"cidrs":[]}}`, []string{"Required spec.cidrs"}},
		{"servicecidr", `{"spec":{"cidrs":["10.0.0.0/16","11.0.0.0/16"]}}`, []string{"Invalid spec.cidrs"}},
		{"servicecidr", `{"spec":{"cidrs":["10.0.0.1/16"]}}`, []string{"Invalid spec.cidrs[0]"}},
		{"servicecidr", `{"spec":{"cidrs":["10.0.0.0/16","fd00::/64","fd01::/64"]}}`, []string{"Invalid spec.cidrs"}},
		{"servicegrid", `{"spec":{"gridUniqKey":""}}`, []string{"Required spec.gridUniqKey"}},
		{"servicegrid", `{"spec":{"gridUniqKey":"a b"}}`, []string{"Invalid spec.gridUniqKey"}},

		{"deployment", `{"spec":{"selector":null}}`, []string{"Invalid spec.template.metadata.labels", "Required spec.selector"}},
		{"deployment", `{"spec":{"selector":{"matchLabels":{"app":"other"}}}}`, []string{"Invalid spec.template.metadata.labels"}},
		{"deployment", `{"spec":{"replicas":-1,"minReadySeconds":-1,"revisionHistoryLimit":-1,"progressDeadlineSeconds":-1}}`, []string{
			"Invalid spec.minReadySeconds", "Invalid spec.progressDeadlineSeconds", "Invalid spec.replicas", "Invalid spec.revisionHistoryLimit",
		}},
		{"deployment", `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":{"maxSurge":1}}}}`, []string{"Forbidden spec.strategy.rollingUpdate"}},
		{"deployment", `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":0}}}}`, []string{"Invalid spec.strategy.rollingUpdate.maxUnavailable"}},
		{"deployment", `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":"x","maxUnavailable":"101%"}}}}`, []string{
			"Invalid spec.strategy.rollingUpdate.maxSurge", "Invalid spec.strategy.rollingUpdate.maxUnavailable",
		}},
		{"deployment", `{"spec":{"strategy":{"type":"Other"}}}`, []string{"NotSupported spec.strategy"}},
		{"deployment", `{"spec":{"template":{"spec":{"restartPolicy":"Never","activeDeadlineSeconds":1,"containers":[{"name":"web"}]}}}}`, []string{
			"Forbidden spec.template.spec.activeDeadlineSeconds", "NotSupported spec.template.spec.restartPolicy", "Required spec.template.spec.containers[0].image",
		}},
		{"replicaset", `{"spec":{"selector":{"matchLabels":null}}}`, []string{"Invalid spec.selector"}},
		{"daemonset", `{"spec":{"updateStrategy":{"rollingUpdate":{"maxSurge":1}}}}`, []string{"Invalid spec.updateStrategy.rollingUpdate.maxSurge"}},
		{"daemonset", `{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":0}}}}`, []string{"Required spec.updateStrategy.rollingUpdate.maxUnavailable"}},
		{"daemonset", `{"spec":{"updateStrategy":{"type":"X"}}}`, []string{"NotSupported spec.updateStrategy"}},
		{"statefulset", `{"metadata":{"name":"a.b"}}`, []string{"Invalid metadata.name"}},
		{"statefulset", `{"spec":{"volumeClaimTemplates":null}}`, []string{"NotFound spec.template.spec.containers[0].volumeMounts[0].name"}},
		{"statefulset", `{"spec":{"podManagementPolicy":"X","updateStrategy":{"type":"OnDelete","rollingUpdate":{}},"serviceName":"a.b","persistentVolumeClaimRetentionPolicy":{"whenScaled":"X"}}}`, []string{
			"Invalid spec.podManagementPolicy", "Invalid spec.serviceName", "Invalid spec.updateStrategy.rollingUpdate", "NotSupported spec.persistentVolumeClaimRetentionPolicy.whenScaled",
		}},
		{"controllerrevision", `{"revision":-1,"data":null}`, []string{"Invalid revision", "Required data"}},

		{"role", `{"rules":[{"verbs":[]},{"verbs":["get"],"nonResourceURLs":["/a"],"resources":["pods"]}]}`, []string{
			"Invalid rules[1].nonResourceURLs", "Required rules[0].apiGroups", "Required rules[0].resources", "Required rules[0].verbs",
		}},
		{"clusterrole", `{"aggregationRule":{"clusterRoleSelectors":[]}}`, []string{"Required aggregationRule.clusterRoleSelectors"}},
		{"rolebinding", `{"roleRef":{"apiGroup":"x","kind":"X","name":null},"subjects":[{"kind":"X"},{"kind":"ServiceAccount","name":"A","apiGroup":"x"},{"kind":"User","name":"a","apiGroup":"x"}]}`, []string{
			"Invalid subjects[1].name", "NotSupported roleRef.apiGroup", "NotSupported roleRef.kind", "NotSupported subjects[0].kind",
			"NotSupported subjects[1].apiGroup", "NotSupported subjects[2].apiGroup", "Required roleRef.name", "Required subjects[0].name",
		}},
		{"clusterrolebinding", `{"roleRef":{"kind":"Role"},"subjects":[{"kind":"ServiceAccount","name":"a"}]}`, []string{"NotSupported roleRef.kind", "Required subjects[0].namespace"}},
	} {
		title, _, _ := strings.Cut(test.patch, strings.Repeat("x", 100))
		t.Run(test.example+" "+title[:min(len(title), 120)], func(t *testing.T) {
			object := changed(t, test.example, test.patch)
			_, err := s.resource(object).Create(t.Context(), object, metav1.CreateOptions{})
			if err == nil {
				t.Fatal("it was created")
			}
			if diff := cmp.Diff(test.want, causes(t, err)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

func TestInvalidUpdatesAreRefused(t *testing.T) {
	s := newServer(t)
	for _, test := range []struct {
		example, first, patch string
		want                  []string // nil: it is accepted
	}{
		{"pod", `{}`, `[{"op":"replace","path":"/spec/containers/0/image","value":"web:3"}]`, nil},
		{"pod", `{}`, `[{"op":"replace","path":"/spec/initContainers/0/image","value":"web:3"}]`, nil},
		{"pod", `{}`, `[{"op":"replace","path":"/spec/containers/0/image","value":""}]`, []string{"Required spec.containers[0].image"}},
		{"pod", `{}`, `[{"op":"add","path":"/spec/activeDeadlineSeconds","value":5}]`, nil},
		{"pod", `{"spec":{"activeDeadlineSeconds":4}}`, `[{"op":"replace","path":"/spec/activeDeadlineSeconds","value":5}]`, []string{"Invalid spec.activeDeadlineSeconds"}},
		{"pod", `{"spec":{"activeDeadlineSeconds":4}}`, `[{"op":"remove","path":"/spec/activeDeadlineSeconds"}]`, []string{"Invalid spec.activeDeadlineSeconds"}},
		{"pod", `{}`, `[{"op":"add","path":"/spec/tolerations","value":[{"operator":"Exists"}]}]`, nil},
		{"pod", `{"spec":{"tolerations":[{"operator":"Exists"}]}}`, `[{"op":"replace","path":"/spec/tolerations","value":[]}]`, []string{"Forbidden spec.tolerations"}},
		{"pod", `{"spec":{"tolerations":[{"operator":"Exists","effect":"NoExecute"}]}}`, `[{"op":"add","path":"/spec/tolerations/0/tolerationSeconds","value":5}]`, nil},
		{"pod", `{"spec":{"schedulingGates":[{"name":"a"},{"name":"b"}]}}`, `[{"op":"remove","path":"/spec/schedulingGates/0"}]`, nil},
		{"pod", `{"spec":{"schedulingGates":[{"name":"a"}]}}`, `[{"op":"add","path":"/spec/schedulingGates/0","value":{"name":"b"}}]`, []string{"Forbidden spec.schedulingGates[0].name"}},
		{"pod", `{}`, `[{"op":"add","path":"/spec/nodeName","value":"node2"}]`, []string{"Forbidden spec"}},
		{"pod", `{}`, `[{"op":"remove","path":"/spec/containers/1"}]`, []string{"Forbidden spec.containers"}},
		{"node", `{}`, `[{"op":"replace","path":"/spec","value":{"podCIDR":"10.2.0.0/24","podCIDRs":["10.2.0.0/24"]}}]`, []string{"Forbidden spec.podCIDRs"}},
		{"node", `{"spec":{"providerID":"a"}}`, `[{"op":"replace","path":"/spec/providerID","value":"b"}]`, []string{"Invalid spec.providerID"}},
		{"secret", `{}`, `[{"op":"replace","path":"/type","value":"other"}]`, []string{"Invalid type"}},
		{"secret", `{"immutable":true}`, `[{"op":"replace","path":"/data/a","value":"YQ=="}]`, []string{"Forbidden data"}},
		{"configmap", `{"immutable":true}`, `[{"op":"remove","path":"/immutable"},{"op":"remove","path":"/data"},{"op":"remove","path":"/binaryData"}]`, []string{"Forbidden binaryData", "Forbidden data", "Forbidden immutable"}},
		{"configmap", `{"immutable":true}`, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`, nil},
		{"endpointslice", `{}`, `[{"op":"replace","path":"/addressType","value":"FQDN"},{"op":"replace","path":"/endpoints/0/addresses/0","value":"a.example.com"}]`, []string{"Invalid addressType"}},
		{"servicecidr", `{}`, `[{"op":"replace","path":"/spec/cidrs","value":["10.97.0.0/16"]}]`, []string{"Invalid spec.cidrs[0]"}},
		{"servicecidr", `{}`, `[{"op":"add","path":"/spec/cidrs/1","value":"fd00::/108"}]`, nil},
		{"deployment", `{}`, `[{"op":"replace","path":"/spec/selector/matchLabels","value":{"a":"b"}},{"op":"replace","path":"/spec/template/metadata/labels","value":{"a":"b"}}]`, []string{"Invalid spec.selector"}},
		{"daemonset", `{}`, `[{"op":"replace","path":"/spec/selector/matchLabels","value":{"a":"b"}},{"op":"replace","path":"/spec/template/metadata/labels","value":{"a":"b"}}]`, []string{"Invalid spec.selector"}},
		{"statefulset", `{}`, `[{"op":"replace","path":"/spec/serviceName","value":"x"}]`, []string{"Invalid spec.serviceName"}},
		{"controllerrevision", `{}`, `[{"op":"replace","path":"/data","value":{"x":1}}]`, []string{"Invalid data"}},
		{"rolebinding", `{}`, `[{"op":"replace","path":"/roleRef/name","value":"x"}]`, []string{"Invalid roleRef"}},
		{"event.events", `{}`, `[{"op":"replace","path":"/note","value":"x"}]`, []string{"Invalid message"}},
		{"event.events", `{}`, `[{"op":"replace","path":"/series/count","value":9}]`, nil},
		{"event", `{}`, `[{"op":"replace","path":"/message","value":"x"}]`, nil},
	} {
		t.Run(test.example+" "+test.patch, func(t *testing.T) {
			object := changed(t, test.example, test.first)
			s.create(t, object)
			client := s.resource(object)
			_, err := client.Patch(t.Context(), object.GetName(), types.JSONPatchType, []byte(test.patch), metav1.PatchOptions{})
			if test.want == nil {
				if err != nil {
					t.Error(err)
				}
			} else if diff := cmp.Diff(test.want, causes(t, err)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, err)
			}
			if err := client.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
