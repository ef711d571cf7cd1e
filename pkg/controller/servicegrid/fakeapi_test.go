// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	"github.com/grid-apiserver/grid-apiserver/pkg/generated/clientset/versioned"
	gridfake "github.com/grid-apiserver/grid-apiserver/pkg/generated/clientset/versioned/fake"
)

const (
	servicesResource = "services"
	gridsResource    = "servicegrids"
)

// fakeAPI is as much of an API server as the controller needs, with a history of what happened, so that informers can
// lag behind. Unlike the fake clientsets alone it has revisions, conflicts and preconditions, and it treats Services as
// the real one does: it sets defaults, allocates, and refuses or undoes some changes.
type fakeAPI struct {
	mu       sync.Mutex
	objects  map[string]map[types.NamespacedName]metav1.Object
	history  map[string][]fakeEvent
	watchers map[string][]*watch.FakeWatcher
	revision int
	uids     int
	ports    int32

	// The requests of the controller, Events left out.
	reads, writes int
	// fault is asked before and after each request of the controller. A fault after it loses the answer.
	fault func(verb, resource string, after bool) error
	// admit is an admission webhook.
	admit func(*corev1.Service)
}

type fakeEvent struct {
	kind     watch.EventType
	old, obj metav1.Object
	revision int
}

func newFakeAPI() *fakeAPI {
	return &fakeAPI{
		objects:  map[string]map[types.NamespacedName]metav1.Object{servicesResource: {}, gridsResource: {}},
		history:  map[string][]fakeEvent{},
		watchers: map[string][]*watch.FakeWatcher{},
		ports:    30000,
	}
}

// clients returns clients of the controller.
func (f *fakeAPI) clients() (kubernetes.Interface, versioned.Interface) {
	core, grids := &kubefake.Clientset{}, &gridfake.Clientset{}
	core.AddReactor("*", servicesResource, f.react)
	core.AddWatchReactor(servicesResource, f.watch)
	grids.AddReactor("*", gridsResource, f.react)
	grids.AddWatchReactor(gridsResource, f.watch)
	return core, grids
}

func (f *fakeAPI) react(action clienttesting.Action) (bool, runtime.Object, error) {
	resource := action.GetResource().Resource
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fault != nil {
		if err := f.fault(action.GetVerb(), resource, false); err != nil {
			return true, nil, err
		}
	}
	obj, err := f.handle(action, resource)
	if err == nil && f.fault != nil {
		err = f.fault(action.GetVerb(), resource, true)
	}
	if err != nil {
		return true, nil, err
	}
	return true, obj, nil
}

func (f *fakeAPI) handle(action clienttesting.Action, resource string) (runtime.Object, error) {
	key := types.NamespacedName{Namespace: action.GetNamespace()}
	switch action := action.(type) {
	case clienttesting.ListActionImpl:
		return f.list(resource), nil
	case clienttesting.UpdateActionImpl:
		f.writes++
		return toRuntime(f.updateLocked(resource, action.GetObject().(metav1.Object), action.GetSubresource()))
	case clienttesting.CreateActionImpl:
		f.writes++
		return toRuntime(f.createLocked(resource, action.GetObject().(metav1.Object)))
	case clienttesting.DeleteActionImpl:
		f.writes++
		key.Name = action.Name
		return nil, f.deleteLocked(resource, key, action.GetDeleteOptions().Preconditions)
	case clienttesting.GetActionImpl:
		f.reads++
		key.Name = action.GetName()
		obj, ok := f.objects[resource][key]
		if !ok {
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, key.Name)
		}
		return toRuntime(obj, nil)
	}
	return nil, fmt.Errorf("unexpected %s of %s", action.GetVerb(), resource)
}

func toRuntime(obj metav1.Object, err error) (runtime.Object, error) {
	if err != nil {
		return nil, err
	}
	return obj.(runtime.Object).DeepCopyObject(), nil
}

func (f *fakeAPI) list(resource string) runtime.Object {
	revision := metav1.ListMeta{ResourceVersion: strconv.Itoa(f.revision)}
	var result runtime.Object = &corev1.ServiceList{ListMeta: revision}
	if resource == gridsResource {
		result = &superedgev1.ServiceGridList{ListMeta: revision}
	}
	var items []runtime.Object
	for _, obj := range f.objects[resource] {
		items = append(items, obj.(runtime.Object).DeepCopyObject())
	}
	if err := meta.SetList(result, items); err != nil {
		panic(err)
	}
	return result
}

func (f *fakeAPI) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	watcher := watch.NewFakeWithChanSize(10_000, false)
	resource := action.GetResource().Resource
	from, err := strconv.Atoi(action.(clienttesting.WatchActionImpl).WatchRestrictions.ResourceVersion)
	if err != nil {
		return true, nil, err
	}
	for _, event := range f.history[resource] {
		if event.revision > from {
			watcher.Action(event.kind, event.obj.(runtime.Object))
		}
	}
	f.watchers[resource] = append(f.watchers[resource], watcher)
	return true, watcher, nil
}

// The following are the requests of users and of other controllers.

func (f *fakeAPI) create(obj metav1.Object) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.createLocked(resourceOf(obj), obj)
	return err
}

