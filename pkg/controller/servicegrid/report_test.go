// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
)

var (
	gridKey    = types.NamespacedName{Namespace: namespace, Name: "g"}
	serviceKey = types.NamespacedName{Namespace: namespace, Name: "g-svc"}
)

func (f *fakeAPI) mustCreate(t *testing.T, obj metav1.Object) {
	t.Helper()
	if err := f.create(obj); err != nil {
		t.Fatal(err)
	}
}

func (f *fakeAPI) editGrid(t *testing.T, change func(*superedgev1.ServiceGrid)) {
	t.Helper()
	if err := f.edit(gridsResource, gridKey, func(obj metav1.Object) { change(obj.(*superedgev1.ServiceGrid)) }); err != nil {
		t.Fatal(err)
	}
}

func (f *fakeAPI) editService(t *testing.T, change func(*corev1.Service)) {
	t.Helper()
	if err := f.edit(servicesResource, serviceKey, func(obj metav1.Object) { change(obj.(*corev1.Service)) }); err != nil {
		t.Fatal(err)
	}
}

// kinds are types and reasons of events.
func kinds(events []string) string {
	var result []string
	for _, event := range events {
		kind, _, _ := strings.Cut(event, ":")
		result = append(result, kind)
	}
	return strings.Join(result, ", ")
}

// ready is the reason of the condition, and what else the status says.
func ready(grid *superedgev1.ServiceGrid) string {
	if len(grid.Status.Conditions) != 1 {
		return "no condition"
	}
	c := grid.Status.Conditions[0]
	return strings.TrimSpace(strings.Join([]string{string(c.Status), c.Reason, grid.Status.ServiceName, grid.Status.ClusterIP}, " "))
}

// TestWhatTheUserIsTold goes through the life of one ServiceGrid: after each change everything is synced several times.
func TestWhatTheUserIsTold(t *testing.T) {
	api := newFakeAPI()
	s := start(t, api)
	var address string
	for _, step := range []struct {
		name   string
		change func()
		events string
		ready  string
	}{
		{"created", func() { api.mustCreate(t, newGrid(nil)) }, "Normal Created", "True ServiceReady g-svc IP"},
		{
			"port edited", func() { api.editGrid(t, func(g *superedgev1.ServiceGrid) { g.Spec.Template.Ports[0].Port = 81 }) },
			"Normal Updated", "True ServiceReady g-svc IP",
		},
		{
			"label edited", func() { api.editGrid(t, func(g *superedgev1.ServiceGrid) { g.Labels = map[string]string{"a": "b"} }) },
			"Normal Updated", "True ServiceReady g-svc IP",
		},
		{
			"key gone", func() { api.editGrid(t, func(g *superedgev1.ServiceGrid) { g.Spec.GridUniqKey = "" }) },
			"Warning InvalidKey", "False InvalidKey g-svc IP",
		},
		{
			"key bad", func() { api.editGrid(t, func(g *superedgev1.ServiceGrid) { g.Spec.GridUniqKey = "a b" }) },
			"Warning InvalidKey", "False InvalidKey g-svc IP",
		},
		{"label edited while the key is bad", func() { api.editGrid(t, func(g *superedgev1.ServiceGrid) { g.Labels = nil }) }, "", "False InvalidKey g-svc IP"},
		{"Service deleted while the key is bad", func() { _ = api.remove(servicesResource, serviceKey) }, "", "False InvalidKey"},
		{
			"key good", func() { api.editGrid(t, func(g *superedgev1.ServiceGrid) { g.Spec.GridUniqKey = "zone2" }) },
			"Normal Created", "True ServiceReady g-svc IP",
		},
		{
			"another address wanted", func() { api.editGrid(t, func(g *superedgev1.ServiceGrid) { g.Spec.Template.ClusterIP = "10.9.9.9" }) },
			"Warning ServiceInvalid", "False ServiceInvalid g-svc IP",
		},
		{
			"a template that the API server refuses",
			func() {
				api.editGrid(t, func(g *superedgev1.ServiceGrid) { g.Spec.Template.ClusterIP, g.Spec.Template.Ports = "", nil })
			},
			"Warning ServiceInvalid", "False ServiceInvalid g-svc IP",
		},
		{
			"headless wanted",
			func() {
				api.editGrid(t, func(g *superedgev1.ServiceGrid) { g.Spec.Template = corev1.ServiceSpec{ClusterIP: "None"} })
			},
			"Warning ServiceInvalid", "False ServiceInvalid g-svc IP",
		},
		{"the Service deleted for that", func() { _ = api.remove(servicesResource, serviceKey) }, "Normal Created", "True ServiceReady g-svc None"},
		{
			"released", func() {
				api.editService(t, func(s *corev1.Service) { delete(s.Labels, superedgev1.LabelGridSelector) })
			},
			"Normal Released, Warning ServiceConflict", "False ServiceConflict",
		},
		{
			"handed over", func() {
				api.editService(t, func(s *corev1.Service) { s.Labels[superedgev1.LabelGridSelector] = "g" })
			},
			"Normal Adopted", "True ServiceReady g-svc None",
		},
		{
			"copied", func() {
				service := api.service(serviceKey)
				service.Name, service.UID, service.ResourceVersion = "copy", "", ""
				api.mustCreate(t, service)
			},
			"Normal Deleted", "True ServiceReady g-svc None",
		},
	} {
		step.change()
		s.mustSettle(t)
		s.resync(t.Context())
		s.mustSettle(t)
		if service := api.service(serviceKey); service != nil && service.Spec.ClusterIP != corev1.ClusterIPNone {
			address = service.Spec.ClusterIP
		}
		grid := api.grid(gridKey)
		if diff := cmp.Diff(strings.ReplaceAll(step.ready, "IP", address), ready(grid)); diff != "" {
			t.Errorf("%s: status (-want +got):\n%s%+v", step.name, diff, grid.Status)
		}
		if grid.Status.ObservedGeneration != grid.Generation {
			t.Errorf("%s: observed generation %d of %d", step.name, grid.Status.ObservedGeneration, grid.Generation)
		}
		if events := s.recorder.take(); kinds(events) != step.events {
			t.Errorf("%s: events %q, want %s", step.name, events, step.events)
		}
	}
	if copied := api.service(types.NamespacedName{Namespace: namespace, Name: "copy"}); copied != nil {
		t.Error("the copy is still there")
	}
}

