#!/usr/bin/env bash
# Prints the results of "make bench" in the given file as tables in markdown, one for each package. A benchmark that ran
# several times is there with its medians.
set -euo pipefail

awk '
	function median(list,    n, values, i, j, t) {
		n = split(list, values, " ")
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && values[j - 1] + 0 > values[j] + 0; j--) {
				t = values[j]; values[j] = values[j - 1]; values[j - 1] = t
			}
		return values[int((n + 1) / 2)]
	}
	function time(ns) {
		if (ns == "") return ""
		if (ns >= 1e6) return sprintf("%.3g ms", ns / 1e6)
		if (ns >= 1e3) return sprintf("%.3g µs", ns / 1e3)
		return sprintf("%.3g ns", ns)
	}
	function flush(    i, k, other) {
		if (!names) return
		printf "\n`%s`\n\n| benchmark | time | allocated | allocations | also |\n|---|---:|---:|---:|---|\n", package
		for (i = 1; i <= names; i++) {
			other = ""
			for (k = 1; k <= units; k++)
				if ((order[i], unit[k]) in got)
					other = other (other ? ", " : "") (unit[k] == "p50-ns" ? "p50 " time(median(got[order[i], unit[k]])) : \
						median(got[order[i], unit[k]]) " " unit[k])
			printf "| %s | %s | %s B | %s | %s |\n", order[i], time(median(got[order[i], "ns/op"])), \
				median(got[order[i], "B/op"]), median(got[order[i], "allocs/op"]), other
		}
		names = 0
		delete got
	}
	$1 == "pkg:" { flush(); package = $2; sub(/.*grid-apiserver\/grid-apiserver\//, "", package) }
	/^Benchmark/ && NF > 3 {
		name = $1; sub(/^Benchmark/, "", name); sub(/-[0-9]+$/, "", name)
		if (!((name, "ns/op") in got)) order[++names] = name
		for (i = 3; i < NF; i += 2) {
			if ($(i + 1) !~ /^(ns|B|allocs)\/op$/ && !($(i + 1) in known)) { known[$(i + 1)] = 1; unit[++units] = $(i + 1) }
			got[name, $(i + 1)] = got[name, $(i + 1)] " " $i
		}
	}
	END { flush() }' "$1"