// edit changes the object named name as a user does who reads it and writes it at once.
func (f *fakeAPI) edit(resource string, key types.NamespacedName, change func(obj metav1.Object)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	obj, ok := f.objects[resource][key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, key.Name)
	}
	edited := obj.(runtime.Object).DeepCopyObject().(metav1.Object)
	change(edited)
	_, err := f.updateLocked(resource, edited, "")
	return err
}

func (f *fakeAPI) remove(resource string, key types.NamespacedName) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deleteLocked(resource, key, nil)
}

func (f *fakeAPI) service(key types.NamespacedName) *corev1.Service {
	f.mu.Lock()
	defer f.mu.Unlock()
	if obj, ok := f.objects[servicesResource][key]; ok {
		return obj.(*corev1.Service).DeepCopy()
	}
	return nil
}

func (f *fakeAPI) grid(key types.NamespacedName) *superedgev1.ServiceGrid {
	f.mu.Lock()
	defer f.mu.Unlock()
	if obj, ok := f.objects[gridsResource][key]; ok {
		return obj.(*superedgev1.ServiceGrid).DeepCopy()
	}
	return nil
}

// keys returns the names of all objects, in order.
func (f *fakeAPI) keys(resource string) []types.NamespacedName {
	f.mu.Lock()
	defer f.mu.Unlock()
	var keys []types.NamespacedName
	for key := range f.objects[resource] {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return compareNames(a.String(), b.String()) })
	return keys
}

func (f *fakeAPI) writeCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// What a storage does.

func (f *fakeAPI) createLocked(resource string, obj metav1.Object) (metav1.Object, error) {
	key := nameOf(obj)
	if _, ok := f.objects[resource][key]; ok {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: resource}, key.Name)
	}
	obj = obj.(runtime.Object).DeepCopyObject().(metav1.Object)
	f.uids++
	obj.SetUID(types.UID(fmt.Sprintf("uid-%d", f.uids)))
	obj.SetGeneration(1)
	if service, ok := obj.(*corev1.Service); ok {
		if f.admit != nil {
			f.admit(service)
		}
		if err := f.prepareService(service, nil); err != nil {
			return nil, err
		}
	}
	f.store(resource, watch.Added, nil, obj)
	return obj, nil
}

func (f *fakeAPI) updateLocked(resource string, obj metav1.Object, subresource string) (metav1.Object, error) {
	key, groupResource := nameOf(obj), schema.GroupResource{Resource: resource}
	old, ok := f.objects[resource][key]
	switch {
	case !ok:
		return nil, apierrors.NewNotFound(groupResource, key.Name)
	case obj.GetResourceVersion() != old.GetResourceVersion(), obj.GetUID() != old.GetUID():
		return nil, apierrors.NewConflict(groupResource, key.Name, errors.New("it has changed"))
	}
	obj = obj.(runtime.Object).DeepCopyObject().(metav1.Object)
	switch obj := obj.(type) {
	case *corev1.Service:
		if f.admit != nil {
			f.admit(obj)
		}
		if err := f.prepareService(obj, old.(*corev1.Service)); err != nil {
			return nil, err
		}
	case *superedgev1.ServiceGrid:
		prepareGrid(obj, old.(*superedgev1.ServiceGrid), subresource)
	}
	if equality.Semantic.DeepEqual(obj, old) {
		return old, nil
	}
	f.store(resource, watch.Modified, old, obj)
	return obj, nil
}

func prepareGrid(obj, old *superedgev1.ServiceGrid, subresource string) {
	if subresource == "status" {
		status := obj.Status
		old.DeepCopyInto(obj)
		obj.Status = status
		return
	}
	obj.Status = old.Status
	if !equality.Semantic.DeepEqual(obj.Spec, old.Spec) {
		obj.Generation = old.Generation + 1
	}
}

func (f *fakeAPI) deleteLocked(resource string, key types.NamespacedName, preconditions *metav1.Preconditions) error {
	groupResource := schema.GroupResource{Resource: resource}
	old, ok := f.objects[resource][key]
	if !ok {
		return apierrors.NewNotFound(groupResource, key.Name)
	}
	if p := preconditions; p != nil && (*p.UID != old.GetUID() || *p.ResourceVersion != old.GetResourceVersion()) {
		return apierrors.NewConflict(groupResource, key.Name, errors.New("precondition"))
	}
	f.store(resource, watch.Deleted, old, old.(runtime.Object).DeepCopyObject().(metav1.Object))
	return nil
}

func (f *fakeAPI) store(resource string, kind watch.EventType, old, obj metav1.Object) {
	f.revision++
	obj.SetResourceVersion(strconv.Itoa(f.revision))
	if kind == watch.Deleted {
		delete(f.objects[resource], nameOf(obj))
	} else {
		f.objects[resource][nameOf(obj)] = obj
	}
	f.history[resource] = append(f.history[resource], fakeEvent{kind: kind, old: old, obj: obj, revision: f.revision})
	for _, watcher := range f.watchers[resource] {
		if !watcher.IsStopped() {
			watcher.Action(kind, obj.(runtime.Object).DeepCopyObject())
		}
	}
}

func nameOf(obj metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

func resourceOf(obj metav1.Object) string {
	if _, ok := obj.(*superedgev1.ServiceGrid); ok {
		return gridsResource
	}
	return servicesResource
}
