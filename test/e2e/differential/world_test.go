// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// world is a scenario's namespace on one side. A step writes through it; every answer is kept, for the comparison.
type world struct {
	*side
	ctx       context.Context
	namespace string
	names     *names
	dryRun    []string

	mu      sync.Mutex
	answers map[string]any // what the server said, normalised, by request
	refused []error        // the errors among it
}

func (w *world) record(verb string, object *unstructured.Unstructured, kind, name string, err error) {
	request := fmt.Sprintf("%s %s %s", verb, kind, name)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.answers == nil {
		w.answers = map[string]any{}
	}
	for again := 2; w.answers[request] != nil; again++ {
		request = fmt.Sprintf("%s %s %s, %d", verb, kind, name, again)
	}
	switch {
	case err != nil:
		w.answers[request] = w.names.status(err)
		w.refused = append(w.refused, fmt.Errorf("%s: %w", request, err))
	case object != nil && object.GetKind() == kind:
		w.answers[request] = w.names.object(object)
	default:
		w.answers[request] = "done"
	}
}

// said returns the answers of the step.
func (w *world) said() map[string]any { return allow(w.kind, w.answers) }

// create makes objects, given in YAML.
func (w *world) create(texts ...string) {
	for _, text := range texts {
		w.createObject(parse(text))
	}
}

func (w *world) createObject(object *unstructured.Unstructured) {
	created, err := w.resource(object, w.namespace).Create(w.ctx, object, metav1.CreateOptions{DryRun: w.dryRun})
	w.record("create", created, object.GetKind(), object.GetName(), err)
}

// update reads an object, changes it and writes it back: kubectl edit.
func (w *world) update(kind, name string, change func(object map[string]any)) {
	var updated *unstructured.Unstructured
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object, err := w.resourceOf(kind, w.namespace).Get(w.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(object.Object)
		updated, err = w.resourceOf(kind, w.namespace).Update(w.ctx, object, metav1.UpdateOptions{DryRun: w.dryRun})
		return err
	})
	w.record("update", updated, kind, name, err)
}

// replace writes an object as it stands in the text, without resourceVersion: kubectl replace.
func (w *world) replace(text string) {
	object := parse(text)
	updated, err := w.resource(object, w.namespace).Update(w.ctx, object, metav1.UpdateOptions{DryRun: w.dryRun})
	w.record("replace", updated, object.GetKind(), object.GetName(), err)
}

// patch applies a merge patch in YAML.
func (w *world) patch(kind, name, text string) {
	w.patchAs(types.MergePatchType, kind, name, text)
}

// strategic applies a strategic merge patch in YAML: kubectl apply and kubectl patch.
func (w *world) strategic(kind, name, text string) {
	w.patchAs(types.StrategicMergePatchType, kind, name, text)
}

func (w *world) patchAs(as types.PatchType, kind, name, text string, subresources ...string) {
	body := []byte(toJSON(parse(text).Object))
	patched, err := w.resourceOf(kind, w.namespace).Patch(w.ctx, name, as, body, metav1.PatchOptions{DryRun: w.dryRun}, subresources...)
	w.record("patch", patched, kind, name, err)
}

// json applies a JSON patch.
func (w *world) json(kind, name, text string) {
	patched, err := w.resourceOf(kind, w.namespace).Patch(w.ctx, name, types.JSONPatchType, []byte(text), metav1.PatchOptions{DryRun: w.dryRun})
	w.record("patch", patched, kind, name, err)
}

// strict creates objects, where unknown fields are errors.
func (w *world) strict(texts ...string) {
	for _, text := range texts {
		object := parse(text)
		created, err := w.resource(object, w.namespace).Create(w.ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		w.record("create", created, object.GetKind(), object.GetName(), err)
	}
}

// apply is server-side apply.
func (w *world) apply(manager string, force bool, text string) {
	object := parse(text)
	applied, err := w.resource(object, w.namespace).Apply(w.ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: force, DryRun: w.dryRun})
	w.record("apply", applied, object.GetKind(), object.GetName(), err)
}

// delete deletes at once.
func (w *world) delete(kind string, names ...string) {
	for _, name := range names {
		err := w.resourceOf(kind, w.namespace).Delete(w.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64), DryRun: w.dryRun})
		w.record("delete", nil, kind, name, err)
	}
}

// terminate deletes gracefully: a pod on a node stays, until its kubelet has ended it.
func (w *world) terminate(pods ...string) {
	for _, name := range pods {
		w.record("delete", nil, "Pod", name, w.resourceOf("Pod", w.namespace).Delete(w.ctx, name, metav1.DeleteOptions{}))
	}
}

// spoilSlices empties the slices of a Service.
func (w *world) spoilSlices(service string) {
	list, err := w.resourceOf("EndpointSlice", w.namespace).List(w.ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service})
	if err == nil {
		for _, slice := range list.Items {
			_, err = w.resource(&slice, w.namespace).Patch(w.ctx, slice.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"mine":"1"}},"endpoints":[]}`), metav1.PatchOptions{})
		}
	}
	w.record("spoil", nil, "EndpointSlice", service, err)
}

// remove empties the namespace and deletes it.
func (w *world) remove(ctx context.Context) error {
	var errs []error
	force := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	for _, kind := range []string{"ConfigMap", "Service", "Pod"} {
		list, err := w.resourceOf(kind, w.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, object := range list.Items {
			if len(object.GetFinalizers()) > 0 {
				_, err := w.resourceOf(kind, w.namespace).Patch(ctx, object.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				errs = append(errs, err)
			}
		}
	}
	errs = append(errs, w.resourceOf("Pod", w.namespace).DeleteCollection(ctx, force, metav1.ListOptions{}),
		w.resourceOf("Namespace", "").Delete(ctx, w.namespace, metav1.DeleteOptions{}))
	for i, err := range errs {
		if apierrors.IsNotFound(err) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}
