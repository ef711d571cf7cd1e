// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	viewRevision     = "1800000000000000"
	newViewRevision  = "1800000000000007"
	upstreamRevision = "123456"
	newRevision      = "123460"

	jsonPatchType      = "application/json-patch+json"
	mergePatchType     = "application/merge-patch+json"
	strategicPatchType = "application/strategic-merge-patch+json"
	protobufType       = "application/vnd.kubernetes.protobuf"
)

// fakeView is a view of objects named "filtered", which differ, and others, which stand at viewRevision. It comes to
// what it is asked for when its channel is closed, nil for at once, and notes what it was asked for.
type fakeView struct {
	arrives <-chan struct{}
	err     error // of Differs

	mu    sync.Mutex
	same  int // how often nothing differs yet
	asked []string

	carried Carries // by the last write with a revision of the view
}

var _ View = &fakeView{}

func (v *fakeView) note(words ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	line := ""
	for _, word := range words {
		line += " " + word
	}
	v.asked = append(v.asked, line[1:])
}

// take returns what the view was asked for since the last call.
func (v *fakeView) take() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	asked := v.asked
	v.asked = nil
	return asked
}

func (v *fakeView) wait(ctx context.Context) bool {
	if v.arrives == nil {
		return true
	}
	select {
	case <-v.arrives:
		return true
	case <-ctx.Done():
		return false
	}
}

// sameUntil has nothing differ the next times.
func (v *fakeView) sameUntil(t testing.TB, times int) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.same = times
}

func (v *fakeView) Differs(_ context.Context, gr schema.GroupResource, namespace, name string) (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.same > 0 {
		v.same--
		return false, v.err
	}
	return gr != servicesResource.GroupResource() && namespace == "shop" && name == "filtered", v.err
}

func (v *fakeView) UpstreamRevision(_ schema.GroupResource, _, _, revision string, of Carries) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.carried = of
	return upstreamRevision, revision == viewRevision
}

func (v *fakeView) Refresh(gr schema.GroupResource, namespace, name, revision, upstream string) string {
	if upstream == "" && revision != "" {
		v.note("refresh", gr.Resource, namespace, name, revision)
	}
	return revision
}

func (v *fakeView) ViewRevision(ctx context.Context, gr schema.GroupResource, namespace, name, revision string) (string, bool) {
	v.note("revision", gr.Resource, namespace, name, revision)
	return newViewRevision, v.wait(ctx) && revision == newRevision
}

func (v *fakeView) AwaitChange(ctx context.Context, gr schema.GroupResource, namespace, name, revision string) {
	v.note("change", gr.Resource, namespace, name, revision)
	v.wait(ctx)
}

func (v *fakeView) AwaitPresence(ctx context.Context, gr schema.GroupResource, namespace, name string) {
	v.note("presence", gr.Resource, namespace, name)
	v.wait(ctx)
}

func (v *fakeView) AwaitEnd(ctx context.Context, gr schema.GroupResource, namespace, name, uid string) {
	v.note("end", gr.Resource, namespace, name, uid)
	v.wait(ctx)
}

func (v *fakeView) AwaitAbsence(ctx context.Context, gr schema.GroupResource, namespace, name, uid string) {
	v.note("absence", gr.Resource, namespace, name, uid)
	v.wait(ctx)
}
