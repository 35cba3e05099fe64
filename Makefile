# New here? "make run" and "make test" are all you need.

# scripts/setup.sh installs Go here if the system has no usable Go.
export PATH := $(CURDIR)/.tools/go/bin:$(PATH)
GO ?= go
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.release=$(VERSION)

.PHONY: run build build-all check test test-all lint vuln hooks matrix bench bench-check growth fuzz soak docs corpus release release-snapshot clean

## run: install missing packages, build, start the server on 127.0.0.1:8080
run: build
	./bin/refserver serve

## build: install missing packages, build bin/refserver
build:
	@scripts/setup.sh run
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/refserver ./cmd/refserver

## test: every behaviour at a short scale; with the race detector where goroutines share data
test: check
	$(SCRATCH) $(GO) test -short -vet=off -timeout 60m $(BUSY) $(LINK) $(RACE) $(SHARING)
	$(GO) test -short -vet=off -timeout 60m $(BUSY) $(LINK) $(LONGEST) $(call others,$(SHARING))

## test-all: everything at full scale, the whole server at the short one; with the race detector where goroutines
## share data, and for the tests of the server and the engine packages that work on several files at the same time
test-all: check
	$(GO) test -vet=off -timeout 60m $(LONG) $(call others,$(SHARING) $(SERVER))
	$(GO) test -vet=off -timeout 60m -short $(SERVER)
	$(GO) test -vet=off -timeout 60m $(RACE) $(SHARING)
	$(GO) test -vet=off -timeout 60m $(RACE) -short -run $(MEETING) $(SERVER)
	$(GO) test -vet=off -timeout 60m $(RACE) -short -run $(TOGETHER) $(ENGINES)

# Packages whose goroutines share data.
SHARING := ./fileops ./fileops/engine/... ./fileops/isolate ./httpapi/... ./internal/backoff ./internal/seal ./internal/steady ./internal/worktime ./status/... ./upload/...
# The whole server in its own process, as people run it, without the race detector. Those of its tests in which
# clients, workers and cleaners meet also run with it.
SERVER := ./internal/e2e
MEETING := 'Cancel|Cluster|Conformance|Events|Fairness|Frozen|Gotenberg|Idempotency|KilledAt|Links|OneCallIs|OneCallOf|StopAnd|Upload|URLs|Webhooks'
# others lists the packages that are not in a list.
others = $$($(GO) list ./... | grep -vxF "$$($(GO) list $1)")
# Packages around engines, and their tests in which goroutines share data. The race detector makes the
# decoders of these packages four to seven times slower.
ENGINES := ./fileops/archiveops ./fileops/imageops ./fileops/mediaops ./fileops/officeops ./fileops/pdfops ./fileops/pdfread/... ./fileops/standard ./fileops/webops
TOGETHER := 'Concurren|Cancel|Close|Crash|Hang|Life|Pool|Progress|Ready|Recycle|Stop|Together'
# The race detector makes the SQLite of modernc.org, which is C translated to Go, and the hashing of
# passwords many times slower. Their own memory accesses are not checked; those of this module are.
# chromedp 0.14 writes the attributes of elements while its SendKeys reads them.
RACE := -race -gcflags=modernc.org/...=-race=false -gcflags=golang.org/x/crypto/argon2=-race=false -gcflags=github.com/chromedp/chromedp=-race=false
# The packages whose tests take longest start first: otherwise one of them would run alone at the end.
LONG := ./internal/matrix ./fileops/mediaops ./fileops/officeops ./internal/kills ./fileops/standard
LONGEST := $(SERVER) $(LONG)
# Tests wait for programs, servers and leases, so that one package for each core leaves a core idle at times.
BUSY := -p $$(( $$(nproc 2>/dev/null || echo 2) + 1 ))
# These tests spent a third of their processor time in the kernel, much of it to create and remove files.
SCRATCH := GOTMPDIR=$${TMPDIR:-/tmp} TMPDIR=$$(scripts/scratch.sh)
# Test binaries without debug information link faster.
LINK := -ldflags=-w
# Without this, each test binary with the race detector sleeps for a second at its end.
export GORACE := atexit_sleep_ms=0

check:
	@scripts/setup.sh test
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "run gofmt on:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	cd internal/tools/lint && GOFLAGS= GOWORK=off $(GO) test -vet=off .
	$(GO) vet -vettool=$$(cd internal/tools/lint && GOFLAGS= GOWORK=off $(GO) tool -n lint) ./...

## build-all: compile everything without cgo for each supported platform; minutes with a cold cache, because of SQLite
build-all:
	@for target in linux/amd64 linux/arm64 darwin/arm64 windows/amd64; do \
		echo "CGO_ENABLED=0 $$target: $(GO) build ./..."; \
		CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build ./... || exit 1; \
	done

