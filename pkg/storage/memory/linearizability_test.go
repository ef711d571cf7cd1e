// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"
)

// The operations of a history. An expected revision of 0 means any.
const (
	opCreate = "create"
	opUpdate = "update" // reads and writes: the new version is derived from the old one
	opDelete = "delete"
	opGet    = "get"
	opList   = "list"
)

// What an operation can end with.
const (
	resultOK       = "ok"
	resultExists   = "exists"
	resultNotFound = "not found"
	resultConflict = "conflict"
)

const (
	linearKeys    = 3
	linearTimeout = 30 * time.Second // for the check of one history, which takes milliseconds
)

// request and response are what porcupine calls input and output.
type request struct {
	kind     string
	key      int
	expected uint64 // the resourceVersion that the client saw last, if it insists on it
	version  string // what is written
}

type response struct {
	result   string
	register register // what was written, read or deleted; for a deletion the last version at the revision of the deletion
	list     listing
}

// register is one key. Its revision stays when the version, "", goes.
type register struct {
	revision uint64
	version  string
}

// listing is a LIST, and the state of a whole store: the revision of the last change, and all keys.
type listing struct {
	revision uint64
	keys     [linearKeys]register
}

// stepKey says whether a request for one key can be answered so, and what the key is after it. Revisions of a key rise.
func stepKey(in request, out response, state register) (bool, register) {
	present := state.version != ""
	written := register{revision: out.register.revision, version: in.version}
	switch {
	case in.kind == opCreate && present:
		return out.result == resultExists, state
	case in.kind == opCreate:
		return out.result == resultOK && out.register == written && written.revision > state.revision, written
	case !present:
		return out.result == resultNotFound, state
	case in.kind == opGet:
		return out.result == resultOK && out.register == state, state
	case in.expected != 0 && in.expected != state.revision:
		return out.result == resultConflict, state
	case in.kind == opUpdate:
		written.version = nextVersion(state.version, in.version)
		return out.result == resultOK && out.register == written && written.revision > state.revision, written
	default: // opDelete
		gone := register{revision: out.register.revision}
		return out.result == resultOK && out.register.version == state.version && gone.revision > state.revision, gone
	}
}

// nextVersion keeps what was there, so an update that was lost shows in all versions after it.
func nextVersion(old, add string) string { return old + "," + add }

// stepStore is stepKey for a whole store that nobody else writes to: every change takes the next revision, and a LIST
// shows all keys at the revision of the last change.
func stepStore(state, input, output any) (bool, any) {
	whole, in, out := state.(listing), input.(request), output.(response)
	if in.kind == opList {
		shown := out.list
		for i, key := range whole.keys {
			if key.version == "" && shown.keys[i] == (register{}) {
				shown.keys[i] = key // a LIST does not tell when a key went
			}
		}
		return shown == whole, whole
	}
	ok, key := stepKey(in, out, whole.keys[in.key])
	if key != whole.keys[in.key] {
		whole.revision++
		ok = ok && key.revision == whole.revision
		whole.keys[in.key] = key
	}
	return ok, whole
}

// storeModel is the model of a whole store whose first change gets start+1.
func storeModel(start uint64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return listing{revision: start} },
		Step: stepStore,
		DescribeOperation: func(in, out any) string {
			return fmt.Sprintf("%+v -> %+v", in, out)
		},
	}
}

// keyModel is the model of single keys, which can be checked one by one if there is no LIST.
func keyModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byKey := make([][]porcupine.Operation, linearKeys)
			for _, operation := range history {
				key := operation.Input.(request).key
				byKey[key] = append(byKey[key], operation)
			}
			return byKey
		},
		Init: func() any { return register{} },
		Step: func(state, in, out any) (bool, any) {
			return stepKey(in.(request), out.(response), state.(register))
		},
	}
}

// linearClient does requests and remembers when they began and ended.
type linearClient struct {
	id      int
	store   storage.Interface
	random  *rand.Rand
	kinds   []string
	seen    [linearKeys]uint64 // the revision that it saw last
	count   int
	epoch   time.Time
	history []porcupine.Operation
}

func linearKey(key int) string { return fmt.Sprintf("/pods/ns/p%d", key) }

func (c *linearClient) next() request {
	c.count++
	in := request{kind: c.kinds[c.random.IntN(len(c.kinds))], key: c.random.IntN(linearKeys), version: fmt.Sprintf("%d.%d", c.id, c.count)}
	if in.kind == opUpdate || in.kind == opDelete {
		if c.random.IntN(2) == 0 {
			in.expected = c.seen[in.key]
		}
	}
	return in
}

