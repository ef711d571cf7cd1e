// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/storage"
)

const (
	// The two texts are those that clients get from kube-apiserver for an expired continue token.
	continueExpired      = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter."
	inconsistentContinue = "The provided continue parameter is too old " +
		"to display a consistent list result. You can start a new list without " +
		"the continue parameter, or use the continue token in this response to " +
		"retrieve the remainder of the results. Continuing with the provided " +
		"token results in an inconsistent list - objects that were created, " +
		"modified, or deleted between the time the first chunk was returned " +
		"and now may show up in the list."

	listTimeout = "request did not complete within requested timeout"

	// cancelCheck is after how many objects a LIST looks whether its caller is gone: copying or decoding one takes some microseconds.
	cancelCheck = 64
)

// GetList implements storage.Interface. A LIST at an exact revision, and every page after the first, is answered from the
// state at that revision as long as the window reaches back to it, and with 410 Expired after that.
func (s *Store) GetList(ctx context.Context, key string, opts storage.ListOptions, listObj runtime.Object) error {
	prefix, err := s.prepareKey(key, opts.Recursive)
	if err != nil {
		return err
	}
	items, err := itemsOf(listObj)
	if err != nil {
		return err
	}
	state, from, err := s.stateFor(prefix, opts)
	if err != nil {
		return err
	}
	page, err := s.page(ctx, state, prefix, from, opts)
	if err != nil {
		return err
	}
	if err := s.setItems(ctx, items, page.objects); err != nil {
		return err
	}
	if err := page.failed.result(s.groupResource); err != nil {
		return err // with the items that could be read
	}
	token, remaining, err := storage.PrepareContinueToken(page.lastKey, prefix, int64(state.revision), page.count, page.more, opts)
	if err != nil {
		return err
	}
	if err := versioner.UpdateList(listObj, state.revision, token, remaining); err != nil {
		return err
	}
	opts.Predicate.SetShardInfoOnList(listObj)
	return nil
}

func itemsOf(listObj runtime.Object) (reflect.Value, error) {
	pointer, err := meta.GetItemsPtr(listObj)
	if err != nil {
		return reflect.Value{}, err
	}
	items, err := conversion.EnforcePtr(pointer)
	if err != nil {
		return reflect.Value{}, fmt.Errorf("need a pointer to a slice: %w", err)
	}
	if items.Kind() != reflect.Slice {
		return reflect.Value{}, fmt.Errorf("need a pointer to a slice, got one to %s", items.Type())
	}
	return items, nil
}

// checkListType refuses a list that does not hold objects of objectType.
func checkListType(objectType reflect.Type, listObj runtime.Object) error {
	items, err := itemsOf(listObj)
	if err != nil {
		return err
	}
	if element := items.Type().Elem(); reflect.PointerTo(element) != objectType {
		return fmt.Errorf("%T is a list of %s, not of %s", listObj, element, objectType)
	}
	return nil
}

// stateFor returns the state that opts ask for, and the key to begin at.
func (l *log) stateFor(prefix string, opts storage.ListOptions) (snapshot, string, error) {
	exact, from, err := storage.ValidateListOptions(prefix, versioner, opts)
	if err != nil {
		return snapshot{}, "", err
	}
	if from == "" {
		from = prefix
	}
	if exact == 0 {
		state := l.latest()
		return state, from, validateMinimum(opts.ResourceVersion, state.revision)
	}
	if exact < 0 { // a resourceVersion beyond the signed range, which no revision reaches
		return snapshot{}, "", storage.NewTooLargeResourceVersionError(uint64(exact), l.Revision(), 0)
	}
	state, err := l.at(uint64(exact), prefix)
	if apierrors.IsResourceExpired(err) && len(opts.Predicate.Continue) > 0 {
		err = expiredContinue(from, prefix)
	}
	return state, from, err
}

// expiredContinue is 410 Expired with a token that goes on at the same key in the present, which the client may use if
// it can live with an inconsistent list.
func expiredContinue(from, prefix string) error {
	token, err := storage.EncodeContinue(from, prefix, -1)
	if err != nil {
		utilruntime.HandleError(err)
		return apierrors.NewResourceExpired(continueExpired)
	}
	expired := apierrors.NewResourceExpired(inconsistentContinue)
	expired.ErrStatus.ListMeta.Continue = token
	return expired
}

// page is a part of a state.
type page struct {
	objects []runtime.Object // as Store.object returns them
	failed  listErrors       // of those that could not be read
	lastKey string           // the last key that was looked at
	count   int64            // how many keys there were from the start of the page on; exact only if it is needed
	more    bool             // whether keys follow lastKey
}

// page selects what opts ask for from in, from the key from on. Codecs and predicates are foreign code, and run without a
// lock.
func (s *Store) page(ctx context.Context, in snapshot, prefix, from string, opts storage.ListOptions) (page, error) {
	pred := opts.Predicate
	all := pred.Empty()
	limit := math.MaxInt
	if pred.Limit > 0 {
		limit = int(pred.Limit)
	}
	out := page{failed: listErrors{collect: unsafeDeletion()}}
	var failed error
	visit := func(e *entry) bool {
		if len(out.objects) >= limit {
			out.more = true
			out.count++
			return all // go on to count what remains, which is reported if nothing is filtered
		}
		if out.count++; out.count%cancelCheck == 0 && ctx.Err() != nil {
			failed = storage.NewTimeoutError(e.key, listTimeout)
			return false
		}
		out.lastKey = e.key
		object, err := s.object(ctx, e)
		if err != nil {
			return out.failed.add(e.key, err)
		}
		if all {
			out.objects = append(out.objects, object)
		} else if matched, err := pred.Matches(object); err == nil && matched {
			out.objects = append(out.objects, object)
		}
		return true
	}
	if !opts.Recursive {
		if e, ok := in.objects.Get(&entry{key: prefix}); ok {
			visit(e)
		}
		return out, failed
	}
	in.ascend(prefix, from, visit)
	return out, failed
}

// ascend visits the entries whose keys begin with prefix, in order, from the key from on.
func (s snapshot) ascend(prefix, from string, visit func(*entry) bool) {
	s.objects.AscendGreaterOrEqual(&entry{key: from}, func(e *entry) bool {
		return strings.HasPrefix(e.key, prefix) && visit(e)
	})
}

// setItems sets items, a slice of structs, to the objects as the caller's own.
func (s *Store) setItems(ctx context.Context, items reflect.Value, objects []runtime.Object) error {
	out := reflect.MakeSlice(items.Type(), len(objects), len(objects))
	element := items.Type().Elem()
	for i, object := range objects {
		if i%cancelCheck == 0 && ctx.Err() != nil {
			return storage.NewTimeoutError(s.resourcePrefix, listTimeout)
		}
		value := reflect.ValueOf(s.own(object))
		if value.Kind() != reflect.Pointer || value.Type().Elem() != element {
			return fmt.Errorf("listing %s: the stored objects are %s, the list holds %s", s.groupResource, value.Type(), element)
		}
		out.Index(i).Set(value.Elem())
	}
	items.Set(out)
	return nil
}
