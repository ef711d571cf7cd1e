#!/usr/bin/env bash
# Checks what must be in step in the given modules (folders with a go.mod). Runs every check, then says which failed.
set -uo pipefail
cd "$(dirname "$0")/.."
modules=("$@")
tools=$PWD/hack/tools/go.mod
failed=()

check() {
	local name=$1
	shift
	echo "== $name"
	"$@" || failed+=("$name")
}

# in DIR COMMAND...
in_dir() { (cd "$1" && shift && "$@"); }

gofiles() { find . -name '*.go' -not -path './bin/*' -not -path '*/testdata/*' -print0; }

formatted() {
	local differ
	differ=$(gofiles | xargs -0 gofmt -l) || return 1
	[ -z "$differ" ] || { echo "not formatted (make update):"; echo "$differ"; return 1; }
}

headers() {
	local missing
	missing=$(gofiles | xargs -0 grep -L '^// SPDX-License-Identifier: Apache-2.0$')
	[ -z "$missing" ] || { echo "no licence header:"; echo "$missing"; return 1; }
}

# The golden files are what "go test -update" would write. The tests compare them; here, nothing may be left over.
golden() {
	local orphans=() f
	while IFS= read -r -d '' f; do
		case $f in
		*.out.yaml) [ -e "${f%.out.yaml}.in.yaml" ] || orphans+=("$f") ;;
		*.golden) [ -e "${f%.golden}.yaml" ] || orphans+=("$f") ;;
		esac
	done < <(find . -path '*/testdata/*' -type f -print0)
	[ ${#orphans[@]} -eq 0 ] || { echo "golden files without an input:"; printf '%s\n' "${orphans[@]}"; return 1; }
}

for m in "${modules[@]}"; do
	check "go mod tidy ($m)" in_dir "$m" go mod tidy -diff
done
check "gofmt" formatted
check "licence headers" headers
check "golden files" golden
check "generated code (make update)" hack/update-codegen.sh --verify
check "manifests" go test -count 1 ./artifacts
for m in "${modules[@]}"; do
	# The module of the tools has no packages of its own.
	[ "$m" != hack/tools ] || continue
	check "go vet ($m)" in_dir "$m" go vet ./...
	check "logcheck ($m)" in_dir "$m" go tool -modfile="$tools" logcheck ./...
done

if [ ${#failed[@]} -gt 0 ]; then
	echo "failed:" >&2
	printf '  %s\n' "${failed[@]}" >&2
	exit 1
fi
