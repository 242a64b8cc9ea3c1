# goodput. `make` lists the targets. Everything but e2e needs Go alone.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Each go.mod is a module; those in go.work see each other, the rest (rivals,
# linters, real services) keep their dependencies to themselves.
MODULES := $(sort $(patsubst %/,%,$(dir $(wildcard go.mod */go.mod cmd/*/go.mod))))
WORKSPACE = $(shell go list -m -f '{{.Dir}}/...')

FUZZTIME ?= 10s
V ?=

.PHONY: help build demo test race mutants fuzz soak soak-hour readme verify-demo fmt pictures lint bench benchmarks bench-once e2e screenshots ci clean

help: ## what there is
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the program, bin/goodput
	go build -o bin/goodput ./cmd/goodput

demo: ## a 3x overload, without protection and with it
	go run ./cmd/goodput demo

test: ## every test; needs Go alone
	go test $(V) $(WORKSPACE)

# Pure packages have no goroutine (internal/rules sees to it), nor have those that
# read files and write reports; virtual time is ten times slower under the race
# detector, so the program's own tests play one scenario there.
ALONE = /(admission|limit|internal/(attempts|hist|rivals|sim|plan|theory|rules|mutants)|cmd/goodput|cmd/goodput/internal/(accesslog|build|builtin|config|flags|keys|policy|replay|report|scenario|strictyaml|suite|topology))$$

RACED = $$(go list $(WORKSPACE) | grep -vE '$(ALONE)' | grep $(1) /cmd/ | grep -vE '/(internal/proxy|conformance)$$')
PARTS = $(filter-out $(1),$(or $(PART),all))
race: ## the tests of what is concurrent, under the race detector; PART=0/4 the libraries, 1/4 the proxy, 2/4 the program's packages, 3/4 itself
ifneq ($(call PARTS,1/4 2/4 3/4),)
	go test -race $(V) $(call RACED,-v)
endif
ifneq ($(call PARTS,0/4 2/4 3/4),)
	go test -race $(V) ./cmd/goodput/internal/proxy
endif
ifneq ($(call PARTS,0/4 1/4 3/4),)
	go test -race $(V) $(call RACED,-e)
	go test -race $(V) ./conformance
endif
ifneq ($(call PARTS,0/4 1/4 2/4),)
	go test -race -short $(V) ./cmd/goodput
	go test -race -run 'SameAgain' $(V) ./cmd/goodput/internal/suite
endif

mutants: ## break the code on purpose: a named test must fail each time; PART=0/6 a sixth of them
	GOODPUT_MUTANTS=$(or $(PART),all) go test -count=1 $(V) ./internal/mutants

# At the end of its time the fuzzer sometimes fails with "context deadline exceeded"
# and no input; that is tried again.
fuzz: ## each fuzz target for FUZZTIME=10s; PART=0/2 every other one
	@go test -list '^Fuzz' $(WORKSPACE) \
	| awk '/^Fuzz/ { names[++n] = $$1 } /^(ok|FAIL|\?)/ { for (i = 1; i <= n; i++) print $$2, names[i]; n = 0 }' \
	| awk -v part="$(or $(PART),0/1)" 'BEGIN { split(part, p, "/") } NR % p[2] == p[1]' \
	| while read -r pkg target; do \
		echo "$$pkg $$target"; \
		for try in 1 2 3; do \
			code=0; \
			out=$$(go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$pkg" </dev/null 2>&1) || code=$$?; \
			if [[ $$code != 0 && $$out == *"context deadline exceeded"* && $$out != *"Failing input"* ]]; then continue; fi; \
			break; \
		done; \
		echo "$$out"; \
		[[ $$code == 0 ]] || exit "$$code"; \
	done

bin/gofumpt: tools/go.mod
	GOWORK=off go -C tools build -o ../bin/ tool
	@touch bin/gofumpt bin/staticcheck bin/benchstat

fmt: bin/gofumpt ## gofumpt -w
	bin/gofumpt -w .

screenshots: build ## the pictures of the README, docs/images, with Chromium (a minute)
	cd e2e && GOWORK=off go run ./cmd/screenshots -program ../bin/goodput -to ../docs/images

soak: ## the long runs: a minute of stress under the race detector, of each fuzz target, of large bodies
	GOODPUT_STRESS=60s go test -race -count=1 -timeout 20m $(V) -run 'Stress' .
	GOODPUT_STRESS=58s go test -race -count=1 -timeout 10m $(V) -run 'Chaos|ReloadsUnder|DuringEarly' ./cmd/goodput/internal/proxy
	GOODPUT_STRESS=36s go test -count=1 -timeout 10m $(V) -run HealthyEndpoint ./cmd/goodput/internal/proxy
	GOODPUT_MILLION=1 go test -count=1 -timeout 20m $(V) -run 'NothingIsLeft|Storm|TransportLeavesNothing' ./goodputsql ./pool ./goodputhttp
	GOODPUT_MILLION=1 go test -count=1 $(V) -run LabelsAreBounded ./cmd/goodput
	GOODPUT_SOAK=1 go test -count=1 -timeout 20m $(V) -run 'C151|C161' ./cmd/goodput/internal/load
	$(MAKE) fuzz FUZZTIME=60s
	E2E_LONG=1 $(MAKE) e2e

soak-hour: ## goodput serve for LENGTH=1h at 1.2x, with reloads, resets and restarts each minute: docs/soak.md; a third of a core
	mkdir -p bin
	cd bench && GOWORK=off go build -o ../bin/soak ./cmd/soak && ../bin/soak -length $(or $(LENGTH),1h) -json ../bin/soak.json -page ../docs/soak.md

readme: ## every command of the README, as it stands there
	.ci/readme

verify-demo: ## verify against the demo's service: certified twice through goodput, and not directly; 6 minutes in which nothing else should run
	.ci/verify-demo

bin/pictures: $(wildcard tools/cmd/pictures/*.go) tools/go.mod
	GOWORK=off go -C tools build -o ../bin/ ./cmd/pictures

pictures: build bin/pictures ## draw what docs/oncall shows, from its scenes; PICTURES=-check compares
	bin/pictures $(PICTURES) bin/goodput docs/oncall

lint: bin/gofumpt ## gofumpt, vet, staticcheck; each go.mod is tidy
	@bad=0; \
	unformatted=$$(bin/gofumpt -l .); \
	[[ -z $$unformatted ]] || { bad=1; echo "not formatted, make fmt does:"; echo "$$unformatted"; }; \
	for m in $(MODULES); do \
		echo "lint $$m"; \
		cd $(CURDIR)/$$m; export GOWORK=off; \
		go mod tidy -diff || bad=1; \
		go vet ./... || bad=1; \
		$(CURDIR)/bin/staticcheck ./... || bad=1; \
	done; \
	exit $$bad

bench: ## beside the rivals: PASSES=6 interleaved passes, benchstat, ratios (4 minutes)
	bench/run.sh

benchmarks: ## every comparison with everybody, and docs/benchmarks.md from it: half an hour in which nothing else should run; ONLY=hot,core some of it
	cd bench && GOWORK=off go run ./cmd/benchmarks -publish $(if $(ONLY),-only $(ONLY))

bench-once: ## that every benchmark still runs
	go test -run '^$$' -bench . -benchtime 10x ./internal/sim ./internal/theory ./goodputprom ./cmd/goodput/internal/accesslog
	cd bench && GOWORK=off go test ./... && GOWORK=off go test -run '^$$' -bench . -benchtime 10x .

e2e: ## real services on loopback: says what it installs from Debian, and starts, before it does; PART=0/2 every other test
	GOWORK=off PART=$(PART) ./e2e/run.sh

ci: ## everything above but demo, verify-demo and bench; 15 minutes at the most on 2 cores
	@.ci/steps

clean: ## bin/
	rm -rf bin
