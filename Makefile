# make help prints what there is.
#
# Nothing here needs more than Go: tools that are not part of Go are fetched by
# the go command, at the versions named here. Only race needs a C compiler.

GO          ?= go
FUZZTIME    ?= 200000x
ROUNDS      ?= 300
SEED        ?= 0
DURATION    ?= 1h
SERVERS     ?= 1
STEPS       ?= 20000000
LIVES       ?= 20000
FAMILIES    ?= 2000
AGENTS      ?= 100000
FAULTS      ?= .
FIGURES     ?= turns http serve growth waiting activation
PAIRS       ?= 5
BENCHFLAGS  ?= --sync relaxed --agents 64
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
VERSION     := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS     := -s -w -X github.com/reprise-dev/reprise/cmd/internal/cli.version=$(VERSION)

export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## build, then run one node with demo agents
	bin/reprise dev

.PHONY: build
build: ## build bin/reprise
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/reprise ./cmd/reprise

.PHONY: dist
dist: ## build the release archives of all platforms and their checksums in dist/
	$(GO) run ./cmd/dist --version '$(VERSION)'

.PHONY: test
test: ## run the tests of one node and one server; three minutes on two cores
	$(GO) test -short -p $$((2 * $$(getconf _NPROCESSORS_ONLN))) ./... # for many wait more than they compute

# What make test leaves out, in parts of about ten minutes. They need processes, several
# nodes or servers, and a machine that is not too busy for heartbeats of a second.
LONG := test-cli test-docs test-cluster test-replicas test-chaos test-race test-race-cluster test-faults test-faults-actors test-mcp test-protocol test-otlp test-dist

.PHONY: test-long $(LONG)
.NOTPARALLEL:
test-long: $(LONG) ## run the long tests, part by part: an hour at most

.PHONY: examples
examples: ## run the programs of cmd/examples and compare what they print; but for three-nodes a part of make test
	$(GO) test -count=1 -v ./cmd/examples/...

test-cli: ## the built binary, command tools, large answers at once, and every benchmark for a moment
	$(GO) test -count=1 -timeout 10m ./cmd/internal/cli ./cmd/internal/bench ./cmd/bench ./providers/toolbox
	$(GO) test -count=1 -timeout 10m -run "^TestLargeAnswersAtOnce$$" ./actors

test-docs: ## run the commands of README.md and docs, and build their programs; needs curl, jq, npm, openssl and python3
	$(GO) test -count=1 -v -timeout 10m ./cmd/internal/pagetest

test-cluster: ## several nodes and servers, in one process and as processes that are killed
	$(GO) test -count=1 -p 1 -timeout 10m ./cluster/... ./eventlog/natslog ./eventlog/natslog/embedded ./cmd/examples
	REPRISE_BURST=20000 $(GO) test -count=1 -v -timeout 10m -run "^TestBurstOfAddresses$$" ./cluster

test-replicas: ## three NATS servers under load, and three minutes of chaos on them
	REPRISE_REPLICAS=1 $(GO) test -count=1 -p 1 -v -timeout 10m -run '^Test(UpgradeUnderLoad|ThreeReplicasUnderLoad|DamagedReplica|StoreUpgrade|Elections|ServerAndNodeKilled)$$' ./eventlog/natslog ./cluster/clustertest ./cmd/internal/cli
	$(MAKE) --no-print-directory chaos-cluster DURATION=3m SERVERS=3

test-chaos: ## kill a node 60 times, then harm a cluster on one server for three minutes
	$(MAKE) --no-print-directory chaos ROUNDS=60
	$(MAKE) --no-print-directory chaos-cluster DURATION=3m SERVERS=1

# Left out: a server of 2.15.2 that is shut down while it restores reads its map of streams without
# the lock (RestoreStreamV2, tieredReservation), which the detector reports now and then.
test-race: ## every package below cluster under the race detector; needs a C compiler
	CGO_ENABLED=1 $(GO) test -race -short -count=1 -timeout 10m -skip '^TestServerGoes$$' ./messages/... ./projections/... ./actors/... ./eventlog/... ./providers/... ./cmd/...

test-race-cluster: ## nodes under the race detector, several in one process; needs a C compiler
	CGO_ENABLED=1 $(GO) test -race -count=1 -p 1 -timeout 10m -skip '^Test(DamageIsNamed|TouchedAgentsLeaveMemory|Views)$$' ./cluster ./cluster/client ./cluster/gateway/... ./cluster/inbox ./cluster/ownership

test-faults: ## plant every fault of the turn machine alone (those whose names match FAULTS) and let the simulation find it
	REPRISE_FAULTS=1 $(GO) test -count=1 -v -timeout 10m -run '^TestFaults$$/^each$$/$(FAULTS)' ./actors/turn

test-faults-actors: ## the same for the actor around it; some minutes more than ten
	REPRISE_FAULTS=1 $(GO) test -count=1 -v -timeout 20m -run '^TestFaults$$/^each$$/$(FAULTS)' ./actors

test-mcp: ## the tools of real MCP servers, which npm installs; needs npm
	REPRISE_MCP=1 $(GO) test -count=1 -timeout 10m -run '^TestRealServers$$' ./providers/mcp

