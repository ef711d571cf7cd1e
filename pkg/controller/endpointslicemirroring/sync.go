// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package endpointslicemirroring

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	endpointsliceutil "k8s.io/endpointslice/util"
)

// Changes are the writes that make the copies of an Endpoints object right.
type Changes struct {
	Create []*discoveryv1.EndpointSlice // with generateName
	Update []*discoveryv1.EndpointSlice // whole objects without resourceVersion
	Delete []*discoveryv1.EndpointSlice

	// Unchanged are the slices that stay as they are.
	Unchanged []*discoveryv1.EndpointSlice

	Invalid int // addresses left out because they are no IP
	Surplus int // addresses left out because their subset has too many
}

// mirrored says whether the Endpoints object is one to copy, if its Service has
// no selector.
func mirrored(endpoints *corev1.Endpoints) bool {
	_, elects := endpoints.Annotations[resourcelock.LeaderElectionRecordAnnotationKey]
	return !elects && endpoints.Labels[discoveryv1.LabelSkipMirror] != "true"
}

// Plan compares the copies that exist with those that should. Of a subset at
// most limit addresses are copied. The result shares memory with the arguments,
// and none of them is written to.
func Plan(endpoints *corev1.Endpoints, existing []*discoveryv1.EndpointSlice, limit int) Changes {
	d := desire(endpoints, limit)
	changes := Changes{Invalid: d.invalid, Surplus: d.surplus}
	have := map[group][]*discoveryv1.EndpointSlice{}
	for _, slice := range byName(existing) {
		g := groupOf(slice)
		if len(have[g]) > 0 || d.content[g] == nil {
			changes.Delete = append(changes.Delete, slice)
		}
		have[g] = append(have[g], slice)
	}
	for _, g := range d.groups {
		content := d.content[g]
		if len(have[g]) == 0 {
			changes.Create = append(changes.Create, newSlice(endpoints, g.family, content, limit))
			continue
		}
		slice := have[g][0]
		if upToDate(slice, endpoints, content.list(limit)) {
			changes.Unchanged = append(changes.Unchanged, slice)
			continue
		}
		renewed := newSlice(endpoints, g.family, content, limit)
		renewed.GenerateName, renewed.Name = "", slice.Name
		changes.Update = append(changes.Update, renewed)
	}
	changes.recycle()
	if endpoints.DeletionTimestamp != nil {
		changes.Create = nil // the garbage collector would have to delete it again
	}
	return changes
}

// recycle turns creations into updates of slices of the same family that would
// be deleted: a client of the Service then never sees it without endpoints.
func (c *Changes) recycle() {
	c.Create = slices.DeleteFunc(c.Create, func(created *discoveryv1.EndpointSlice) bool {
		i := slices.IndexFunc(c.Delete, func(deleted *discoveryv1.EndpointSlice) bool {
			return deleted.AddressType == created.AddressType
		})
		if i < 0 {
			return false
		}
		created.Name = c.Delete[i].Name // beside generateName, as kube-controller-manager leaves it
		c.Update = append(c.Update, created)
		c.Delete = slices.Delete(c.Delete, i, i+1)
		return true
	})
}

func byName(unordered []*discoveryv1.EndpointSlice) []*discoveryv1.EndpointSlice {
	return slices.SortedFunc(slices.Values(unordered), func(a, b *discoveryv1.EndpointSlice) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// upToDate compares a slice with what it should hold. The order of endpoints does
// not matter: kube-controller-manager writes them in none.
func upToDate(slice *discoveryv1.EndpointSlice, endpoints *corev1.Endpoints, want []discoveryv1.Endpoint) bool {
	if len(slice.Endpoints) != len(want) ||
		!equality.Semantic.DeepEqual(slice.Labels, labelsFor(endpoints)) ||
		!equality.Semantic.DeepEqual(slice.Annotations, annotationsFor(endpoints)) ||
		ownedByPredecessor(slice, endpoints) {
		return false
	}
	have := endpointsliceutil.EndpointSet{}
	for i := range slice.Endpoints {
		endpoint := slice.Endpoints[i]
		endpoint.Addresses = slices.Clone(endpoint.Addresses) // the set sorts them
		have.Insert(&endpoint)
	}
	for i := range want {
		endpoint := have.Get(&want[i])
		if endpoint == nil || !endpointsliceutil.EndpointsEqualBeyondHash(endpoint, &want[i]) {
			return false
		}
	}
	return true
}

// ownedByPredecessor says that the slice copies an object that had the same
// name: the garbage collector is about to delete it.
func ownedByPredecessor(slice *discoveryv1.EndpointSlice, endpoints *corev1.Endpoints) bool {
	return slices.ContainsFunc(slice.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Kind == "Endpoints" && owner.Name == endpoints.Name && owner.UID != endpoints.UID
	})
}

func newSlice(endpoints *corev1.Endpoints, family discoveryv1.AddressType, content *content, limit int) *discoveryv1.EndpointSlice {
	owner := metav1.NewControllerRef(endpoints, corev1.SchemeGroupVersion.WithKind("Endpoints"))
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       endpoints.Namespace,
			GenerateName:    endpoints.Name + "-",
			Labels:          labelsFor(endpoints),
			Annotations:     annotationsFor(endpoints),
			OwnerReferences: []metav1.OwnerReference{*owner},
		},
		AddressType: family,
		Ports:       content.ports,
		Endpoints:   content.list(limit),
	}
}

func labelsFor(endpoints *corev1.Endpoints) map[string]string {
	labels := map[string]string{}
	for name, value := range endpoints.Labels {
		labels[name] = value
	}
	labels[discoveryv1.LabelServiceName] = endpoints.Name
	labels[discoveryv1.LabelManagedBy] = ManagedBy
	return labels
}

// annotationsFor leaves out what is about the Endpoints object itself.
func annotationsFor(endpoints *corev1.Endpoints) map[string]string {
	annotations := map[string]string{}
	for name, value := range endpoints.Annotations {
		if name != corev1.EndpointsLastChangeTriggerTime && name != corev1.LastAppliedConfigAnnotation {
			annotations[name] = value
		}
	}
	return annotations
}
