// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakekube is what the tests of the endpoints controllers share: a
// small API server in memory whose watches lag as the test wants.
package fakekube

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// Object is an API object.
type Object interface {
	runtime.Object
	metav1.Object
}

// change is one entry of a resource's history.
type change struct {
	revision int64
	kind     watch.EventType
	object   Object
}

// resource holds one kind of object.
type resource struct {
	stored  map[string]Object // what has been written
	visible map[string]Object // what lists show: stored, some changes ago
	hidden  []change          // those changes
	held    bool              // changes stay hidden until they are released

	shown    []change // all that are visible, for watches
	watchers []*watcher
}

// Cluster is an API server for services, pods, nodes, endpoints and
// endpointslices. It has what the controllers rely upon: conflicts of old
// revisions, updates that change nothing, generated names, uids, generations
// of slices.
type Cluster struct {
	lock      sync.Mutex
	revision  int64
	names     int
	resources map[string]*resource
	writes    []string
	fail      func(verb, resource string) error
}

// NewCluster returns an empty one.
func NewCluster() *Cluster {
	c := &Cluster{resources: map[string]*resource{}}
	for _, name := range Resources {
		c.resources[name] = &resource{stored: map[string]Object{}, visible: map[string]Object{}}
	}
	return c
}

// Resources are the names of what a Cluster stores.
var Resources = []string{"services", "pods", "nodes", "endpoints", "endpointslices"}

// Client returns a client for controllers, whose writes are counted.
func (c *Cluster) Client() *fake.Clientset {
	client := &fake.Clientset{}
	client.AddReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		object, err := c.react(action)
		return true, object, err
	})
	client.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := c.watch(action)
		return true, w, err
	})
	return client
}

// Fail has every write of a controller ask f for an error first.
func (c *Cluster) Fail(f func(verb, resource string) error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.fail = f
}

// Writes returns the writes of controllers so far, also those that failed.
func (c *Cluster) Writes() []string {
	c.lock.Lock()
	defer c.lock.Unlock()
	return append([]string(nil), c.writes...)
}

// Put creates or replaces an object, as a user does.
func (c *Cluster) Put(object Object) {
	c.lock.Lock()
	defer c.lock.Unlock()
	name := resourceOf(object)
	object = object.DeepCopyObject().(Object)
	object.SetResourceVersion("")
	if _, exists := c.resources[name].stored[keyOf(object)]; exists {
		must(c.update(name, object))
		return
	}
	must(c.create(name, object))
}

// Remove deletes an object, as a user does. There need not be one.
func (c *Cluster) Remove(resource, namespace, name string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	err := c.delete(resource, namespace+"/"+name)
	if err != nil && !apierrors.IsNotFound(err) {
		panic(err)
	}
}

func must(_ Object, err error) {
	if err != nil {
		panic(err) // a mistake in the test
	}
}

// Get returns a copy of an object, or nil.
func Get[T Object](c *Cluster, resource, namespace, name string) T {
	c.lock.Lock()
	defer c.lock.Unlock()
	object, ok := c.resources[resource].stored[namespace+"/"+name]
	if !ok {
		var none T
		return none
	}
	return object.DeepCopyObject().(T)
}

// All returns copies of all objects of a resource, by key.
func All[T Object](c *Cluster, resource string) map[string]T {
	c.lock.Lock()
	defer c.lock.Unlock()
	all := map[string]T{}
	for key, object := range c.resources[resource].stored {
		all[key] = object.DeepCopyObject().(T)
	}
	return all
}

func resourceOf(object Object) string {
	switch object.(type) {
	case *corev1.Service:
		return "services"
	case *corev1.Pod:
		return "pods"
	case *corev1.Node:
		return "nodes"
	case *corev1.Endpoints:
		return "endpoints"
	case *discoveryv1.EndpointSlice:
		return "endpointslices"
	}
	panic(fmt.Sprintf("there is no resource for %T", object))
}

func keyOf(object Object) string {
	return object.GetNamespace() + "/" + object.GetName()
}

func groupResource(name string) schema.GroupResource {
	return schema.GroupResource{Resource: name}
}

func (c *Cluster) create(name string, object Object) (Object, error) {
	if object.GetName() == "" {
		c.names++
		object.SetName(fmt.Sprintf("%s%05d", object.GetGenerateName(), c.names))
	}
	if _, exists := c.resources[name].stored[keyOf(object)]; exists {
		return nil, apierrors.NewAlreadyExists(groupResource(name), object.GetName())
	}
	if err := valid(object); err != nil {
		return nil, err
	}
	c.names++
	if object.GetUID() == "" {
		object.SetUID(types.UID(fmt.Sprintf("uid-%05d", c.names)))
	}
	if object.GetCreationTimestamp().Time.IsZero() {
		object.SetCreationTimestamp(metav1.NewTime(time.Now()))
	}
	object.SetGeneration(1)
	return c.store(name, watch.Added, object), nil
}

func (c *Cluster) update(name string, object Object) (Object, error) {
	old, exists := c.resources[name].stored[keyOf(object)]
	if !exists {
		return nil, apierrors.NewNotFound(groupResource(name), object.GetName())
	}
	if revision := object.GetResourceVersion(); revision != "" && revision != old.GetResourceVersion() {
		return nil, apierrors.NewConflict(groupResource(name), object.GetName(), fmt.Errorf("revision %s is old", revision))
	}
	if err := valid(object); err != nil {
		return nil, err
	}
	object.SetUID(old.GetUID())
	object.SetCreationTimestamp(old.GetCreationTimestamp())
	object.SetResourceVersion(old.GetResourceVersion())
	object.SetGeneration(old.GetGeneration())
	if equality.Semantic.DeepEqual(object, old) {
		return old, nil
	}
	if !equality.Semantic.DeepEqual(withoutMeta(object), withoutMeta(old)) || !equality.Semantic.DeepEqual(object.GetLabels(), old.GetLabels()) {
		object.SetGeneration(old.GetGeneration() + 1)
	}
	return c.store(name, watch.Modified, object), nil
}

func (c *Cluster) delete(name, key string) error {
	old, exists := c.resources[name].stored[key]
	if !exists {
		return apierrors.NewNotFound(groupResource(name), key)
	}
	c.store(name, watch.Deleted, old.DeepCopyObject().(Object))
	return nil
}

func withoutMeta(object Object) runtime.Object {
	bare := object.DeepCopyObject()
	accessor, err := meta.Accessor(bare)
	if err != nil {
		panic(err) // not an API object
	}
	*accessor.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta) = metav1.ObjectMeta{}
	return bare
}

// valid refuses what the API server refuses and a controller might write.
func valid(object Object) error {
	endpoints, ok := object.(*corev1.Endpoints)
	if !ok {
		return nil
	}
	for _, subset := range endpoints.Subsets {
		addresses := append(append([]corev1.EndpointAddress(nil), subset.Addresses...), subset.NotReadyAddresses...)
		if len(addresses) == 0 {
			return apierrors.NewBadRequest("a subset has no addresses")
		}
		for _, address := range addresses {
			if address.NodeName != nil && *address.NodeName == "" {
				return apierrors.NewBadRequest("a nodeName is empty")
			}
		}
	}
	return nil
}
