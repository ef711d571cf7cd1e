#!/usr/bin/env bash
# Writes what is generated from the types in pkg/apis: deepcopy functions, clients, OpenAPI definitions and the
# CustomResourceDefinition. With --verify, shows what would change instead, and fails if anything would.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
module=$(go list -m)
generated=$module/pkg/generated
input=$module/pkg/apis/superedge/v1
header=(--go-header-file "$root/hack/boilerplate.go.txt")

# The kinds that standalone serves, and what they refer to.
served=(
	k8s.io/api/apps/v1
	k8s.io/api/authentication/v1
	k8s.io/api/authorization/v1
	k8s.io/api/autoscaling/v1
	k8s.io/api/coordination/v1
	k8s.io/api/core/v1
	k8s.io/api/discovery/v1
	k8s.io/api/events/v1
	k8s.io/api/networking/v1
	k8s.io/api/rbac/v1
	k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1
	k8s.io/apimachinery/pkg/api/resource
	k8s.io/apimachinery/pkg/apis/meta/v1
	k8s.io/apimachinery/pkg/runtime
	k8s.io/apimachinery/pkg/util/intstr
	k8s.io/apimachinery/pkg/version
)
# The packages of these modules have their deepcopy functions and model names.
readonly=(k8s.io/api k8s.io/apimachinery k8s.io/apiextensions-apiserver)

# Everything is made in a copy of what it needs: the tree is never half done, and never changed by --verify.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy"/{artifacts,hack,pkg/generated/openapi} pkg/generated
cp go.mod go.sum "$copy"
cp -r hack/models-schema "$copy/hack"
cp -r pkg/apis "$copy/pkg"
find "$copy/pkg/apis" -name 'zz_generated.*' -delete
cd "$copy"

generate() {
	local name=$1
	shift
	go tool -modfile="$root/hack/tools/go.mod" "$name" "$@"
}

generate deepcopy-gen "${header[@]}" --output-file zz_generated.deepcopy.go "$input"
# The report is about the style of the API, mostly of Kubernetes' own.
generate openapi-gen "${header[@]}" --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
	--output-dir pkg/generated/openapi --output-pkg "$generated/openapi" --report-filename "$copy/report" \
	"${readonly[@]/#/--readonly-pkg=}" "${served[@]}" "$input"
# -trimpath: the folder of the copy, a new one each time, is no reason to compile it all again. The generator looks for
# the model names that it makes of Go's import paths, and what it writes is to have those of the OpenAPI definitions.
inferred=com.github.${module#github.com/}/pkg/apis/superedge/v1 && inferred=${inferred//\//.}
go run -trimpath ./hack/models-schema | sed "s/io\.superedge\.v1\./$inferred./g" >"$copy/schema.json"
generate applyconfiguration-gen "${header[@]}" --openapi-schema "$copy/schema.json" \
	--output-dir pkg/generated/applyconfiguration --output-pkg "$generated/applyconfiguration" \
	--external-applyconfigurations k8s.io/api/core/v1.ServiceSpec:k8s.io/client-go/applyconfigurations/core/v1 "$input"
find pkg/generated/applyconfiguration -name '*.go' -exec sed -i "s/${inferred//./\\.}\./io.superedge.v1./g" {} +
generate client-gen "${header[@]}" --output-dir pkg/generated/clientset --output-pkg "$generated/clientset" \
	--clientset-name versioned --apply-configuration-package "$generated/applyconfiguration" \
	--input-base "$module/pkg/apis" --input superedge/v1
generate lister-gen "${header[@]}" --output-dir pkg/generated/listers --output-pkg "$generated/listers" "$input"
generate informer-gen "${header[@]}" --output-dir pkg/generated/informers --output-pkg "$generated/informers" \
	--versioned-clientset-package "$generated/clientset/versioned" --listers-package "$generated/listers" "$input"
{
	echo "# Written by hack/update-codegen.sh from pkg/apis/superedge/v1."
	generate controller-gen crd paths="./pkg/apis/..." output:crd:stdout | sed '/^---$/d'
} >artifacts/crd.yaml

if [ "${1:-}" = --verify ]; then
	status=0
	for path in pkg/apis pkg/generated artifacts/crd.yaml; do
		diff -ruN --exclude='*_test.go' "$root/$path" "$path" || status=1
	done
	exit $status
fi
cp artifacts/crd.yaml "$root/artifacts"
for made in pkg/apis/superedge/v1/zz_generated.*; do
	cp "$made" "$root/$made"
done
# All of pkg/generated but tests is made here: what is there and not made any more goes.
{ diff -rq --exclude='*_test.go' "$root/pkg/generated" pkg/generated || true; } | sed -nE "s|^Only in ($root[^:]*): (.*)|\1/\2|p" | xargs -r rm -r
cp -r pkg/generated "$root/pkg"
