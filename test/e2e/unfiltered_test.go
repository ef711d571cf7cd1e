// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// unfiltered creates Services that no topology applies to, one of each kind that kube-proxy treats differently.
func unfiltered(t *testing.T) (plain, headless, otherProxy *corev1.Service) {
	plain = createService(t, lab.Service("plain", map[string]string{"example.com/note": "kept"}))
	headless = lab.Service("headless", nil)
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	headless = createService(t, headless)
	otherProxy = lab.Service("other-proxy", nil)
	otherProxy.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "other"}
	return plain, headless, createService(t, otherProxy)
}

func TestUnfilteredObjectsEqualThoseOfUpstream(t *testing.T) {
	unfiltered(t)
	setUp(t, lab.ViaGrid, lab.NFTables, unit1, unit2, unit2)
	for _, n := range cluster.Nodes {
		t.Run(n.Name, func(t *testing.T) {
			client := view(t, n)
			eventually(t, propagation, "the view equals upstream", func(ctx context.Context) error {
				want, err := readServed(ctx, cluster.Cloud.Kubernetes, n.Name)
				must(t, err)
				if len(want.Services) < 4 || len(want.Slices) < 4 || len(want.Endpoints) < 4 || len(want.Namespaces) < 4 || len(want.CIDRs) < 1 {
					t.Fatalf("upstream lacks some of the objects to compare: %+v", want)
				}
				got, err := readServed(ctx, client, n.Name)
				if err != nil {
					return err
				}
				if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion")); diff != "" {
					return errors.New("(-upstream +view)\n" + diff)
				}
				return nil
			})
		})
	}
}

func TestKubeProxyProgramsTheSameRulesForUnfilteredServices(t *testing.T) {
	plain, _, otherProxy := unfiltered(t)
	n := cluster.Nodes[0]
	rules := map[lab.Via][]string{}
	for _, via := range []lab.Via{lab.ViaUpstream, lab.ViaGrid} {
		setUp(t, via, lab.NFTables, unit1, unit2, unit2)
		expectReached(t, 5*time.Second, plain, all, all, all)
		// The Services are of IPv4. kube-proxy writes the table of IPv6 when it comes to it.
		ruleset, err := n.Run(t.Context(), "nft", "list", "table", "ip", "kube-proxy")
		must(t, err)
		if !strings.Contains(ruleset, plain.Spec.ClusterIP) {
			t.Errorf("via %s: no rules for %s", via, plain.Name)
		}
		if strings.Contains(ruleset, otherProxy.Spec.ClusterIP) {
			t.Errorf("via %s: rules for %s, which has another proxy", via, otherProxy.Name)
		}
		// nft prints the elements of a set in no fixed order.
		words := strings.FieldsFunc(ruleset, func(r rune) bool { return strings.ContainsRune(" \t\n,", r) })
		slices.Sort(words)
		rules[via] = words
		body, err := n.Run(t.Context(), "curl", "-sk", "--max-time", "5", "https://"+lab.KubernetesIP+"/livez")
		if err != nil || body != "ok" {
			t.Errorf("via %s: kubernetes.default answers %q, %v", via, body, err)
		}
	}
	if diff := cmp.Diff(rules[lab.ViaUpstream], rules[lab.ViaGrid]); diff != "" {
		t.Errorf("the words of the rule sets differ (-kube-apiserver +grid-apiserver):\n%s", diff)
	}
}

// served is what a node's view serves.
type served struct {
	Services   []corev1.Service
	Endpoints  []corev1.Endpoints
	Slices     []discoveryv1.EndpointSlice
	Namespaces []corev1.Namespace
	CIDRs      []networkingv1.ServiceCIDR
	Node       *corev1.Node
}

func readServed(ctx context.Context, client kubernetes.Interface, node string) (*served, error) {
	services, err1 := client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	endpoints, err2 := client.CoreV1().Endpoints("").List(ctx, metav1.ListOptions{})
	slices, err3 := client.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{})
	namespaces, err4 := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	cidrs, err5 := client.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{})
	own, err6 := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return nil, err
	}
	return &served{services.Items, endpoints.Items, slices.Items, namespaces.Items, cidrs.Items, own}, nil
}
