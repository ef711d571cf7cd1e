// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package table turns objects into the tables that kubectl prints.
//
// The server always sends every column; those with a priority above zero are
// shown by "kubectl get -o wide" only.
package table

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"
)

// None, Unset and Unknown are the cells of values that are not there, in the
// words that users know from kube-apiserver.
const (
	None    = "<none>"
	Unset   = "<unset>"
	Unknown = "<unknown>"
)

// NewConvertor returns a convertor for objects of type T and for their lists.
// cells renders one object, one value per column; it must not change the
// object, which may be shared with the watch cache. now is read from clk once
// per table. The convertor is safe for concurrent use.
func NewConvertor[T runtime.Object](clk clock.PassiveClock, columns []metav1.TableColumnDefinition, cells func(obj T, now time.Time) []any) rest.TableConvertor {
	return &convertor[T]{clock: clk, columns: columns, cells: cells}
}

type convertor[T runtime.Object] struct {
	clock   clock.PassiveClock
	columns []metav1.TableColumnDefinition
	cells   func(obj T, now time.Time) []any
}

// ConvertToTable implements rest.TableConvertor.
func (c *convertor[T]) ConvertToTable(_ context.Context, obj, tableOptions runtime.Object) (*metav1.Table, error) {
	headers := true
	switch options := tableOptions.(type) {
	case nil:
	case *metav1.TableOptions:
		headers = options == nil || !options.NoHeaders
	default:
		return nil, fmt.Errorf("table options of type %T are not supported", tableOptions)
	}

	now := c.clock.Now()
	result := &metav1.Table{Rows: []metav1.TableRow{}}
	if headers {
		result.ColumnDefinitions = c.columns
	}
	if list, err := meta.ListAccessor(obj); err == nil {
		result.ResourceVersion = list.GetResourceVersion()
		result.Continue = list.GetContinue()
		result.RemainingItemCount = list.GetRemainingItemCount()
		result.Rows = make([]metav1.TableRow, 0, meta.LenList(obj))
		return result, meta.EachListItem(obj, func(item runtime.Object) error { return c.addRow(result, item, now) })
	}
	if accessor, err := meta.CommonAccessor(obj); err == nil {
		result.ResourceVersion = accessor.GetResourceVersion()
	}
	return result, c.addRow(result, obj, now)
}

func (c *convertor[T]) addRow(result *metav1.Table, obj runtime.Object, now time.Time) error {
	typed, ok := obj.(T)
	if !ok {
		return fmt.Errorf("an object of type %T cannot be a row of this table", obj)
	}
	result.Rows = append(result.Rows, metav1.TableRow{
		Cells:  c.cells(typed, now),
		Object: runtime.RawExtension{Object: obj},
	})
	return nil
}

// NameColumn is the first column of every table.
func NameColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{
		Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"],
	}
}

// AgeColumn is the column whose cells Age renders.
func AgeColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{
		Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
	}
}

// Age renders the time since created, as "5m" or "3d2h"; an object that was
// never created has no age.
func Age(created metav1.Time, now time.Time) string {
	if created.IsZero() {
		return Unknown
	}
	return duration.HumanDuration(now.Sub(created.Time))
}
