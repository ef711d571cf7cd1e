// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/namespaces"
	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
)

func TestTableCarriesListMetadata(t *testing.T) {
	remaining := int64(7)
	tests := map[string]struct {
		object runtime.Object
		want   metav1.ListMeta
		rows   int
	}{
		"list": {
			object: &corev1.NamespaceList{
				ListMeta: metav1.ListMeta{ResourceVersion: "42", Continue: "token", RemainingItemCount: &remaining},
				Items:    []corev1.Namespace{{}, {}},
			},
			want: metav1.ListMeta{ResourceVersion: "42", Continue: "token", RemainingItemCount: &remaining},
			rows: 2,
		},
		"empty list": {
			object: &corev1.NamespaceList{ListMeta: metav1.ListMeta{ResourceVersion: "42"}},
			want:   metav1.ListMeta{ResourceVersion: "42"},
		},
		"one object": {
			object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "41"}},
			want:   metav1.ListMeta{ResourceVersion: "41"},
			rows:   1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := namespaces.NewTable(testclock.NewFakePassiveClock(now)).ConvertToTable(t.Context(), test.object, &metav1.TableOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.ListMeta); diff != "" {
				t.Errorf("metadata (-want +got):\n%s", diff)
			}
			if got.Rows == nil || len(got.Rows) != test.rows {
				t.Errorf("got rows %v, want %d, not nil", got.Rows, test.rows)
			}
		})
	}
}

func TestTableOptions(t *testing.T) {
	tests := map[string]struct {
		options runtime.Object
		headers bool
		wantErr bool
	}{
		"nil":            {headers: true},
		"typed nil":      {options: (*metav1.TableOptions)(nil), headers: true},
		"default":        {options: &metav1.TableOptions{}, headers: true},
		"no headers":     {options: &metav1.TableOptions{NoHeaders: true}},
		"another object": {options: &metav1.Status{}, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := namespaces.NewTable(testclock.NewFakePassiveClock(now)).ConvertToTable(t.Context(), &corev1.Namespace{}, test.options)
			if (err != nil) != test.wantErr {
				t.Fatalf("error %v, want one: %v", err, test.wantErr)
			}
			if err == nil && (len(got.ColumnDefinitions) > 0) != test.headers {
				t.Errorf("got headers %v, want them: %v", got.ColumnDefinitions, test.headers)
			}
		})
	}
}

func TestTableRefusesAnotherType(t *testing.T) {
	convertor := namespaces.NewTable(testclock.NewFakePassiveClock(now))
	for _, object := range []runtime.Object{&corev1.Service{}, &corev1.ServiceList{Items: []corev1.Service{{}}}} {
		if got, err := convertor.ConvertToTable(t.Context(), object, nil); err == nil {
			t.Errorf("%T gave the table %v, want an error", object, got)
		}
	}
}

func TestListing(t *testing.T) {
	tests := map[string]struct {
		values []string
		want   string
	}{
		"nothing":      {want: table.Unset},
		"empty value":  {values: []string{""}, want: table.Unset},
		"one":          {values: []string{"a"}, want: "a"},
		"all shown":    {values: []string{"a", "b", "c"}, want: "a,b,c"},
		"one counted":  {values: []string{"a", "b", "c", "d"}, want: "a,b,c + 1 more..."},
		"many counted": {values: make([]string, 1000), want: ",, + 997 more..."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var listing table.Listing
			for _, value := range test.values {
				listing.Add(func() string { return value })
			}
			if got := listing.String(table.Unset); got != test.want {
				t.Errorf("got %s, want %s", strconv.Quote(got), strconv.Quote(test.want))
			}
		})
	}
}

func TestAge(t *testing.T) {
	tests := map[string]struct {
		created metav1.Time
		want    string
	}{
		"never created":  {want: table.Unknown},
		"seconds":        {created: metav1.NewTime(now.Add(-3 * time.Second)), want: "3s"},
		"days and hours": {created: metav1.NewTime(now.Add(-50 * time.Hour)), want: "2d2h"},
		"clock skew":     {created: metav1.NewTime(now.Add(time.Hour)), want: "<invalid>"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := table.Age(test.created, now); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
