// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servicegrid

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
)

// observed is what there is when a ServiceGrid is synced. Its objects are those of listers: nobody writes into them.
type observed struct {
	grid *superedgev1.ServiceGrid
	// named is the Service with the name that grid's has, whosever it is, or nil.
	named *corev1.Service
	// owned are the Services whose controller is grid, whatever their name.
	owned []*corev1.Service
}

// plan is what there is to do about a ServiceGrid. The zero value is nothing, and that the Service is as it should be.
type plan struct {
	// surplus are deleted, released lose grid as their owner.
	surplus, released []*corev1.Service
	// create or update is the Service to write, or both are nil.
	create, update *corev1.Service
	// changes are the paths of the fields that update changes.
	changes []string
	// adopted says that update makes grid the controller of the Service.
	adopted bool
	// blocked says why the Service cannot be as it should be.
	blocked verdict
	// service is the live Service of grid, as far as there is one.
	service *corev1.Service
}

// verdict is the reason and the message of a condition Ready that is False. The zero value is none.
type verdict struct {
	reason, message string
}

// decide returns what is to be done. It reads its argument only, and the objects of the plan that are to be written are
// copies. The ServiceGrid must not be about to be deleted: then all of this is the garbage collector's.
func decide(o observed) plan {
	var p plan
	name := serviceName(o.grid.Name)
	if ours(o.grid, o.named) {
		p.service = o.named
	}
	// As long as the ServiceGrid itself is wrong, all Services are left as they are.
	if problem := keyProblem(o.grid.Spec.GridUniqKey); problem != "" {
		p.blocked = verdict{superedgev1.ReasonInvalidKey, problem}
		return p
	}
	if problem := nameProblem(o.grid.Name); problem != "" {
		p.blocked = verdict{superedgev1.ReasonServiceInvalid, problem}
		return p
	}
	for _, service := range o.owned {
		switch {
		case service.DeletionTimestamp != nil:
		case !selects(o.grid.Name, service):
			p.released = append(p.released, service)
		case service.Name != name:
			p.surplus = append(p.surplus, service)
		}
	}
	byName := func(a, b *corev1.Service) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(p.released, byName)
	slices.SortFunc(p.surplus, byName)

	switch {
	case o.named == nil:
		p.create = desiredService(o.grid, nil)
	case p.service == nil && !adoptable(o.grid, o.named):
		p.blocked = verdict{superedgev1.ReasonServiceConflict, conflictMessage(o.grid, o.named)}
	case o.named.DeletionTimestamp != nil:
		p.blocked = verdict{superedgev1.ReasonFailed, fmt.Sprintf("the Service %q is being deleted: it is made anew when it is gone", name)}
	default:
		p.change(o)
	}
	return p
}

// change plans the update of the Service that there is.
func (p *plan) change(o observed) {
	if message := immutableChange(&o.grid.Spec.Template, &o.named.Spec); message != "" {
		p.blocked = verdict{superedgev1.ReasonServiceInvalid, message}
		return
	}
	wanted := desiredService(o.grid, o.named)
	p.changes = differences(o.named, wanted)
	if len(p.changes) > 0 {
		p.update, p.adopted = wanted, p.service == nil
	}
}

// ours reports whether service is that of grid.
func ours(grid *superedgev1.ServiceGrid, service *corev1.Service) bool {
	return service != nil && metav1.IsControlledBy(service, grid) && selects(grid.Name, service)
}

// adoptable reports whether service is nobody's, and asks to be that of grid.
func adoptable(grid *superedgev1.ServiceGrid, service *corev1.Service) bool {
	return metav1.GetControllerOf(service) == nil && selects(grid.Name, service)
}

func conflictMessage(grid *superedgev1.ServiceGrid, service *corev1.Service) string {
	if controller := metav1.GetControllerOf(service); controller != nil && controller.UID != grid.UID {
		return fmt.Sprintf("the Service %q belongs to %s %q", service.Name, controller.Kind, controller.Name)
	}
	return fmt.Sprintf("the Service %q exists and does not belong to this ServiceGrid: to hand it over, give it the label %s=%s",
		service.Name, superedgev1.LabelGridSelector, grid.Name)
}