func (c *linearClient) do(ctx context.Context) error {
	in := c.next()
	call := time.Since(c.epoch)
	out, err := c.ask(ctx, in)
	if err != nil {
		return fmt.Errorf("%+v: %w", in, err)
	}
	c.history = append(c.history, porcupine.Operation{
		ClientId: c.id, Input: in, Call: int64(call), Output: out, Return: int64(time.Since(c.epoch)),
	})
	if out.register.revision != 0 {
		c.seen[in.key] = out.register.revision
	}
	return nil
}

func (c *linearClient) ask(ctx context.Context, in request) (response, error) {
	key, name := linearKey(in.key), fmt.Sprintf("p%d", in.key)
	var preconditions *storage.Preconditions
	if in.expected != 0 {
		expected := fmt.Sprint(in.expected)
		preconditions = &storage.Preconditions{ResourceVersion: &expected}
	}
	object := &example.Pod{}
	var err error
	switch in.kind {
	case opCreate:
		err = c.store.Create(ctx, key, pod("ns", name, in.version), object, 0)
	case opUpdate:
		err = c.store.GuaranteedUpdate(ctx, key, object, false, preconditions, storage.SimpleUpdate(func(input runtime.Object) (runtime.Object, error) {
			present := input.(*example.Pod)
			present.Annotations["version"] = nextVersion(present.Annotations["version"], in.version)
			return present, nil
		}), nil)
	case opDelete:
		err = c.store.Delete(ctx, key, object, preconditions, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
	case opGet:
		err = c.store.Get(ctx, key, storage.GetOptions{}, object)
	case opList:
		return c.list(ctx)
	}
	switch {
	case storage.IsExist(err):
		return response{result: resultExists}, nil
	case storage.IsNotFound(err):
		return response{result: resultNotFound}, nil
	case storage.IsInvalidObj(err), storage.IsConflict(err):
		return response{result: resultConflict}, nil
	case err != nil:
		return response{}, err
	}
	read, err := registerOf(object)
	return response{result: resultOK, register: read}, err
}

func registerOf(object *example.Pod) (register, error) {
	revision, err := versioner.ObjectResourceVersion(object)
	return register{revision: revision, version: object.Annotations["version"]}, err
}

func (c *linearClient) list(ctx context.Context) (response, error) {
	list := &example.PodList{}
	if err := c.store.GetList(ctx, "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, list); err != nil {
		return response{}, err
	}
	out := response{result: resultOK}
	var err error
	if out.list.revision, err = versioner.ParseResourceVersion(list.ResourceVersion); err != nil {
		return response{}, err
	}
	for i := range list.Items {
		var key int
		if _, err := fmt.Sscanf(list.Items[i].Name, "p%d", &key); err != nil {
			return response{}, err
		}
		if out.list.keys[key], err = registerOf(&list.Items[i]); err != nil {
			return response{}, err
		}
	}
	return out, nil
}

// linearHistory lets clients write and read at the same time.
func linearHistory(t *testing.T, store storage.Interface, random *rand.Rand, clients, operations int, kinds ...string) []porcupine.Operation {
	t.Helper()
	all := make([]*linearClient, clients)
	epoch := time.Now()
	begin := make(chan struct{})
	var group sync.WaitGroup
	for id := range all {
		client := &linearClient{id: id, store: store, random: split(random), kinds: kinds, epoch: epoch}
		all[id] = client
		group.Go(func() {
			<-begin
			for range operations {
				if err := client.do(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	close(begin)
	group.Wait()
	var history []porcupine.Operation
	for _, client := range all {
		history = append(history, client.history...)
	}
	return history
}

// settle waits until the cacher has delivered everything: if it is stopped with a hundred changes on their way, its Stop
// waits for ever for the reflector, and that for room in a queue that nobody empties any more.
func settle(t *testing.T, cached *cachedStore) {
	t.Helper()
	const key = "/pods/settled/p"
	ctx, cancel := context.WithTimeout(t.Context(), wait.ForeverTestTimeout)
	defer cancel()
	eventually(t, "the cacher delivers everything", func() bool {
		w, err := cached.Watch(ctx, key, storage.ListOptions{Predicate: storage.Everything, SendInitialEvents: ptr.To(false)})
		if apierrors.IsTooManyRequests(err) {
			return false // it fills itself anew
		}
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if _, err := cached.below.Apply(Change{Key: key, Object: pod("settled", "p", "1")}); err != nil {
			t.Fatal(err)
		}
		event, open := <-w.ResultChan() // the cacher ends a watch that is too slow for what is on its way
		return open && event.Type != watch.Error
	})
}

func checkLinearizable(t *testing.T, model porcupine.Model, history []porcupine.Operation) {
	t.Helper()
	if t.Failed() {
		return
	}
	if result := porcupine.CheckOperationsTimeout(model, history, linearTimeout); result != porcupine.Ok {
		slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		var text strings.Builder
		for _, o := range history {
			fmt.Fprintf(&text, "%8d-%8d client %d: %+v -> %+v\n", o.Call, o.Return, o.ClientId, o.Input, o.Output)
		}
		t.Fatalf("the history is not linearizable (%s):\n%s", result, &text)
	}
}

// TestStoreIsLinearizable checks concurrent requests on the store itself, and through the stock cacher, whose GET and LIST
// without a resourceVersion are consistent reads.
func TestStoreIsLinearizable(t *testing.T) {
	everything := []string{opCreate, opUpdate, opUpdate, opDelete, opGet, opList}
	forEachMode(t, func(t *testing.T, newStore newStoreFunc) {
		t.Run("all keys at once", func(t *testing.T) {
			atRandom(t, 5, func(t *testing.T, random *rand.Rand) {
				store := newStore(t)
				history := linearHistory(t, store, random, 4, 60, everything...)
				checkLinearizable(t, storeModel(store.floor), history)
			})
		})
		t.Run("key by key", func(t *testing.T) {
			atRandom(t, 3, func(t *testing.T, random *rand.Rand) {
				history := linearHistory(t, newStore(t), random, 6, 120, opCreate, opUpdate, opDelete, opGet)
				checkLinearizable(t, keyModel(), history)
			})
		})
		t.Run("under the cacher", func(t *testing.T) {
			atRandom(t, 2, func(t *testing.T, random *rand.Rand) {
				store := newStore(t)
				cached := newCachedStore(t, store)
				history := linearHistory(t, cached, random, 4, 40, everything...)
				settle(t, cached)
				checkLinearizable(t, storeModel(store.floor), history)
			})
		})
	})
}

// TestLinearModelRefusesWrongHistories checks the check.
func TestLinearModelRefusesWrongHistories(t *testing.T) {
	one := func(in request, out response) []porcupine.Operation { return sequence([]request{in}, []response{out}) }
	created := response{result: resultOK, register: register{revision: 2, version: "a"}}
	create := request{kind: opCreate, version: "a"}
	update := request{kind: opUpdate, version: "b"}
	get, list := request{kind: opGet}, request{kind: opList}
	wrote := func(revision uint64, version string) response {
		return response{result: resultOK, register: register{revision: revision, version: version}}
	}
	listed := func(revision uint64, keys ...register) response {
		out := response{result: resultOK, list: listing{revision: revision}}
		copy(out.list.keys[:], keys)
		return out
	}
	for _, test := range []struct {
		name    string
		history []porcupine.Operation
		want    porcupine.CheckResult
	}{
		{"right", sequence([]request{create, update, get, list}, []response{created, wrote(3, "a,b"), wrote(3, "a,b"), listed(3, register{3, "a,b"})}), porcupine.Ok},
		{"an object out of nothing", one(get, created), porcupine.Illegal},
		{"a stale GET", sequence([]request{create, update, get}, []response{created, wrote(3, "a,b"), created}), porcupine.Illegal},
		{"a stale LIST", sequence([]request{create, update, list}, []response{created, wrote(3, "a,b"), listed(2, register{2, "a"})}), porcupine.Illegal},
		{"a LIST of two times", sequence([]request{create, update, list}, []response{created, wrote(3, "a,b"), listed(3, register{2, "a"})}), porcupine.Illegal},
		{"a LIST of what is deleted", sequence([]request{create, {kind: opDelete}, list}, []response{created, wrote(3, "a"), listed(3, register{2, "a"})}), porcupine.Illegal},
		{"a lost update", sequence([]request{create, update, update}, []response{created, wrote(3, "a,b"), wrote(4, "a,b")}), porcupine.Illegal},
		{"a revision twice", sequence([]request{create, update}, []response{created, wrote(2, "a,b")}), porcupine.Illegal},
		{"a revision left out", sequence([]request{create, update}, []response{created, wrote(4, "a,b")}), porcupine.Illegal},
		{"an update of an old revision", sequence([]request{create, update, {kind: opUpdate, version: "b", expected: 2}},
			[]response{created, wrote(3, "a,b"), wrote(4, "a,b,b")}), porcupine.Illegal},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := porcupine.CheckOperationsTimeout(storeModel(1), test.history, linearTimeout); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// sequence is a history of one client.
func sequence(in []request, out []response) []porcupine.Operation {
	history := make([]porcupine.Operation, len(in))
	for i := range in {
		history[i] = porcupine.Operation{Input: in[i], Output: out[i], Call: int64(2 * i), Return: int64(2*i + 1)}
	}
	return history
}