func TestForeignServiceIsNotTouched(t *testing.T) {
	api := newFakeAPI()
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "g-svc"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
	api.mustCreate(t, foreign)
	api.mustCreate(t, newGrid(nil))
	before := api.service(serviceKey)
	s := start(t, api)
	s.mustSettle(t)
	s.resync(t.Context())
	if diff := cmp.Diff(before, api.service(serviceKey)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if got := kinds(s.recorder.take()); got != "Warning ServiceConflict" {
		t.Error(got)
	}
	// When it goes, its name is free.
	if err := api.remove(servicesResource, serviceKey); err != nil {
		t.Fatal(err)
	}
	s.mustSettle(t)
	if got := kinds(s.recorder.take()); got != "Normal Created" {
		t.Error(got)
	}
}

func TestWebhookThatUndoesIsReportedOnce(t *testing.T) {
	api := newFakeAPI()
	api.admit = func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }
	api.mustCreate(t, newGrid(nil))
	s := start(t, api)
	s.mustSettle(t)
	if got := kinds(s.recorder.take()); got != "Normal Created, Warning Failed" {
		t.Error(got)
	}
	if got := api.grid(gridKey).Status.Conditions[0].Message; !strings.Contains(got, "spec.publishNotReadyAddresses") {
		t.Error(got)
	}
	if len(s.queue.later) != 1 || len(s.queue.due) != 0 {
		t.Errorf("it must be tried again, but at leisure: %+v", s.queue)
	}
	api.admit = nil
	s.queue.retry()
	s.mustSettle(t)
	if got := ready(api.grid(gridKey)); !strings.HasPrefix(got, "True ServiceReady") {
		t.Error(got)
	}
}

