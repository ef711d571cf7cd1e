// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/pkg/controller/endpoints"
)

// warnings are those of responses.
type warnings []string

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) { *w = append(*w, text) }

// warned returns a client, and the warnings that it gets.
func (s *server) warned(t *testing.T) (kubernetes.Interface, *warnings) {
	t.Helper()
	got := &warnings{}
	config := rest.CopyConfig(s.config)
	config.WarningHandler = got
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, got
}

// The registry does not import the controller, but must know what it made.
func TestWarningsAboutAddressesOfEndpoints(t *testing.T) {
	client, got := newServer(t).warned(t)
	for manager, want := range map[string]bool{"me": true, endpoints.ManagedBy: false} {
		t.Run(manager, func(t *testing.T) {
			*got = nil
			_, err := client.CoreV1().Endpoints("default").Create(t.Context(), &corev1.Endpoints{
				ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{endpoints.LabelManagedBy: manager}},
				Subsets: []corev1.EndpointSubset{{
					Addresses: []corev1.EndpointAddress{{IP: "fd00:0::1"}},
				}},
			}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				t.Fatal(err)
			}
			if has := slices.ContainsFunc(*got, func(text string) bool { return strings.Contains(text, "fd00::1") }); has != want {
				t.Errorf("warnings: %q", *got)
			}
		})
	}
}

func TestWarningsOfSlices(t *testing.T) {
	client, got := newServer(t).warned(t)
	for _, test := range []struct {
		addressType discoveryv1.AddressType
		address     string
		want        warnings
	}{
		{discoveryv1.AddressTypeIPv4, "10.0.0.1", nil},
		{discoveryv1.AddressTypeIPv6, "fd00::1", nil},
		{discoveryv1.AddressTypeFQDN, "a.example.com", warnings{"spec.addressType: FQDN endpoints are deprecated"}},
	} {
		t.Run(string(test.addressType), func(t *testing.T) {
			*got = nil
			_, err := client.DiscoveryV1().EndpointSlices("default").Create(t.Context(), &discoveryv1.EndpointSlice{
				ObjectMeta: metav1.ObjectMeta{Name: "web"}, AddressType: test.addressType,
				Endpoints: []discoveryv1.Endpoint{{Addresses: []string{test.address}}},
			}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, *got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
