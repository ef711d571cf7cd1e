// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var seed = flag.Uint64("seed", 0, "replay the random graph of this seed; 0 is another one each time")

// model says what must be left: objects and their references, by uid.
type model map[types.UID]*modelled

type modelled struct {
	object
	references []metav1.OwnerReference
}

// alive reports whether the owner that the object refers to is there.
func (m model) alive(o *modelled, reference metav1.OwnerReference) bool {
	owner := m[reference.UID]
	return owner != nil && owner.name == reference.Name && (owner.namespace == "" || owner.namespace == o.namespace)
}

// stuck reports whether an object has a reference that nobody can judge.
func (o *modelled) stuck() bool {
	return o.namespace == "" && slices.ContainsFunc(o.references, func(r metav1.OwnerReference) bool { return r.Kind != "Node" })
}

// unblock keeps an object that nobody can judge from holding its owners for ever.
func (o *modelled) unblock() {
	if !o.stuck() {
		return
	}
	for i := range o.references {
		o.references[i].BlockOwnerDeletion = ptr.To(false)
	}
}

// collect removes what has lost all its owners, until there is no more of it,
// and then the dangling references of the rest.
func (m model) collect() {
	for again := true; again; {
		again = false
		for uid, o := range m {
			if len(o.references) == 0 || o.stuck() || slices.ContainsFunc(o.references, func(r metav1.OwnerReference) bool { return m.alive(o, r) }) {
				continue
			}
			delete(m, uid)
			again = true
		}
	}
	for _, o := range m {
		if !o.stuck() {
			o.references = slices.DeleteFunc(o.references, func(r metav1.OwnerReference) bool { return !m.alive(o, r) })
		}
	}
}

// delete is a deletion by a user.
func (m model) delete(uid types.UID, policy metav1.DeletionPropagation) {
	namespace := m[uid].namespace
	delete(m, uid)
	for _, o := range m {
		if policy == orphan && (namespace == "" || namespace == o.namespace) {
			o.references = slices.DeleteFunc(o.references, func(r metav1.OwnerReference) bool { return r.UID == uid })
		}
	}
}

// text is the model in a form to be compared.
func (m model) text() string {
	var lines []string
	for _, o := range m {
		lines = append(lines, describe(o.object, o.references))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func describe(o object, references []metav1.OwnerReference) string {
	var names []string
	for _, r := range references {
		names = append(names, r.Kind+"/"+r.Name)
	}
	slices.Sort(names)
	return fmt.Sprintf("%s: %v", o, names)
}

// text is what the server has, in the same form.
func (f *fixture) text() string {
	f.Helper()
	var lines []string
	for resource := range kindNames {
		list, err := f.metadata.Resource(resource).List(f.Context(), metav1.ListOptions{})
		if err != nil {
			f.Fatal(err)
		}
		for _, item := range list.Items {
			lines = append(lines, describe(object{resource: resource, namespace: item.Namespace, name: item.Name}, item.OwnerReferences))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestRandomGraph makes random objects that refer to each other, deletes some,
// and compares what is left with what a pure function says.
func TestRandomGraph(t *testing.T) {
	number := *seed
	if number == 0 {
		number = uint64(time.Now().UnixNano())
	}
	t.Logf("replay with -seed=%d", number)
	random := rand.New(rand.NewPCG(number, 0)) //nolint:gosec // replayable
	f := start(t, 3)
	m := model{}
	resources := []schema.GroupVersionResource{configMaps, configMaps, pods, deployments, replicaSets, nodes}
	policies := []metav1.DeletionPropagation{background, foreground}
	count := 0

	// The uids of a server are not the same in a replay, the names are.
	pick := func() *modelled {
		all := slices.SortedFunc(maps.Values(m), func(a, b *modelled) int { return strings.Compare(a.name, b.name) })
		return all[random.IntN(len(all))]
	}
	reference := func() metav1.OwnerReference {
		if len(m) == 0 || random.IntN(12) == 0 {
			return object{resource: configMaps, name: "absent", uid: types.UID(fmt.Sprintf("absent-%d", random.Uint64()))}.ref(random.IntN(2) == 0)
		}
		r := pick().ref(random.IntN(2) == 0)
		if random.IntN(20) == 0 {
			r.Name = "another"
		}
		return r
	}
	references := func() []metav1.OwnerReference {
		var list []metav1.OwnerReference
		for range random.IntN(4) {
			r := reference()
			if !slices.ContainsFunc(list, func(other metav1.OwnerReference) bool { return other.UID == r.UID }) {
				list = append(list, r)
			}
		}
		return list
	}
	create := func() {
		count++
		namespace, resource := "a", resources[random.IntN(len(resources))]
		if random.IntN(5) == 0 {
			namespace = "b"
		}
		if resource == nodes {
			namespace = ""
		}
		o := &modelled{references: references()}
		o.namespace = namespace
		o.unblock()
		o.object = f.create(resource, namespace, fmt.Sprintf("o%03d", count), o.references...)
		m[o.uid] = o
	}
	quiet := func(what string) {
		t.Helper()
		m.collect()
		want, got := m.text(), ""
		deadline := time.Now().Add(patience)
		for got = f.text(); got != want && time.Now().Before(deadline); got = f.text() {
			<-time.After(2 * time.Millisecond)
		}
		if got != want {
			t.Fatalf("after %s\ngot:\n%s\nwant:\n%s", what, got, want)
		}
	}

	for round := range 25 {
		for range 2 + random.IntN(8) {
			create()
		}
		quiet(fmt.Sprintf("creations of round %d", round))
		// References may be given later too, and make circles.
		for range random.IntN(3) {
			if len(m) == 0 {
				continue
			}
			o, added := pick(), reference()
			if slices.ContainsFunc(o.references, func(r metav1.OwnerReference) bool { return r.UID == added.UID }) || len(o.references) == 0 {
				continue
			}
			o.references = append(o.references, added)
			o.unblock()
			f.refer(o)
		}
		quiet(fmt.Sprintf("references of round %d", round))
		if len(m) == 0 {
			continue
		}
		if random.IntN(3) == 0 {
			o := pick()
			f.delete(o.object, orphan)
			m.delete(o.uid, orphan)
			quiet(fmt.Sprintf("orphaning by %s in round %d", o, round))
			continue
		}
		var deleted []string
		for range 1 + random.IntN(4) {
			if len(m) == 0 {
				break
			}
			o, policy := pick(), policies[random.IntN(2)]
			// An earlier one of this round may have taken it along.
			_ = f.metadata.Resource(o.resource).Namespace(o.namespace).Delete(t.Context(), o.name, metav1.DeleteOptions{PropagationPolicy: &policy})
			m.delete(o.uid, policy)
			deleted = append(deleted, o.String()+" "+string(policy))
		}
		quiet(fmt.Sprintf("deletions of round %d: %v", round, deleted))
	}
	t.Logf("%d objects were made, %d are left", count, len(m))
	f.settle()
}

// refer writes the references of an object.
func (f *fixture) refer(o *modelled) {
	f.Helper()
	var list []string
	for _, r := range o.references {
		list = append(list, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"blockOwnerDeletion":%v}`, r.APIVersion, r.Kind, r.Name, r.UID, *r.BlockOwnerDeletion))
	}
	f.patch(o.object, `{"metadata":{"ownerReferences":[`+strings.Join(list, ",")+`]}}`)
}
