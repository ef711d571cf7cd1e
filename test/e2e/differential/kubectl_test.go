// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// kubectl is one command line, without the namespace. It is split at spaces; a word may be quoted by '.
type kubectl struct {
	args string
	// name is the name of the test, if the command line is too long for that.
	name string
	// exit is the wanted exit code.
	exit int
	// ignore are lines that may differ, each with a reason.
	ignore []allowedLine
}

// allowedLine is a line of output that may be there or not; the pattern matches all of it.
type allowedLine struct{ pattern, reason string }

const kubectlNamespace = "kubectl"

// kubectlSession is one session, from an empty namespace to its deletion.
var kubectlSession = []kubectl{
	{args: "create namespace kubectl"},
	{args: "get all"},
	{args: "events"},
	{args: "get events"},

	// Declarative.
	{args: "diff -f web.yaml", exit: 1},
	{args: "apply -f web.yaml"},
	{args: "apply -f web.yaml"},
	{args: "diff -f web.yaml"},
	{args: "diff -f changed.yaml", exit: 1},
	{args: "apply --dry-run=server -f changed.yaml"},
	{args: "apply -f changed.yaml"},
	{args: "apply --server-side --field-manager=one -f applied.yaml"},
	{args: "apply --server-side --field-manager=two -f applied-two.yaml", exit: 1},
	{args: "apply --server-side --field-manager=two --force-conflicts -f applied-two.yaml"},
	{args: "get service applied -o yaml --show-managed-fields"},
	{args: "apply -f unknown.yaml", exit: 1},
	{args: "apply --validate=warn --dry-run=server -f unknown.yaml"},
	{args: "apply -f invalid.yaml", exit: 1},
	{args: "apply -f nokind.yaml", exit: 1},
	{args: "create -f web.yaml", exit: 1},
	{args: "replace -f applied.yaml"},

	// Status, as a kubelet writes it.
	{name: "patch of a pod's status", args: `patch pod web-0 --subresource=status --type=merge -p {"status":{"phase":"Running","podIP":"10.1.0.5","podIPs":[{"ip":"10.1.0.5"}],"hostIP":"10.97.0.10","startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"main","ready":true,"restartCount":2,"image":"x","imageID":"x","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}}`},
	{args: "wait --for=condition=Ready pod/web-0 --timeout=10s"},
	{args: "wait --for=jsonpath={.status.podIP}=10.1.0.5 pod/web-0 --timeout=10s"},
	{args: "wait --for=jsonpath={.subsets[0].addresses[0].ip}=10.1.0.5 endpoints/web --timeout=10s"},
	{args: "wait --for=condition=Other pod/web-0 --timeout=1s", exit: 1},

	// Reading.
	{args: "get all"},
	{args: "get all -o wide"},
	{args: "get pods,services,configmaps,secrets,deployments,statefulsets,daemonsets -o wide --show-labels"},
	{args: "get svc web -o yaml"},
	{args: "get deploy web -o yaml"},
	{args: "get secret password -o jsonpath={.data.password}"},
	{args: "get cm -o name"},
	{args: "get cm --chunk-size=1 -o name"},
	{args: "get services -A -l app=web"},
	{args: "get pods --field-selector spec.nodeName=n1,status.phase=Running"},
	{args: "get pods --field-selector spec.nothing=n1", exit: 1},
	{args: "get nodes"},
	{args: "get nodes -o wide"},
	{args: "get node n1 -o custom-columns=A:.metadata.name,B:.status.allocatable.cpu"},
	{args: "get endpoints web"},
	{args: "get endpointslices -l kubernetes.io/service-name=web -o custom-columns=A:.addressType,B:.endpoints[*].addresses"},
	{args: "get events"},
	{args: "get events.events.k8s.io -o custom-columns=A:.metadata.name,B:.regarding.name,C:.note,D:.deprecatedCount"},
	{args: "events --for pod/web-0"},
	{args: "get pods nothing", exit: 1},
	{args: "get nothings", exit: 1},
	{args: "describe service web"},
	{args: "describe pod web-0"},
	{args: "describe deployment web"},
	{args: "describe statefulset store"},
	{args: "describe configmap settings"},
	{args: "describe secret password"},
	{args: "describe node n1"},
	{args: "describe namespace kubectl", ignore: []allowedLine{
		{"^No (resource quota|LimitRange resource)\\.$", "standalone has neither ResourceQuota nor LimitRange"},
		{"^$", "the lines between them"},
	}},
	{args: "explain service.spec.clusterIP"},
	{args: "explain pod.spec.containers.ports"},
	{args: "explain deployment --recursive"},
	{args: "explain endpointslice.endpoints"},
	{args: "explain nothing", exit: 1},
	{args: "explain pod.nothing", exit: 1},

	// Changing.
	{args: "label service web color=red"},
	{args: "label service web color=blue", exit: 1},
	{args: "label service web color=blue --overwrite"},
	{args: "label service web color-"},
	{args: "annotate service web topologyKeys=[\"zone1\"]"},
	{args: `patch service web --type=json -p [{"op":"replace","path":"/spec/ports/0/port","value":8080}]`},
	{args: `patch service web --type=merge -p {"spec":{"sessionAffinity":"ClientIP"}}`},
	{args: `patch service web --type=strategic -p {"spec":{"ports":[{"port":443,"name":"https"}]}}`},
	{args: `patch service web -p {"spec":{"ports":[{"port":443,"$patch":"delete"}]}}`},
	{args: `patch service web --type=merge -p {"spec":{"type":"Wrong"}}`, exit: 1},
	{args: "get svc web"},
	{args: "edit service web", exit: 0},
	{args: "edit configmap settings"},
	{args: "create deployment more --image=registry.invalid/more:1 --replicas=2 --port=80"},
	{args: "scale deployment more --replicas=5"},
	{args: "scale statefulset/store --replicas=0"},
	{args: "get deployment more -o jsonpath={.spec.replicas}"},
	{args: "get --raw /apis/apps/v1/namespaces/kubectl/deployments/more/scale"},
	{args: "set image deployment/more more=registry.invalid/more:2"},
	{args: "set env deployment/more COLOR=blue"},
	{args: "set selector service/applied app=more"},
	{args: "expose deployment more --port=80 --cluster-ip=10.96.0.72"},
	{args: "create service nodeport ports --tcp=80:8080 --node-port=30060"},
	{args: "get service ports"},
	{args: "create configmap made --from-literal=a=b"},
	{args: "create secret generic made --from-literal=a=b"},
	{args: "create serviceaccount made"},
	{args: "create role made --verb=get --resource=pods"},
	{args: "create rolebinding made --role=made --serviceaccount=kubectl:made"},
	{args: "get sa,role,rolebinding"},
	{args: "describe role made"},
	{args: "describe rolebinding made"},
	{args: "create -f applied.yaml", exit: 1},
	{args: "run once --image=registry.invalid/once:1 --restart=Never"},
	{args: "cordon n4"},
	{args: "taint node n4 a=b:NoSchedule"},
	{args: "get node n4"},
	{args: "uncordon n4"},
	{args: "taint node n4 a-"},
	{args: "auth can-i create pods"},
	{args: "auth can-i '*' '*'"},

	// Deleting.
	{args: "delete configmap nothing", exit: 1},
	{args: "delete configmap nothing --ignore-not-found"},
	{args: "delete configmap made --dry-run=server"},
	{args: "delete configmap made --wait"},
	{args: "delete services -l app=web"},
	{args: "delete pod once --wait=false"},
	{args: "delete pod web-0 --grace-period=0 --force"},
	{args: "wait --for=delete pod/web-0 --timeout=10s"},
	{args: "delete -f web.yaml --ignore-not-found"},
	{args: "delete deployment more --cascade=foreground"},
	{args: "delete secrets --all"},
	{args: "delete namespace kubectl --wait --timeout=60s"},
	{args: "get namespace kubectl", exit: 1},
}

