// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	superedgevalidation "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/validation"
)

func TestCustomResourceDefinitionIsValid(t *testing.T) {
	crd := readCRD(t)
	if errs := apiextensionsvalidation.ValidateCustomResourceDefinition(t.Context(), crd); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	if want := "servicegrids." + superedgev1.GroupName; crd.Name != want || crd.Spec.Versions[0].Name != superedgev1.SchemeGroupVersion.Version {
		t.Errorf("the definition of %s in version %s, want %s in %s", crd.Name, crd.Spec.Versions[0].Name, want, superedgev1.SchemeGroupVersion.Version)
	}
	if crd.Spec.Scope != apiextensions.NamespaceScoped || crd.Spec.Versions[0].Subresources == nil && crd.Spec.Subresources == nil {
		t.Errorf("scope %s, subresources %v", crd.Spec.Scope, crd.Spec.Versions[0].Subresources)
	}
	columns := crd.Spec.AdditionalPrinterColumns
	if len(columns) == 0 {
		columns = crd.Spec.Versions[0].AdditionalPrinterColumns
	}
	got := map[string]string{}
	for _, column := range columns {
		got[column.Name] = column.JSONPath
	}
	if diff := cmp.Diff(map[string]string{
		"KEY": ".spec.gridUniqKey", "SERVICE": ".status.serviceName", "CLUSTER-IP": ".status.clusterIP", "AGE": ".metadata.creationTimestamp",
	}, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

func TestServiceGridsAgainstTheSchema(t *testing.T) {
	schema := newSchema(t)
	for _, test := range []struct {
		name, spec string
		want       []string
	}{
		{"a selector and a port", "{gridUniqKey: zone1, template: {selector: {app: echo}, ports: [{port: 80}]}}", nil},
		{"a key with a prefix", "{gridUniqKey: topology.kubernetes.io/zone, template: {}}", nil},
		{"a named target port", "{gridUniqKey: zone1, template: {ports: [{port: 80, targetPort: web}]}}", nil},
		{"the same port for two protocols",
			"{gridUniqKey: zone1, template: {ports: [{name: a, port: 53, protocol: UDP}, {name: b, port: 53, protocol: TCP}]}}", nil},
		{"no spec", "", []string{"spec: Required"}},
		{"no key", "{template: {}}", []string{"spec.gridUniqKey: Required"}},
		{"an empty key", "{gridUniqKey: '', template: {}}", []string{"spec.gridUniqKey: Invalid"}},
		{"no label key", "{gridUniqKey: 'zone 1', template: {}}", []string{"spec.gridUniqKey: Invalid"}},
		{"a prefix that is too long", "{gridUniqKey: " + strings.Repeat("a", 254) + "/zone, template: {}}", []string{"spec.gridUniqKey: Invalid"}},
		{"no template", "{gridUniqKey: zone1}", []string{"spec.template: Required"}},
		{"a template of another type", "{gridUniqKey: zone1, template: web}", []string{"spec.template: Invalid"}},
		{"a port that is no number", "{gridUniqKey: zone1, template: {ports: [{port: web}]}}", []string{"spec.template.ports[0].port: Invalid"}},
		{"a port without a number", "{gridUniqKey: zone1, template: {ports: [{protocol: TCP}]}}", []string{"spec.template.ports[0].port: Required"}},
		{"a port twice", "{gridUniqKey: zone1, template: {ports: [{port: 80, protocol: TCP}, {port: 80, protocol: TCP}]}}",
			[]string{"spec.template.ports[1]: Duplicate"}},
		{"an unknown field", "{gridUniqKey: zone1, template: {portz: []}}", []string{"spec.template.portz: unknown"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, err := range schema.validate(t, test.spec) {
				kind, _, _ := strings.Cut(err, " value")
				got = append(got, kind)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSchemaAndValidationAcceptTheSameKeys(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	keys := []string{
		"zone1", "Zone_1.a-b", "1", "a", "a/b", "topology.kubernetes.io/zone", long(63), long(253) + "/" + long(63), "a/B", "a-b.c/x",
		"", " ", "zone1 ", "zone1\n", "/", "a/", "/a", "a/b/c", "-a", "a-", ".a", "a_", "A/b", "a_b/c", "a..b/c", ".a/b", "a./b", "-a/b", "a-/b", "*",
		long(64), "a/" + long(64), long(254) + "/a", long(253) + "/" + long(64), long(254) + "/" + long(62), "zöne", "a,b", "a=b", "a\x00b",
	}
	random := rand.New(rand.NewPCG(1, 2))
	const alphabet = "aZ0-_./"
	for range 2000 {
		key := make([]byte, random.IntN(9))
		for i := range key {
			key[i] = alphabet[random.IntN(len(alphabet))]
		}
		keys = append(keys, string(key))
	}
	schema := newSchema(t)
	accepted := 0
	for _, key := range keys {
		spec, err := yaml.Marshal(map[string]any{"gridUniqKey": key, "template": map[string]any{}})
		if err != nil {
			t.Fatal(err)
		}
		bySchema := schema.validate(t, string(spec))
		byGo := superedgevalidation.ValidateServiceGrid(&superedgev1.ServiceGrid{Spec: superedgev1.ServiceGridSpec{GridUniqKey: key}})
		if (len(bySchema) == 0) != (len(byGo) == 0) {
			t.Errorf("key %q: the schema says %q, and the validation %v", key, bySchema, byGo)
		}
		if len(byGo) == 0 {
			accepted++
		}
	}
	if accepted < 100 || accepted > len(keys)-100 {
		t.Errorf("%d of %d keys are accepted: that compares too little", accepted, len(keys))
	}
}

// readCRD returns the definition with its defaults, as an API server makes it of the manifest.
func readCRD(t *testing.T) *apiextensions.CustomResourceDefinition {
	t.Helper()
	objects := decode(t, "crd.yaml")
	if len(objects) != 1 {
		t.Fatalf("%d objects, want one", len(objects))
	}
	versioned := objects[0].(*apiextensionsv1.CustomResourceDefinition)
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(versioned)
	crd := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(versioned, crd, nil); err != nil {
		t.Fatal(err)
	}
	crd.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	return crd
}

// schema does with a custom resource what an API server does before it stores one.
type schema struct {
	structural *structuralschema.Structural
	values     validation.SchemaValidator
	rules      *cel.Validator
}

func newSchema(t *testing.T) schema {
	t.Helper()
	crd := readCRD(t)
	v, err := apiextensions.GetSchemaForVersion(crd, crd.Spec.Versions[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(v.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	values, _, err := validation.NewSchemaValidator(v.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return schema{structural, values, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// validate returns the errors of a ServiceGrid whose spec is the YAML, or that has none.
func (s schema) validate(t *testing.T, spec string) []string {
	t.Helper()
	var obj map[string]any
	content := "{apiVersion: superedge.io/v1, kind: ServiceGrid, metadata: {name: echo}}"
	if err := yaml.Unmarshal([]byte(content), &obj); err != nil {
		t.Fatal(err)
	}
	if spec != "" {
		var value any
		if err := yaml.Unmarshal([]byte(spec), &value); err != nil {
			t.Fatal(err)
		}
		obj["spec"] = runtime.DeepCopyJSONValue(value)
	}
	errs := validation.ValidateCustomResource(nil, obj, s.values)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, obj)...)
	byRules, _ := s.rules.Validate(t.Context(), nil, s.structural, obj, nil, celconfig.RuntimeCELCostBudget)
	errs = append(errs, byRules...)
	var got []string
	for _, err := range errs {
		got = append(got, err.Error())
	}
	for _, path := range pruning.PruneWithOptions(obj, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		got = append(got, path+": unknown")
	}
	return got
}
