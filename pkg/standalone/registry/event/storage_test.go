// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/backend"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/event"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/scheme"
)

func TestEventsGoAfterTheirTimeToLive(t *testing.T) {
	s, err := scheme.New()
	if err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(time.Now())
	stored := backend.New(backend.Options{
		Codec: func(schema.GroupResource) (runtime.Codec, error) {
			return backend.NewCodec(scheme.NewCodecs(s), runtime.ContentTypeProtobuf, corev1.SchemeGroupVersion)
		},
		Uncached: []schema.GroupResource{corev1.Resource("events")},
		Clock:    clock,
	})
	t.Cleanup(stored.Stop)
	if _, err := event.NewStorage(stored, 0); err == nil {
		t.Error("a time to live of 0 is not refused")
	}
	storage, err := event.NewStorage(stored, time.Minute+time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	events := storage["events"].(rest.StandardStorage)
	t.Cleanup(events.Destroy)

	ctx := genericapirequest.WithNamespace(t.Context(), "default")
	ctx = genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{APIVersion: "v1"})
	object := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: uuid.NewUUID()}, InvolvedObject: corev1.ObjectReference{Namespace: "default"}}
	if _, err := events.Create(ctx, object, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	get := func() error {
		_, err := events.Get(ctx, "a", &metav1.GetOptions{})
		return err
	}
	clock.Step(time.Minute)
	if err := get(); err != nil {
		t.Errorf("after a minute: %v", err)
	}
	clock.Step(2 * time.Second)
	for get() == nil && t.Context().Err() == nil {
		clock.Step(time.Second) // the store looks for what is due when its timer fires
	}
	if err := get(); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want it gone", err)
	}
}