// TestKubectl runs the same kubectl commands against both sides and compares what they print.
func TestKubectl(t *testing.T) {
	t.Setenv("KUBE_EDITOR", "sed -i s/blue/green/;s/8080/8081/;s/red/green/")
	for _, command := range kubectlSession {
		t.Run(cmp.Or(command.name, command.args), func(t *testing.T) {
			var outs [2]string
			var errs [2]error
			var wg sync.WaitGroup
			for i, s := range []*side{reference, candidate} {
				wg.Go(func() { outs[i], errs[i] = s.runKubectl(t.Context(), command) })
			}
			wg.Wait()
			if err := errors.Join(errs[:]...); err != nil {
				t.Error(err)
			}
			if diff := gocmp.Diff(strings.Split(outs[0], "\n"), strings.Split(outs[1], "\n")); diff != "" {
				t.Errorf("output differs (-%s +%s):\n%s", reference.kind, candidate.kind, diff)
			}
		})
	}
}

// TestKubectlAPIResources: what standalone has is what the real server has under the same names.
func TestKubectlAPIResources(t *testing.T) {
	var rows [2][]string
	for i, s := range []*side{reference, candidate} {
		out, err := s.lab.Kubectl(t.Context(), "api-resources", "-o", "wide")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out) {
			fields := strings.Fields(line)
			for j, field := range fields {
				list := strings.Split(field, ",") // verbs, in any order
				slices.Sort(list)
				fields[j] = strings.Join(list, ",")
			}
			rows[i] = append(rows[i], strings.Join(fields, " "))
		}
	}
	for _, row := range rows[1] {
		if !slices.Contains(rows[0], row) {
			name, _, _ := strings.Cut(row, " ")
			i := slices.IndexFunc(rows[0], func(other string) bool { return strings.HasPrefix(other, name+" ") })
			if i < 0 {
				t.Errorf("%s has %q", candidate.kind, row)
			} else {
				t.Errorf("%s has %q\n%s has %q", reference.kind, rows[0][i], candidate.kind, row)
			}
		}
	}
	t.Logf("%d of %d resources", len(rows[1]), len(rows[0]))
}

