// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watched are the open watches of the three resources of the view.
type watched struct{ services, slices, endpoints *events }

// nothingElse asserts that no event has come but those that were asked for.
func (w watched) nothingElse(t *testing.T, u *upstream, step string) {
	t.Helper()
	marker := "marker-" + step
	u.put(t, service(marker, noPolicy), slice(marker, ""), endpoints(marker))
	w.services.want(patience, "ADDED "+marker)
	w.slices.want(patience, "ADDED "+marker+"[]")
	w.endpoints.want(patience, "ADDED "+marker+"[]")
}

func TestOpenWatchesSeeTheAffectedObjectsOnly(t *testing.T) {
	all := []string{"n1", "n2", "n3"}
	u := startUpstream(t, fixture(
		slice("s-1", "s", all...), endpoints("s", all...), slice("s-2", "s"),
		service("open", noPolicy), slice("open-1", "open", all...), endpoints("open", all...),
		service("other-key", `["rack"]`), slice("other-key-1", "other-key", all...), endpoints("other-key", all...))...)
	client := readyGrid(t, u).client(t)
	w := watched{endpoints: followEndpoints(t, client)} // waits until Endpoints are there
	w.services, w.slices = followServices(t, client), followSlices(t, client)

	u.put(t, node("n3", "a"))
	w.slices.want(soon, "MODIFIED s-1[n1 n2 n3]")
	w.endpoints.want(soon, "MODIFIED s[n1 n2 n3]")
	w.nothingElse(t, u, "node-enters")

	u.put(t, node("n3", "b"))
	w.slices.want(soon, "MODIFIED s-1[n1 n2]")
	w.endpoints.want(soon, "MODIFIED s[n1 n2]")
	w.nothingElse(t, u, "node-leaves")

	u.put(t, service("s", noPolicy))
	w.services.want(soon, "MODIFIED s")
	w.slices.want(soon, "MODIFIED s-1[n1 n2 n3]")
	w.endpoints.want(soon, "MODIFIED s[n1 n2 n3]")
	w.nothingElse(t, u, "annotation-removed")

	u.put(t, service("s", zoneKeys))
	w.services.want(soon, "MODIFIED s")
	w.slices.want(soon, "MODIFIED s-1[n1 n2]")
	w.endpoints.want(soon, "MODIFIED s[n1 n2]")
	w.nothingElse(t, u, "annotation-added")

	// Heartbeats of the own Node and of another one. What follows them on the
	// same upstream watch tells that they have been seen.
	beating := node("n1", "a")
	beating.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	u.put(t, beating)
	eventually(t, soon, func() bool {
		got, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		return err == nil && len(got.Status.Conditions) == 1
	}, func() any { return "the heartbeat of the own Node is not shown" })
	other := node("n2", "a")
	other.Status = beating.Status
	u.put(t, other, slice("s-2", "s", "n5"), node("n5", "a"))
	w.slices.want(soon, "MODIFIED s-2[n5]")
	w.nothingElse(t, u, "heartbeats")

	u.put(t, node("n1", ""))
	w.slices.want(soon, "MODIFIED s-1[]", "MODIFIED s-2[]")
	w.endpoints.want(soon, "MODIFIED s[]")
	w.nothingElse(t, u, "own-label-removed")

	written := u.count(func(s seen) bool { return s.method != http.MethodGet && !strings.HasSuffix(s.resource, "reviews") })
	if written != 0 {
		t.Errorf("%d requests wrote upstream, want none", written)
	}
}

func TestAddressesOfADeletedNodeLeaveAndComeBack(t *testing.T) {
	u := startUpstream(t, fixture(slice("s-1", "s", "n1", "n2", "n3"), endpoints("s", "n1", "n2", "n3"))...)
	client := readyGrid(t, u).client(t)
	slices, eps := followSlices(t, client), followEndpoints(t, client)

	u.remove(t, node("n2", ""))
	slices.want(soon, "MODIFIED s-1[n1]")
	eps.want(soon, "MODIFIED s[n1]")

	u.put(t, slice("s-2", "s", "n1", "n2"), service("t", zoneKeys), slice("t-1", "t", "n1", "n2"), node("n6", "a"), slice("t-1", "t", "n2", "n6"))
	slices.want(soon, "ADDED s-2[n1]")
	for last := ""; last != "MODIFIED t-1[n6]"; {
		if last = slices.next(soon); last == "nothing" {
			t.Fatal("others do not go on updating")
		}
	}

	u.put(t, node("n2", "a"))
	slices.want(soon, "MODIFIED s-1[n1 n2]", "MODIFIED s-2[n1 n2]", "MODIFIED t-1[n2 n6]")
	eps.want(soon, "MODIFIED s[n1 n2]")
}
