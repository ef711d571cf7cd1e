// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
)

// sync brings the Services of one ServiceGrid, and its status, to what they should be. An error asks for another try.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	grid, err := c.grids.ServiceGrids(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get the ServiceGrid: %w", err)
	}
	if grid.DeletionTimestamp != nil {
		// The garbage collector deletes its Services, or orphans them if so asked.
		return nil
	}
	observed, err := c.observe(grid)
	if err != nil {
		return err
	}
	plan, err := c.carryOut(ctx, observed)
	if err != nil {
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil
		}
		if expected(err) || ctx.Err() != nil {
			return err
		}
		plan.blocked = verdictOf(err)
	}
	return errors.Join(err, c.report(ctx, grid, plan))
}

// observe reads what the informers know.
func (c *Controller) observe(grid *superedgev1.ServiceGrid) (observed, error) {
	o := observed{grid: grid}
	named, err := c.services.Services(grid.Namespace).Get(serviceName(grid.Name))
	switch {
	case err == nil:
		o.named = named
	case !apierrors.IsNotFound(err):
		return observed{}, fmt.Errorf("get the Service: %w", err)
	}
	objs, err := c.byController.ByIndex(controllerIndex, string(grid.UID))
	if err != nil {
		return observed{}, fmt.Errorf("find the Services of the ServiceGrid: %w", err)
	}
	for _, obj := range objs {
		if service, ok := obj.(*corev1.Service); ok && service.Namespace == grid.Namespace {
			o.owned = append(o.owned, service)
		}
	}
	return o, nil
}

// withNamed returns o with what the API server has just answered for the Service, of which the informer may not have
// heard yet.
func (o observed) withNamed(named *corev1.Service) observed {
	result := observed{grid: o.grid, named: named}
	for _, service := range o.owned {
		if service.Name != named.Name {
			result.owned = append(result.owned, service)
		}
	}
	if metav1.IsControlledBy(named, o.grid) {
		result.owned = append(result.owned, named)
	}
	return result
}

// carryOut decides and does it. The plan that it returns has the Service as the API server last answered it.
func (c *Controller) carryOut(ctx context.Context, o observed) (plan, error) {
	p := decide(o)
	err := c.write(ctx, o, &p)
	if p.create == nil || !apierrors.IsAlreadyExists(err) {
		return p, err
	}
	// The informer lags behind: what is there decides.
	named, getErr := c.client.Services(o.grid.Namespace).Get(ctx, p.create.Name, metav1.GetOptions{})
	if getErr != nil {
		return p, getErr
	}
	o = o.withNamed(named)
	p = decide(o)
	return p, c.write(ctx, o, &p)
}

func (c *Controller) write(ctx context.Context, o observed, p *plan) error {
	if p.create != nil || p.update != nil {
		service, err := c.writeService(ctx, o.grid, p)
		if err != nil {
			return err
		}
		p.service = service
		// Whatever undoes it would be written again and again: the retries of a failure are less and less often.
		if again := decide(o.withNamed(service)); again.update != nil {
			return &notKeptError{fields: again.changes}
		}
	}
	services := c.client.Services(o.grid.Namespace)
	for _, service := range p.surplus {
		preconditions := metav1.Preconditions{UID: &service.UID, ResourceVersion: &service.ResourceVersion}
		err := services.Delete(ctx, service.Name, metav1.DeleteOptions{Preconditions: &preconditions})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the surplus Service %q: %w", service.Name, err)
		}
		c.did(ctx, o.grid, service, "Deleted", "Deleted the surplus Service "+service.Name)
	}
	for _, service := range p.released {
		_, err := services.Update(ctx, releasedService(o.grid, service), metav1.UpdateOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("release the Service %q: %w", service.Name, err)
		}
		c.did(ctx, o.grid, service, "Released", "Released the Service "+service.Name+", which lacks the label "+superedgev1.LabelGridSelector)
	}
	return nil
}

// writeService creates or updates the Service, and returns the API server's answer.
func (c *Controller) writeService(ctx context.Context, grid *superedgev1.ServiceGrid, p *plan) (*corev1.Service, error) {
	if p.create != nil || p.adopted {
		if err := c.confirm(ctx, grid); err != nil {
			return nil, err
		}
	}
	services := c.client.Services(grid.Namespace)
	if p.create != nil {
		service, err := services.Create(ctx, p.create, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("create the Service %q: %w", p.create.Name, err)
		}
		c.did(ctx, grid, service, "Created", "Created the Service "+service.Name)
		return service, nil
	}
	service, err := services.Update(ctx, p.update, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("update the Service %q: %w", p.update.Name, err)
	}
	if service.ResourceVersion == p.update.ResourceVersion {
		// All of it was set back at once.
		return service, nil
	}
	reason := "Updated"
	if p.adopted {
		reason = "Adopted"
	}
	c.did(ctx, grid, service, reason, fmt.Sprintf("%s the Service %s: %s", reason, service.Name, strings.Join(p.changes, ", ")))
	return service, nil
}

// confirm asks the API server whether grid is still there. A lagging informer may show one that is gone, whose Service
// nobody would clean up, or which has a successor of the same name.
func (c *Controller) confirm(ctx context.Context, grid *superedgev1.ServiceGrid) error {
	fresh, err := c.gridClient.ServiceGrids(grid.Namespace).Get(ctx, grid.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get the ServiceGrid: %w", err)
	}
	if fresh.UID != grid.UID || fresh.DeletionTimestamp != nil {
		return apierrors.NewConflict(superedgev1.Resource("servicegrids"), grid.Name, errors.New("it has been deleted since"))
	}
	return nil
}

// did tells the user and the operator of a write that succeeded.
func (c *Controller) did(ctx context.Context, grid *superedgev1.ServiceGrid, service *corev1.Service, reason, message string) {
	klog.FromContext(ctx).V(2).Info("Wrote a Service", "service", klog.KObj(service), "reason", reason)
	c.recorder.Event(grid, corev1.EventTypeNormal, reason, message)
}