func TestFailureIsReportedAndGoesAway(t *testing.T) {
	api := newFakeAPI()
	api.mustCreate(t, newGrid(nil))
	s := start(t, api)
	api.fault = func(verb, resource string, _ bool) error {
		if verb == "create" && resource == servicesResource {
			return apierrors.NewForbidden(corev1.Resource("services"), "g-svc", errors.New(strings.Repeat("ü", 2000)))
		}
		return nil
	}
	s.mustSettle(t)
	if got := ready(api.grid(gridKey)); got != "False Failed" {
		t.Error(got)
	}
	if got := api.grid(gridKey).Status.Conditions[0].Message; len(got) > maxMessage || strings.ToValidUTF8(got, "") != got {
		t.Errorf("%d bytes", len(got))
	}
	writes := api.writes
	s.resync(t.Context())
	if api.writes != writes {
		t.Error("a resync did not wait for the time of the retry")
	}
	api.fault = nil
	s.mustSettle(t)
	if got := kinds(s.recorder.take()); got != "Warning Failed, Normal Created" {
		t.Error(got)
	}
}

func TestTerminatingNamespaceIsLeftAlone(t *testing.T) {
	api := newFakeAPI()
	api.mustCreate(t, newGrid(nil))
	s := start(t, api)
	api.fault = func(verb, _ string, _ bool) error {
		if verb != "create" {
			return nil
		}
		err := apierrors.NewForbidden(corev1.Resource("services"), "g-svc", errors.New("terminating"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		return err
	}
	s.mustSettle(t)
	if len(s.queue.later) > 0 || len(s.recorder.events) > 0 || len(api.grid(gridKey).Status.Conditions) > 0 {
		t.Errorf("queue %+v, events %q, status %+v", s.queue, s.recorder.events, api.grid(gridKey).Status)
	}
}

func TestGridThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	api := newFakeAPI()
	api.mustCreate(t, newGrid(nil))
	s := start(t, api)
	s.mustSettle(t)
	api.editGrid(t, func(g *superedgev1.ServiceGrid) {
		g.DeletionTimestamp, g.Finalizers = &metav1.Time{}, []string{"x"}
		g.Spec.Template.Ports[0].Port = 81
	})
	writes, reads := api.writes, api.reads
	s.mustSettle(t)
	if err := api.remove(servicesResource, serviceKey); err != nil {
		t.Fatal(err)
	}
	s.mustSettle(t)
	if api.writes != writes || api.reads != reads {
		t.Errorf("%d writes, %d reads", api.writes-writes, api.reads-reads)
	}
}

// The informer still shows a ServiceGrid that is gone, or has a successor.
func TestNothingIsCreatedForAGridThatIsGone(t *testing.T) {
	for _, successor := range []bool{false, true} {
		api := newFakeAPI()
		api.mustCreate(t, newGrid(nil))
		s := start(t, api)
		if err := api.remove(gridsResource, gridKey); err != nil {
			t.Fatal(err)
		}
		if successor {
			api.mustCreate(t, newGrid(nil))
		}
		for s.controller.next(t.Context()) {
		}
		if service := api.service(serviceKey); service != nil {
			t.Errorf("successor %v: created %+v", successor, service.ObjectMeta)
		}
		s.mustSettle(t)
		if service := api.service(serviceKey); successor && (service == nil || !metav1.IsControlledBy(service, api.grid(gridKey))) {
			t.Errorf("the successor has no Service: %+v", service)
		}
	}
}

// What a lagging informer does not show is not created twice, and not reported as a conflict. It is brought up to date
// without waiting for the informer.
func TestServiceThatTheInformerDoesNotShow(t *testing.T) {
	api := newFakeAPI()
	api.mustCreate(t, newGrid(nil))
	s := start(t, api)
	for s.controller.next(t.Context()) {
	}
	api.editGrid(t, func(g *superedgev1.ServiceGrid) { g.Spec.Template.Ports[0].Port = 81 })
	for s.deliver(gridsResource) {
	}
	for s.controller.next(t.Context()) {
	}
	if got := kinds(s.recorder.take()); got != "Normal Created, Normal Updated" {
		t.Error(got)
	}
	if got := api.service(serviceKey).Spec.Ports[0].Port; got != 81 {
		t.Errorf("port %d", got)
	}
	if got := ready(api.grid(gridKey)); !strings.HasPrefix(got, "True ServiceReady g-svc") {
		t.Error(got)
	}
	s.mustSettle(t)
}
