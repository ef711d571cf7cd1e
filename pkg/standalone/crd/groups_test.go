// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// definition serves the versions, but those that begin with a minus sign.
func definition(name, group string, established apiextensionsv1.ConditionStatus, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name + "." + group}}
	out.Spec.Group = group
	for _, v := range versions {
		served := v[0] != '-'
		if !served {
			v = v[1:]
		}
		out.Spec.Versions = append(out.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v, Served: served})
	}
	out.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: established}}
	return out
}

func TestServedVersions(t *testing.T) {
	served := servedVersions([]*apiextensionsv1.CustomResourceDefinition{
		definition("b", "one.org", apiextensionsv1.ConditionTrue, "v1"),
		definition("a", "one.org", apiextensionsv1.ConditionTrue, "v1", "-v1alpha1"),
		definition("c", "two.org", apiextensionsv1.ConditionFalse, "v1"),
	})
	got := map[string][]string{}
	for gv, definitions := range served {
		for _, d := range definitions {
			got[gv.String()] = append(got[gv.String()], d.Name)
		}
	}
	if diff := cmp.Diff(map[string][]string{"one.org/v1": {"a.one.org", "b.one.org"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPreferredVersion(t *testing.T) {
	versions := map[schema.GroupVersion]bool{}
	for _, v := range []string{"v1beta2", "v1", "v2alpha1", "v10", "other"} {
		versions[schema.GroupVersion{Group: "one.org", Version: v}] = true
	}
	group := groupsOf(versions)["one.org"]
	var got []string
	for _, v := range group.Versions {
		got = append(got, v.Version)
	}
	if diff := cmp.Diff([]string{"v10", "v1", "v1beta2", "v2alpha1", "other"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if group.PreferredVersion.GroupVersion != "one.org/v10" {
		t.Errorf("preferred: %v", group.PreferredVersion)
	}
}
