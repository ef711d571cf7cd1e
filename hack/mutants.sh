#!/usr/bin/env bash
# Tests the tests: plants one defect at a time (internal/mutant) and fails if the tests of a package that must notice it pass.
set -euo pipefail
cd "$(dirname "$0")/.."
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
missed=()

# mutant TAG PACKAGE TESTS: one of the tests must fail, and not because the package does not compile.
mutant() {
	local tag=$1 package=$2 tests=$3 log=$logs/$1
	go test -tags "$tag" -run '^$' "$package" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
	if go test -tags "$tag" -count 1 -timeout 5m -run "$tests" "$package" >"$log" 2>&1; then
		missed+=("$tag by $package")
		echo "$tag: NOT FOUND by $package"
	elif ! grep -aq '^--- FAIL' "$log"; then
		cat "$log" >&2
		exit 1
	else
		echo "$tag: found by $package:" $(sed -nE 's/^--- FAIL: (\S+).*/\1/p' "$log" | sort -u)
	fi
}

store='^(TestRandomOperationsMatchModel|TestWatchGuarantees|TestStoreIsLinearizable|TestWrittenObjectsAreNotShared|FuzzStore)$'
view='^Test(View|Mirror)Equals'
mutant mutant_dropped_event ./pkg/storage/memory "$store"
mutant mutant_dropped_event ./pkg/watchcache "$view"
mutant mutant_reused_revision ./pkg/storage/memory "$store"
mutant mutant_reused_revision ./pkg/watchcache "$view"
mutant mutant_stale_domain ./pkg/watchcache "$view"
mutant mutant_aliasing_write ./pkg/storage/memory "$store"
mutant mutant_lost_tombstone ./pkg/watchcache "$view"

if [ ${#missed[@]} -gt 0 ]; then
	echo "not found:" >&2
	printf '  %s\n' "${missed[@]}" >&2
	exit 1
fi
