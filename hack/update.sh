#!/usr/bin/env bash
# Brings in step what hack/verify.sh checks, in the given modules (folders with a go.mod).
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/hack/tools/go.mod

for m in "$@"; do
	(cd "$m" && go mod tidy)
done
hack/update-codegen.sh
for m in "$@"; do
	[ "$m" != hack/tools ] || continue
	(cd "$m" && go tool -modfile="$tools" golangci-lint fmt ./...)
done
# Packages whose tests have golden files: they define the flag -update.
packages=$(grep -rlE 'flag\.Bool\("update"' --include='*_test.go' . | xargs -r -n1 dirname | sort -u)
for p in $packages; do
	go test -count 1 "$p" -update
done
