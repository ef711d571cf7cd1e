// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package subsets

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func addresses(ips ...string) []corev1.EndpointAddress {
	var out []corev1.EndpointAddress
	for _, ip := range ips {
		out = append(out, corev1.EndpointAddress{IP: ip})
	}
	return out
}

func ports(numbers ...int32) []corev1.EndpointPort {
	var out []corev1.EndpointPort
	for _, number := range numbers {
		out = append(out, corev1.EndpointPort{Port: number, Protocol: corev1.ProtocolTCP})
	}
	return out
}

func ofPod(ip string, uid types.UID) corev1.EndpointAddress {
	return corev1.EndpointAddress{IP: ip, TargetRef: &corev1.ObjectReference{UID: uid}}
}

func TestRepack(t *testing.T) {
	type subset = corev1.EndpointSubset
	for _, test := range []struct {
		name string
		in   []subset
		want []subset // the order of subsets and ports is arbitrary, but fixed
	}{
		{"nothing", nil, []subset{}},
		{"a subset without addresses goes", []subset{{Ports: ports(1)}}, []subset{}},
		{
			"subsets with equal ports become one",
			[]subset{{Addresses: addresses("2.2.2.2"), Ports: ports(1)}, {Addresses: addresses("1.1.1.1"), Ports: ports(1)}},
			[]subset{{Addresses: addresses("1.1.1.1", "2.2.2.2"), Ports: ports(1)}},
		},
		{
			"ports with equal addresses become one subset",
			[]subset{{Addresses: addresses("1.1.1.1"), Ports: ports(1)}, {Addresses: addresses("1.1.1.1"), Ports: ports(2)}},
			[]subset{{Addresses: addresses("1.1.1.1"), Ports: ports(2, 1)}},
		},
		{
			"ports with an address ready here and not ready there stay apart",
			[]subset{{Addresses: addresses("1.1.1.1"), Ports: ports(1)}, {NotReadyAddresses: addresses("1.1.1.1"), Ports: ports(2)}},
			[]subset{{NotReadyAddresses: addresses("1.1.1.1"), Ports: ports(2)}, {Addresses: addresses("1.1.1.1"), Ports: ports(1)}},
		},
		{
			"not ready wins, whichever comes first",
			[]subset{
				{NotReadyAddresses: addresses("1.1.1.1"), Ports: ports(1)}, {Addresses: addresses("1.1.1.1", "2.2.2.2"), Ports: ports(1)},
				{NotReadyAddresses: addresses("2.2.2.2"), Ports: ports(1)},
			},
			[]subset{{NotReadyAddresses: addresses("1.1.1.1", "2.2.2.2"), Ports: ports(1)}},
		},
		{
			"an address twice is one",
			[]subset{{Addresses: addresses("1.1.1.1", "1.1.1.1"), Ports: ports(1, 1)}},
			[]subset{{Addresses: addresses("1.1.1.1"), Ports: ports(1)}},
		},
		{
			"pods that share an address are two",
			[]subset{{Addresses: []corev1.EndpointAddress{ofPod("1.1.1.1", "b"), ofPod("1.1.1.1", "a"), {IP: "1.1.1.1"}}, Ports: ports(1)}},
			[]subset{{Addresses: []corev1.EndpointAddress{{IP: "1.1.1.1"}, ofPod("1.1.1.1", "a"), ofPod("1.1.1.1", "b")}, Ports: ports(1)}},
		},
		{
			"addresses without ports stay, with none",
			[]subset{{Addresses: addresses("2.2.2.2")}, {Addresses: addresses("1.1.1.1")}},
			[]subset{{Addresses: addresses("1.1.1.1", "2.2.2.2")}},
		},
		{
			"addresses with and without a port have it",
			[]subset{{Addresses: addresses("1.1.1.1")}, {Addresses: addresses("1.1.1.1"), Ports: ports(1)}},
			[]subset{{Addresses: addresses("1.1.1.1"), Ports: ports(1)}},
		},
		{
			"addresses are sorted as text",
			[]subset{{Addresses: addresses("10.0.0.9", "10.0.0.10", "9.0.0.1"), Ports: ports(1)}},
			[]subset{{Addresses: addresses("10.0.0.10", "10.0.0.9", "9.0.0.1"), Ports: ports(1)}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Repack(test.in)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("repacked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, Repack(got)); diff != "" {
				t.Errorf("repacked again:\n%s", diff)
			}
		})
	}
}

