// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"
)

var errDisk = errors.New("the disk is full")

// beforeNext runs f in front of the next write, and not in front of those that
// f makes.
func (s *failingStore) beforeNext(f func() error) {
	s.before = func(string) error {
		s.before = func(string) error { return nil }
		return f()
	}
}

func toNodePort(port int32) func(*corev1.Service) {
	return func(service *corev1.Service) {
		service.Spec.Type = corev1.ServiceTypeNodePort
		service.Spec.Ports[0].NodePort = port
	}
}

func addFinalizer(service *corev1.Service)   { service.Finalizers = []string{"example.com/wait"} }
func clearFinalizer(service *corev1.Service) { service.Finalizers = nil }

func TestFailingWritesLeaveThePools(t *testing.T) {
	c := newCluster(t, range4, range6)
	fail := func() error { return errDisk }
	full := corev1.ServiceSpec{Type: "LoadBalancer", ExternalTrafficPolicy: "Local", IPFamilyPolicy: require, Ports: web()}

	c.store.beforeNext(fail)
	if _, err := c.tryCreate(named("web", full), false); err == nil {
		t.Error("the store did not fail")
	}
	c.checkPools()

	c.create(named("web", corev1.ServiceSpec{Ports: web()}))
	c.store.beforeNext(fail)
	if _, err := c.tryPatch("web", func(service *corev1.Service) {
		service.Spec.Type, service.Spec.ExternalTrafficPolicy, service.Spec.IPFamilyPolicy = "LoadBalancer", "Local", require
	}, false); err == nil {
		t.Error("the store did not fail")
	}
	c.checkPools()

	if _, err := c.tryPatch("web", func(service *corev1.Service) { service.Spec = *full.DeepCopy() }, false); err != nil {
		t.Fatal(err)
	}
	c.checkPools()
	c.store.beforeNext(fail)
	if _, err := c.tryPatch("web", func(service *corev1.Service) {
		service.Spec.Type, service.Spec.ExternalName = "ExternalName", "example.com"
	}, false); err == nil {
		t.Error("the store did not fail")
	}
	c.checkPools()

	c.store.beforeNext(fail)
	if err := c.tryDelete("web", false); err == nil {
		t.Error("the store did not fail")
	}
	c.checkPools()
}

func TestPanicInAWriteLeavesThePools(t *testing.T) {
	c := newCluster(t, range4)
	c.create(named("web", corev1.ServiceSpec{Ports: web()}))
	c.store.beforeNext(func() error { panic("in the store") })
	func() {
		defer func() { _ = recover() }()
		_, _ = c.tryPatch("web", toNodePort(30001), false)
	}()
	c.checkPools()
}

// TestUpdateThatMeetsAnotherWrite: the store asks the hooks again, and only what
// the last round has reserved counts.
func TestUpdateThatMeetsAnotherWrite(t *testing.T) {
	for _, test := range []struct {
		name    string
		meets   func(*cluster) error
		want    string
		wantErr func(error) bool
	}{
		{
			name: "a change of something else",
			meets: func(c *cluster) error {
				_, err := c.tryPatch("web", func(service *corev1.Service) { service.Labels = map[string]string{"a": "b"} }, false)
				return err
			},
			want: "SingleStack IPv4 " + first4 + " 80:30001",
		},
		{
			name: "the same change",
			meets: func(c *cluster) error {
				// Another client wants the port that this one has just reserved.
				_, err := c.tryPatch("web", toNodePort(30001), false)
				return err
			},
			want: "SingleStack IPv4 " + first4 + " 80:30001",
		},
		{
			name: "another port",
			meets: func(c *cluster) error {
				_, err := c.tryPatch("web", toNodePort(30002), false)
				return err
			},
			want: "SingleStack IPv4 " + first4 + " 80:30001",
		},
		{
			name:    "a delete",
			meets:   func(c *cluster) error { return c.tryDelete("web", false) },
			wantErr: apierrors.IsInvalid, // the patch finds nothing to patch, an empty Service
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, range4)
			c.create(named("web", corev1.ServiceSpec{Ports: web()}))
			c.store.beforeNext(func() error { return test.meets(c) })
			patched, err := c.tryPatch("web", func(service *corev1.Service) {
				if len(service.Spec.Ports) > 0 {
					toNodePort(30001)(service)
				}
			}, false)
			switch {
			case test.wantErr != nil && !test.wantErr(err):
				t.Errorf("got %v", err)
			case test.wantErr == nil && result(patched, err) != test.want:
				t.Errorf("got %s, want %s", result(patched, err), test.want)
			}
			c.checkPools()
		})
	}
}

// TestPutMeetsADelete: the PUT creates the Service anew, with another UID.
func TestPutMeetsADelete(t *testing.T) {
	c := newCluster(t, range4)
	manifest := named("web", corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Port: 80, NodePort: 30001}}})
	old := c.create(manifest)
	manifest.Labels = map[string]string{"a": "b"}
	c.store.beforeNext(func() error { return c.tryDelete("web", false) })
	got, err := c.tryPut(manifest, false)
	if err != nil {
		t.Fatal(err)
	}
	if got.UID == old.UID || got.UID == "" {
		t.Errorf("UID %q after %q", got.UID, old.UID)
	}
	c.checkPools()
}

