# Everything is built with Go alone. Tools are pinned in hack/tools/go.mod and run by "go tool".

SHELL := /usr/bin/env bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

MODULES := . test/e2e hack/tools

# A version must parse as one: the API server machinery refuses to start otherwise.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || echo "v0.0.0-g$$(git rev-parse --verify -q --short=12 HEAD 2>/dev/null || echo unknown)")
COMMIT ?= $(shell git rev-parse --verify -q HEAD 2>/dev/null || echo unknown)
VERSION_PACKAGE := k8s.io/component-base/version
LDFLAGS := -s -w -X $(VERSION_PACKAGE).gitVersion=$(VERSION) -X $(VERSION_PACKAGE).gitCommit=$(COMMIT)

TEST_TIMEOUT ?= 15m
E2E_TIMEOUT ?= 40m
FUZZTIME ?= 10s
# Of test-random: the number of interleavings, a seed to replay instead, and anything for the race detector.
N ?= 10000
SEED ?=
RACE ?=
BENCHCOUNT ?= 6
BENCHFLAGS ?=
E2EFLAGS ?=
DEMO_EXIT ?=
RUNFLAGS ?=

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/grid-apiserver and bin/grid-controller-manager.
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

# The first build compiles Kubernetes' libraries, which takes minutes.
# With -trimpath, as in all builds without cgo: what one has compiled, the others need not.
.PHONY: demo
demo: ## Show, without a cluster, what each of three nodes sees; DEMO_EXIT=1 ends it after the check.
	@mkdir -p bin
	@echo "Building the demo (some minutes the first time)"
	@CGO_ENABLED=0 go build -trimpath -o bin/servicegrid-demo ./examples/servicegrid-demo/demo
	@DEMO_EXIT='$(DEMO_EXIT)' bin/servicegrid-demo

.PHONY: run
run: build ## Run it with RUNFLAGS, for example RUNFLAGS='--standalone --node-name=...'; the data directory is bin/data.
	bin/grid-apiserver --data-dir=bin/data $(RUNFLAGS)

.PHONY: test
test: ## Run all tests of the main module with the race detector. Needs Go and a C compiler.
	CGO_ENABLED=1 go test -race -timeout $(TEST_TIMEOUT) ./...

# One run of the other tests of the store takes up to a thousand times as long as one of its operations.
.PHONY: test-random
test-random: ## Play N (10000) random interleavings against the view and the store; SEED=<seed> replays one, RACE=1.
	@play() { CGO_ENABLED=$(if $(RACE),1,0) go test $(if $(RACE),-race) -count 1 -timeout 2h -run "$$2" "$$1" -random=$$(($(N) / $$3 + 1)) $(if $(SEED),-seed=$(SEED)); }; \
	play ./pkg/watchcache '^Test(ViewEqualsTheFilteredUpstream|MirrorEqualsUpstream)$$' 1; \
	play ./pkg/storage/memory '^TestRandomOperationsMatchModel$$' 1; \
	play ./pkg/storage/memory '^TestStoreIsLinearizable$$' 10; \
	play ./pkg/storage/memory '^TestWatchGuarantees$$' 100; \
	play ./pkg/storage/memory '^TestWatchGuaranteesUnderCacher$$' 1000

.PHONY: test-mutants
test-mutants: ## Plant one defect at a time, and check that the tests notice.
	hack/mutants.sh

.PHONY: test-writes
test-writes: ## Write through a view at random for 15 s, on a machine that does nothing else.
	CGO_ENABLED=0 go test -trimpath -count 1 -run '^TestRandomWritesThroughTheView$$' ./pkg/testserver -writes

.PHONY: test-steady
test-steady: ## Watch a standalone server for 30 s in which nothing has to be written, and count what is.
	CGO_ENABLED=0 go test -trimpath -count 1 -run '^TestSteadyStateWritesNothing$$' ./pkg/testserver -quiet=30s

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (10s).
	hack/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: ## Run the benchmarks, in 15 minutes, into bin/bench.txt and bin/bench.md; BASE=<an older .txt> compares.
	@mkdir -p bin
	go test -run '^$$' -bench . -benchmem -count $(BENCHCOUNT) -timeout 1h $(BENCHFLAGS) \
		$$(grep -rl '^func Benchmark' --include='*_test.go' cmd pkg | xargs -n1 dirname | sort -u | sed 's|^|./|') | tee bin/bench.txt
	hack/bench-table.sh bin/bench.txt > bin/bench.md
ifdef BASE
	go tool -modfile=hack/tools/go.mod benchstat $(BASE) bin/bench.txt
endif

.PHONY: bench-server
bench-server: ## Measure the whole server beside a real kube-apiserver, in five minutes. Needs root and Debian.
	cd test/e2e && go run ./cmd/lab build && go run ./bench

.PHONY: bench-lists
bench-lists: ## Measure what large LISTs take in memory, in three minutes. Linux.
	go test -v -count 1 -timeout 30m -run '^TestPeakMemoryOfLists$$' ./pkg/server -listmemory

# The programs of the lab are built first, because that shows its progress, and so does -p 1 -v for the tests. With -p 1
# Go also compiles one package at a time, so go vet compiles them before.
.PHONY: e2e
e2e: ## Run the end-to-end tests with the real Kubernetes components. Needs root and Debian.
	cd test/e2e && go run ./cmd/lab build && go vet ./... && go test -p 1 -v -count 1 -timeout $(E2E_TIMEOUT) $(E2EFLAGS) ./...

.PHONY: lab
lab: ## Bring up three nodes with real Kubernetes components, to try things in. Needs root and Debian.
	cd test/e2e && go run ./cmd/lab up

.PHONY: lab-down
lab-down: ## End what "make lab" started.
	cd test/e2e && go run ./cmd/lab down

.PHONY: lint
lint: ## Run golangci-lint on both modules.
	status=0; tools=$(CURDIR)/hack/tools/go.mod; \
	for module in . test/e2e; do \
		(cd $$module && go tool -modfile=$$tools golangci-lint run ./...) || status=1; \
	done; exit $$status

.PHONY: verify
verify: ## Check what must be in step: modules, generated code, formatting, headers, go vet, logging calls, manifests, golden files.
	hack/verify.sh $(MODULES)

.PHONY: update
update: ## Bring that in step: tidy the modules, generate code, format, rewrite the golden files.
	hack/update.sh $(MODULES)

.PHONY: clean
clean: ## Remove bin/. The programs of the lab stay in the user's cache folder.
	rm -rf bin
