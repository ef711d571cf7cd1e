// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package readonly

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
)

// The handlers of k8s.io/apiserver find out by these assertions which verbs a
// storage has.
func TestNoWriteMethodIsExposed(t *testing.T) {
	var r any = &REST{}
	checks := map[string]func() bool{
		"create":             func() bool { _, ok := r.(rest.Creater); return ok },
		"create with name":   func() bool { _, ok := r.(rest.NamedCreater); return ok },
		"update":             func() bool { _, ok := r.(rest.Updater); return ok },
		"create or update":   func() bool { _, ok := r.(rest.CreaterUpdater); return ok },
		"patch":              func() bool { _, ok := r.(rest.Patcher); return ok },
		"delete":             func() bool { _, ok := r.(rest.GracefulDeleter); return ok },
		"delete collection":  func() bool { _, ok := r.(rest.CollectionDeleter); return ok },
		"connect":            func() bool { _, ok := r.(rest.Connecter); return ok },
		"unsafe delete":      func() bool { _, ok := r.(rest.CorruptObjectDeleterProvider); return ok },
		"everything at once": func() bool { _, ok := r.(rest.StandardStorage); return ok },
		"strategies to write with": func() bool {
			_, ok := r.(interface {
				GetCreateStrategy() rest.RESTCreateStrategy
			})
			return ok
		},
		"managed fields of a write": func() bool { _, ok := r.(rest.ResetFieldsStrategy); return ok },
	}
	for verb, exposed := range checks {
		if exposed() {
			t.Errorf("%s is exposed", verb)
		}
	}
}

func TestStrategyRefusesWrites(t *testing.T) {
	s := strategy{resource: corev1.Resource("services"), namespaced: true}
	if errs := s.Validate(t.Context(), &corev1.Service{}); len(errs) == 0 {
		t.Error("a new object is valid")
	}
	if _, _, err := s.ObjectKinds(&corev1.Service{}); err == nil {
		t.Error("an object to delete has a kind")
	}
}

func TestErrorWatchEndsAfterItsError(t *testing.T) {
	tests := map[string]struct {
		err  error
		code int32
	}{
		"API error":   {storage.NewTooLargeResourceVersionError(2, 1, 1), 504},
		"other error": {errors.New("broken"), 500},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newErrorWatch(test.err)
			// Stop before, between and after the reads must do no harm.
			w.Stop()
			e, ok := <-w.ResultChan()
			status, isStatus := e.Object.(*metav1.Status)
			if !ok || e.Type != watch.Error || !isStatus || status.Code != test.code || status.Message == "" {
				t.Errorf("got %v %v, want an ERROR with code %d", ok, e, test.code)
			}
			w.Stop()
			if e, ok := <-w.ResultChan(); ok {
				t.Errorf("got another event %v", e)
			}
		})
	}
}