func TestPutCreates(t *testing.T) {
	c := newCluster(t, range4)
	manifest := named("web", corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Port: 80, NodePort: 30001}}})
	if _, err := c.tryPut(manifest, true); err != nil {
		t.Error(err)
	}
	c.checkPools()
	// Another client creates it while this one does.
	c.store.beforeNext(func() error {
		_, err := c.tryCreate(named("web", corev1.ServiceSpec{Ports: web()}), false)
		return err
	})
	if _, err := c.tryPut(manifest, false); err != nil {
		t.Error(err)
	}
	c.checkPools()
}

func TestStalePutIsRefused(t *testing.T) {
	c := newCluster(t, range4)
	stale := c.create(named("web", corev1.ServiceSpec{Ports: web()}))
	if _, err := c.tryPatch("web", func(service *corev1.Service) { service.Labels = map[string]string{"a": "b"} }, false); err != nil {
		t.Fatal(err)
	}
	toNodePort(30001)(stale)
	if _, err := c.tryPut(stale, false); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	c.checkPools()
}

func TestFinalizersKeepWhatIsHeld(t *testing.T) {
	c := newCluster(t, range4)
	c.create(named("web", corev1.ServiceSpec{Type: "NodePort", Ports: web()}))
	if _, err := c.tryPatch("web", addFinalizer, false); err != nil {
		t.Fatal(err)
	}
	if err := c.tryDelete("web", false); err != nil {
		t.Fatal(err)
	}
	c.checkPools()
	if _, err := c.tryPatch("web", clearFinalizer, true); err != nil {
		t.Fatal(err)
	}
	c.checkPools()
	// The last write changes the ports as well; it is never stored.
	if _, err := c.tryPatch("web", func(service *corev1.Service) {
		clearFinalizer(service)
		toNodePort(30001)(service)
	}, false); err != nil {
		t.Fatal(err)
	}
	if services := c.list(); len(services) > 0 {
		t.Errorf("still there: %v", services)
	}
	c.checkPools()
}

func TestStatusWriteTakesTheLastFinalizer(t *testing.T) {
	c := newCluster(t, range4)
	c.create(named("web", corev1.ServiceSpec{Type: "NodePort", Ports: web()}))
	if _, err := c.tryPatch("web", addFinalizer, false); err != nil {
		t.Fatal(err)
	}
	if err := c.tryDelete("web", false); err != nil {
		t.Fatal(err)
	}
	if _, err := c.tryPatchStatus("web", clearFinalizer); err != nil {
		t.Fatal(err)
	}
	if services := c.list(); len(services) > 0 {
		t.Errorf("still there: %v", services)
	}
	c.checkPools()
}

// TestTwoWritesTakeTheLastFinalizer: both find the Service gone, and both
// release what it held. In between somebody else has got it.
func TestTwoWritesTakeTheLastFinalizer(t *testing.T) {
	c := newCluster(t, range4)
	spec := corev1.ServiceSpec{Type: "NodePort", ClusterIP: "10.96.0.5", Ports: []corev1.ServicePort{{Port: 80, NodePort: 30001}}}
	c.create(named("web", spec))
	if _, err := c.tryPatch("web", addFinalizer, false); err != nil {
		t.Fatal(err)
	}
	if err := c.tryDelete("web", false); err != nil {
		t.Fatal(err)
	}
	c.store.before = func(verb string) error {
		if verb != "delete" {
			return nil
		}
		c.store.before = func(string) error { return nil }
		if _, err := c.tryPatch("web", clearFinalizer, false); err != nil {
			return err
		}
		_, err := c.tryCreate(named("other", spec), false)
		return err
	}
	if _, err := c.tryPatch("web", clearFinalizer, false); err != nil {
		t.Fatal(err)
	}
	if services := c.list(); len(services) != 1 || services[0].Name != "other" {
		t.Fatalf("got %v", services)
	}
	c.checkPools()
}

func TestDeleteCollectionReleases(t *testing.T) {
	c := newCluster(t, range4)
	for _, name := range []string{"a", "b", "c"} {
		c.create(named(name, corev1.ServiceSpec{Type: "NodePort", Ports: web()}))
	}
	if _, err := c.rest.DeleteCollection(c.context(), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	if services := c.list(); len(services) > 0 {
		t.Errorf("still there: %v", services)
	}
	c.checkPools()
}

func TestInvalidUpdateLeavesThePools(t *testing.T) {
	c := newCluster(t, range4)
	c.create(named("web", corev1.ServiceSpec{Ports: web()}))
	refuse := func(service *corev1.Service) {
		toNodePort(30001)(service)
		service.Spec.SessionAffinity = "Sticky"
		service.Spec.LoadBalancerClass = ptr.To("x")
	}
	if _, err := c.tryPatch("web", refuse, false); !apierrors.IsInvalid(err) {
		t.Errorf("got %v", err)
	}
	c.checkPools()
}