test-protocol: ## a client of the agent protocol that others wrote, which npm installs, against real nodes; needs npm
	REPRISE_PROTOCOL=1 $(GO) test -count=1 -timeout 10m -run '^TestForeignClient' ./cluster ./cluster/clustertest

test-otlp: ## spans sent to the OpenTelemetry collector, which Go downloads and builds
	REPRISE_OTLP=1 $(GO) test -count=1 -timeout 20m -run '^TestRealCollector$$' ./cmd/internal/cli

test-dist: ## release archives that are equal byte for byte, go install, and the deployment files read by others' parsers, which Go downloads
	REPRISE_DIST=1 $(GO) test -count=1 -v -timeout 30m -run '^Test(TwoBuilds|Platforms|Install|Foreign)' ./cmd/dist

.PHONY: race
race: ## words, machine, actors, providers under the race detector, without processes; needs a C compiler
	CGO_ENABLED=1 $(GO) test -race -short ./messages/... ./projections/... ./actors/... ./eventlog ./eventlog/memlog ./eventlog/encrypted ./providers/... ./cmd/internal/config

.PHONY: vet
vet: ## go vet
	$(GO) vet ./...

.PHONY: lint
lint: ## staticcheck
	$(GO) run $(STATICCHECK) ./...

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (200,000 inputs) each
	@set -e; \
	for file in $$(grep -rl --include='*_test.go' '^func Fuzz' . | sort); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file"); do \
			echo "$$target in $$(dirname "$$file")"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x "$$(dirname "$$file")"; \
		done; \
	done

.PHONY: sim
sim: ## live STEPS (20,000,000) random steps, LIVES (20,000) and FAMILIES (2,000) of real actors, crash at every frame
	REPRISE_STEPS=$(STEPS) $(GO) test -count=1 -v -timeout 60m -run '^TestSimulation$$' ./actors/turn
	REPRISE_LIVES=$(LIVES) $(GO) test -count=1 -v -timeout 30m -run '^TestSimulation$$' ./actors
	REPRISE_FAMILIES=$(FAMILIES) $(GO) test -count=1 -v -timeout 30m -run '^TestFamilies$$' ./actors
	REPRISE_BOUNDARIES=1 $(GO) test -count=1 -v -timeout 10m -run '^TestEveryBoundary' ./actors

.PHONY: soak
soak: ## touch AGENTS (100,000) agents on one node, see that they leave memory and answer again at once
	REPRISE_AGENTS=$(AGENTS) $(GO) test -count=1 -v -timeout 60m -run '^TestTouchedAgentsLeaveMemory$$' ./cluster

.PHONY: chaos
chaos: ## kill a node under load ROUNDS (300) times; SEED=n repeats the chances of a run
	$(GO) test -count=1 -v -timeout 30m -run '^TestChaos$$' ./cmd/internal/chaos -args -rounds $(ROUNDS) -seed $(SEED) -limit 28m

.PHONY: chaos-cluster
chaos-cluster: ## harm a cluster (SERVERS=1 or 3 of NATS) under load for DURATION (1h); SEED=n repeats the chances of a run
	$(GO) test -count=1 -v -timeout 0 -run '^TestCluster$$' ./cmd/internal/chaos -args -duration $(DURATION) -seed $(SEED) -servers $(SERVERS)

.PHONY: bench
bench: bin/bench ## measure this machine: bin/bench NAME... has more figures than this and than reprise bench
	bin/bench

.PHONY: bin/bench
bin/bench:
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/bench

.PHONY: bench-against
bench-against: bin/bench ## measure FIGURES with this tree and with BASE=<commit> in turn, PAIRS (5) times, and print the ratios
	@test -n "$(BASE)" || { echo "name the commit to compare with: make bench-against BASE=<commit>"; exit 2; }
	@set -e; dir=$$(mktemp -d); \
	trap 'git worktree remove --force "$$dir/base" || true; rm -rf "$$dir"' EXIT; trap 'exit 130' INT TERM; \
	git worktree add --quiet --detach "$$dir/base" "$(BASE)"; \
	(cd "$$dir/base" && if [ -f cmd/bench/main.go ]; then $(GO) build -trimpath -o "$$dir/old" ./cmd/bench; else $(GO) build -trimpath -o "$$dir/old" ./cmd/reprise; fi); \
	bin/bench $(FIGURES) --against "$$dir/old" --pairs $(PAIRS) $(BENCHFLAGS)

.PHONY: docs
docs: ## write the generated parts of docs/reference
	$(GO) test -count=1 -short ./messages ./cluster/gateway ./cmd/internal/config ./cmd/internal/cli -run '^TestReference' -update
	$(GO) test -count=1 ./cluster -run '^TestMetricsAreWrittenDown$$' -update

.PHONY: verify
verify: vet ## check form, modules, lint, the shape of the tree and the pages
	@unformatted=$$(gofmt -l actors cluster cmd eventlog messages projections providers); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w:"; echo "$$unformatted"; exit 1; fi
	$(GO) mod tidy -diff
	$(MAKE) --no-print-directory lint
	$(GO) test ./cmd/internal/archtest
	$(GO) test -short ./cmd/internal/pagetest
	$(GO) test -short ./messages ./cluster/gateway ./cmd/internal/config ./cmd/internal/cli -run '^TestReference'

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist
	$(GO) clean -testcache
