#!/usr/bin/env bash
# Runs each fuzz target of the main module for the given time: go test accepts one target at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
fuzztime=${1:-10s}

# Compiling every test only to find that it has no fuzz target takes minutes.
folders() {
	find . -name '*_test.go' -not -path './test/*' -not -path './bin/*' -exec grep -lE '^func Fuzz' {} + | xargs -n1 dirname | sort -u
}

# Prints "<package> <target>" for each target. The names of a package come before the line that names it.
targets() {
	go test -list '^Fuzz' $(folders) | awk '
		/^Fuzz/ { names[n++] = $1 }
		$1 == "ok" { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }'
}

list=$(targets)
[ -n "$list" ] || { echo "no fuzz target found" >&2; exit 1; }
failed=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT
while read -r package target; do
	echo "== $target ($package)"
	if ! go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$package" </dev/null 2>&1 | tee "$log"; then
		# Go may take the end of the time for a failure; one that is real has an input.
		if grep -q '^ *context deadline exceeded$' "$log" && ! grep -q 'Failing input' "$log"; then
			echo "the time has ended, that is no failure"
		else
			failed+=("$target")
		fi
	fi
done <<<"$list"
if [ ${#failed[@]} -gt 0 ]; then
	echo "failed: ${failed[*]}; the inputs are in testdata/fuzz of the packages" >&2
	exit 1
fi