## lint: run golangci-lint with .golangci.yml; it has more linters than "make test", and takes minutes to build
lint:
	@scripts/setup.sh test
	$$(cd internal/tools/golangci && GOFLAGS= GOWORK=off $(GO) tool -n golangci-lint) run ./...

## vuln: report known vulnerabilities in linked modules, from the Go vulnerability database
vuln:
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...

## hooks: install the pre-commit hook
hooks:
	git config core.hooksPath scripts/hooks

## bench: compare with the tools in common use, into docs/performance.md; about ten minutes; GOTENBERG=PATH is its program
bench:
	@scripts/setup.sh bench
	$(GO) test -run '^$$' -bench . -benchtime 0.5s -benchmem ./benchmarks/ ./benchmarks/queue/
	$(GO) run ./benchmarks/compare -full $(if $(GOTENBERG),-gotenberg "$(GOTENBERG)") -o docs/performance.md

## bench-check: measure the tasks of benchmarks/baseline.json, and fail if one is 10 % worse beside other tools than there
bench-check:
	@scripts/setup.sh bench
	$(GO) run ./benchmarks/compare -budget 5s -rounds 5 -check benchmarks/baseline.json

## growth: measure how time and memory grow with the size of the work, into docs/growth.md; about half an hour
growth:
	@scripts/setup.sh bench
	$(GO) run ./benchmarks/growth -o docs/growth.md -images docs/images

## fuzz: run every fuzz target for FUZZTIME (default 30s)
FUZZTIME ?= 30s
fuzz:
	@scripts/fuzz.sh $(FUZZTIME)

## soak: run the tests of the whole server at full scale;
## then send SOAK_ITEMS (default 20000) good, broken and hostile files to a server and check that nothing remains;
## then run every offered operation on every hostile and demanding file, and watch the server's memory;
## then kill the server SOAK_KILLS times (default 1000) under load, and a third as often while engines run
SOAK_ITEMS ?= 20000
SOAK_KILLS ?= 1000
soak:
	@scripts/setup.sh test
	$(GO) test -count=1 -timeout 60m $(SERVER)
	$(GO) test -count=1 -v -timeout 12h -run '^TestOverseen$$/^Soak$$' ./internal/e2e -items $(SOAK_ITEMS)
	$(GO) test -count=1 -v -timeout 12h -run '^(TestOverseen|TestServerMemoryInStorms)$$/^(LargeDocuments|HostileFiles|Bombs)$$' ./internal/e2e -every-deed
	$(GO) test -count=1 -v -timeout 12h -run '^(TestNothingIsLost|TestEnginesAtWork|TestTakeover)$$' ./internal/kills \
		-kills $(SOAK_KILLS) -engine-kills $$(($(SOAK_KILLS) / 3)) -takeovers 10

## matrix: only the test that runs every listed conversion, with every value of every parameter, and judges the results
matrix:
	@scripts/setup.sh test
	$(GO) test -count=1 -v -timeout 60m -run '^TestMatrix$$' ./internal/matrix -every

## corpus: run every file below DIR through all actions, or through ACTION with TO, and have other programs judge the
## results; SAMPLE=N runs N files, EACH=N only N actions of each, FOR=4m stops after that time; JSON=FILE stores the outcomes, BASELINE=FILE compares with stored ones; TABLE=1 prints totals in Markdown. See docs/corpus.md
corpus:
	@scripts/setup.sh test
	@test -d "$(DIR)" || { echo "usage: make corpus DIR=FOLDER [ACTION=convert] [TO=docx] [SAMPLE=40] [EACH=2] [FOR=4m] [JSON=FILE] [BASELINE=FILE] [TABLE=1]"; exit 1; }
	$(GO) run ./internal/corpus -action "$(ACTION)" -to "$(TO)" -sample $(or $(SAMPLE),0) -each $(or $(EACH),0) -for $(or $(FOR),0) -json "$(JSON)" -baseline "$(BASELINE)" $(if $(TABLE),-table) "$(DIR)"

## docs: generate docs/formats.md and docs/configuration.md from the code
docs:
	@scripts/setup.sh run
	$(GO) run ./internal/matrix/gendocs
	$(GO) test ./cmd/refserver -run TestConfigurationPage -update

## release-snapshot: build the files of a release into dist: programs, Debian packages, SBOM, checksums
RELEASE := $$(cd internal/tools/release && GOFLAGS= GOWORK=off $(GO) tool -n goreleaser)
release-snapshot:
	@scripts/setup.sh release
	$(RELEASE) release --snapshot --clean

## release: build the tagged version and upload it as a draft
release:
	@scripts/setup.sh release
	$(RELEASE) release --clean

clean:
	rm -rf bin
