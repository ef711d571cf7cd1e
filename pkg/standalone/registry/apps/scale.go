// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// replicasPath says which field of the workload the scale owns, so that who
// scales and who applies the workload notice each other.
func replicasPath() managedfields.ResourcePathMappings {
	return managedfields.ResourcePathMappings{
		appsv1.SchemeGroupVersion.String(): fieldpath.MakePathOrDie("spec", "replicas"),
	}
}

// scaling is how a workload of type T is scaled.
type scaling[T resource.Object] struct {
	replicas func(T) **int32
	// observed returns the number of pods there are, and what selects them.
	observed func(T) (int32, *metav1.LabelSelector)
}

// scaleREST serves a workload as a Scale of autoscaling/v1.
type scaleREST[T resource.Object] struct {
	store    *resource.REST
	resource schema.GroupResource
	scaling  scaling[T]
}

var (
	_ rest.Patcher                  = &scaleREST[*appsv1.Deployment]{}
	_ rest.GroupVersionKindProvider = &scaleREST[*appsv1.Deployment]{}
	_ rest.TableConvertor           = &scaleREST[*appsv1.Deployment]{}
)

// addScale adds "<name>/scale" to the storage of the workload.
func addScale[T resource.Object](storage map[string]rest.Storage, name string, how scaling[T]) map[string]rest.Storage {
	storage[name+"/scale"] = &scaleREST[T]{
		store:    storage[name].(*resource.REST),
		resource: appsv1.SchemeGroupVersion.WithResource(name).GroupResource(),
		scaling:  how,
	}
	return storage
}

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (*scaleREST[T]) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// New implements rest.Storage.
func (*scaleREST[T]) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy implements rest.Storage. The store belongs to the resource itself.
func (*scaleREST[T]) Destroy() {}

// ConvertToTable implements rest.TableConvertor.
func (r *scaleREST[T]) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, options)
}

// Get implements rest.Getter.
func (r *scaleREST[T]) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := r.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	return r.scaleOf(obj)
}

// Update implements rest.Updater.
func (r *scaleREST[T]) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo, createValidation rest.ValidateObjectFunc,
	updateValidation rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	obj, _, err := r.store.Update(ctx, name, &scaleUpdate[T]{UpdatedObjectInfo: objInfo, rest: r, name: name},
		func(ctx context.Context, obj runtime.Object) error {
			scale, err := r.scaleOf(obj)
			if err != nil {
				return err
			}
			return createValidation(ctx, scale)
		},
		func(ctx context.Context, obj, old runtime.Object) error {
			scale, err := r.scaleOf(obj)
			if err != nil {
				return err
			}
			before, err := r.scaleOf(old)
			if err != nil {
				return err
			}
			return updateValidation(ctx, scale, before)
		}, false, options)
	if err != nil {
		return nil, false, err
	}
	scale, err := r.scaleOf(obj)
	if err != nil {
		return nil, false, err
	}
	return scale, false, nil
}

func (r *scaleREST[T]) scaleOf(obj runtime.Object) (*autoscalingv1.Scale, error) {
	workload, ok := obj.(T)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%T cannot be scaled here", obj))
	}
	pods, selector := r.scaling.observed(workload)
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name:              workload.GetName(),
			Namespace:         workload.GetNamespace(),
			UID:               workload.GetUID(),
			ResourceVersion:   workload.GetResourceVersion(),
			CreationTimestamp: workload.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: valueOf(*r.scaling.replicas(workload))},
		Status: autoscalingv1.ScaleStatus{Replicas: pods, Selector: parsed.String()},
	}, nil
}

// scaleUpdate turns an update of a Scale into one of its workload.
type scaleUpdate[T resource.Object] struct {
	rest.UpdatedObjectInfo
	rest *scaleREST[T]
	name string
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (u *scaleUpdate[T]) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	workload, ok := old.DeepCopyObject().(T)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%T cannot be scaled here", old))
	}
	if workload.GetResourceVersion() == "" { // it is not there, and a Scale creates nothing
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: u.rest.resource.Group, Resource: u.rest.resource.Resource + "/scale"}, u.name)
	}
	before, err := u.rest.scaleOf(workload)
	if err != nil {
		return nil, err
	}
	owners := managedfields.NewScaleHandler(workload.GetManagedFields(), appsv1.SchemeGroupVersion, replicasPath())
	if before.ManagedFields, err = owners.ToSubresource(); err != nil {
		return nil, fmt.Errorf("finding the owners of the scale of %s: %w", u.name, err)
	}

	obj, err := u.UpdatedObjectInfo.UpdatedObject(ctx, before)
	if err != nil {
		return nil, err
	}
	scale, ok := obj.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Scale: %T", obj))
	}
	if errs := validateScale(scale); len(errs) > 0 {
		return nil, apierrors.NewInvalid(autoscalingv1.SchemeGroupVersion.WithKind("Scale").GroupKind(), u.name, errs)
	}
	if scale.UID != "" && scale.UID != workload.GetUID() {
		return nil, apierrors.NewConflict(u.rest.resource, u.name,
			fmt.Errorf("the uid %s is not that of the object, %s", scale.UID, workload.GetUID()))
	}

	replicas := scale.Spec.Replicas
	*u.rest.scaling.replicas(workload) = &replicas
	workload.SetResourceVersion(scale.ResourceVersion)
	managed, err := owners.ToParent(scale.ManagedFields)
	if err != nil {
		return nil, fmt.Errorf("storing the owners of the scale of %s: %w", u.name, err)
	}
	workload.SetManagedFields(managed)
	return workload, nil
}

func validateScale(scale *autoscalingv1.Scale) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&scale.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	return append(errs, nonnegative(&scale.Spec.Replicas, field.NewPath("spec", "replicas"))...)
}