// TestRepackHasOneForm repacks the same endpoints in random order and in random
// subsets.
func TestRepackHasOneForm(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var single []corev1.EndpointSubset
		for range 1 + random.IntN(20) {
			subset := corev1.EndpointSubset{Ports: ports(int32(1 + random.IntN(4)))}
			address := []corev1.EndpointAddress{ofPod(fmt.Sprintf("10.0.0.%d", random.IntN(5)), types.UID(fmt.Sprint(random.IntN(2))))}
			if random.IntN(3) == 0 {
				subset.NotReadyAddresses = address
			} else {
				subset.Addresses = address
			}
			single = append(single, subset)
		}
		want := Repack(single)
		random.Shuffle(len(single), func(i, j int) { single[i], single[j] = single[j], single[i] })
		if diff := cmp.Diff(want, Repack(single)); diff != "" {
			t.Fatalf("seed %d: another order, another form:\n%s", seed, diff)
		}
		mixed := append([]corev1.EndpointSubset(nil), want...)
		random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if !SameContents(mixed, want) {
			t.Fatalf("seed %d: other order of subsets, other contents", seed)
		}
	}
}

func TestRepackDoesNotWrite(t *testing.T) {
	in := []corev1.EndpointSubset{
		{Addresses: addresses("2.2.2.2", "1.1.1.1"), NotReadyAddresses: addresses("2.2.2.2"), Ports: ports(3, 2, 1)},
		{Addresses: addresses("3.3.3.3"), Ports: ports(9)},
	}
	before := (&corev1.Endpoints{Subsets: in}).DeepCopy().Subsets
	Truncate(Repack(in))
	if diff := cmp.Diff(before, in); diff != "" {
		t.Errorf("the argument has changed:\n%s", diff)
	}
}

func TestEqualIgnoresRevisionsOfPods(t *testing.T) {
	a := []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{ofPod("1.1.1.1", "a")}, Ports: ports(1)}}
	b := []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{ofPod("1.1.1.1", "a")}, Ports: ports(1)}}
	b[0].Addresses[0].TargetRef.ResourceVersion = "5"
	if !Equal(a, b) {
		t.Error("a revision makes a difference")
	}
	b[0].Addresses[0].TargetRef.Name = "other"
	if Equal(a, b) {
		t.Error("a name makes no difference")
	}
}

func TestTruncate(t *testing.T) {
	many := func(prefix string, count int) []corev1.EndpointAddress {
		var out []corev1.EndpointAddress
		for i := range count {
			out = append(out, corev1.EndpointAddress{IP: fmt.Sprintf("%s.%04d", prefix, i)})
		}
		return out
	}
	type counts struct{ ready, notReady int }
	for _, test := range []struct {
		name string
		in   []counts
		want []counts
		cut  bool
	}{
		{"nothing", nil, nil, false},
		{"at capacity", []counts{{900, 100}}, []counts{{900, 100}}, false},
		{"one too many, all ready", []counts{{1001, 0}}, []counts{{1000, 0}}, true},
		{"one too many, not ready", []counts{{1000, 1}}, []counts{{1000, 0}}, true},
		{"not ready ones go first", []counts{{600, 600}}, []counts{{600, 400}}, true},
		{"all not ready ones go", []counts{{1200, 300}}, []counts{{1000, 0}}, true},
		{"in proportion", []counts{{1500, 0}, {500, 10}}, []counts{{750, 0}, {250, 0}}, true},
		{"shares are rounded up, the last gets the rest", []counts{{999, 0}, {1, 0}, {1, 0}}, []counts{{999, 0}, {1, 0}}, true},
		{"a subset that loses all goes", []counts{{1000, 0}, {0, 5}}, []counts{{1000, 0}}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var in []corev1.EndpointSubset
			for i, c := range test.in {
				in = append(in, corev1.EndpointSubset{Addresses: many(fmt.Sprint("r", i), c.ready), NotReadyAddresses: many(fmt.Sprint("n", i), c.notReady)})
			}
			out, cut := Truncate(in)
			var got []counts
			for _, subset := range out {
				got = append(got, counts{len(subset.Addresses), len(subset.NotReadyAddresses)})
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(counts{})); diff != "" || cut != test.cut {
				t.Errorf("cut=%t, want %t; subsets (-want +got):\n%s", cut, test.cut, diff)
			}
			for i, subset := range out {
				if diff := cmp.Diff(in[i].Addresses[:len(subset.Addresses)], subset.Addresses); diff != "" {
					t.Errorf("other addresses than the first:\n%s", diff)
				}
			}
		})
	}
}