// runKubectl returns what a command prints, normalised.
func (s *side) runKubectl(ctx context.Context, command kubectl) (string, error) {
	args := lab.Words(command.args)
	for i, arg := range args {
		if strings.HasSuffix(arg, ".yaml") {
			args[i] = filepath.Join("testdata", "kubectl", arg)
		}
	}
	cmd := s.lab.KubectlCommand(ctx, append([]string{"--namespace=" + kubectlNamespace}, args...)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return "", err
	}
	if code := cmd.ProcessState.ExitCode(); code != command.exit {
		return "", fmt.Errorf("%s: exit code %d, want %d:\n%s", s.kind, code, command.exit, out)
	}
	return plain(string(out), command.ignore), nil
}

// chance are the parts of kubectl's output that differ by nature.
var chance = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{uids, "<uid>"},
	{regexp.MustCompile(`\b10\.96\.[1-9][0-9]*\.[0-9]+\b`), "<ClusterIP>"},
	{regexp.MustCompile(`(?m)^\s*"?(resourceVersion|uid|creationTimestamp|generation|time)"?:.*$`), "<chance>"},
	{regexp.MustCompile(`"(resourceVersion|uid|creationTimestamp)":"[^"]*"`), "<chance>"},
	{regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+( [+-][0-9]+|Z)?`), "<time>"},
	{regexp.MustCompile(`[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]+ [+-][0-9]{4}`), "<time>"},
	{regexp.MustCompile(`/tmp/(LIVE|MERGED)-[0-9]+`), "$1"},
	{regexp.MustCompile(`\b([0-9]+[smhd])+\b`), "<age>"},
	{regexp.MustCompile(`<age>( ago)?( \(x[0-9]+ over <age>\))?`), "<age>$1"},
	{regexp.MustCompile(`<invalid>|<unknown>`), "<age>"},
	{regexp.MustCompile(`[ \t]+`), " "},
	{regexp.MustCompile(`-{3,}`), "---"},
}

func plain(out string, ignore []allowedLine) string {
	for _, c := range chance {
		out = c.pattern.ReplaceAllString(out, c.instead)
	}
	for _, line := range ignore {
		out = regexp.MustCompile(`(?m)`+line.pattern+`\n?`).ReplaceAllString(out, "")
	}
	var lines []string
	for line := range strings.Lines(out) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n")
}
