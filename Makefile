# The two commands a newcomer needs are "make run" and "make test".

GO ?= go
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

.PHONY: run build test matrix bench fuzz soak docs clean

## run: install what is missing, build, start the server on 127.0.0.1:8080
run: build
	./bin/refserver serve

## build: install what is missing, build bin/refserver
build:
	@scripts/setup.sh run
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/refserver ./cmd/refserver

## test: install what is missing, then run everything, with the race detector
test:
	@scripts/setup.sh test
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "run gofmt on:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	for s in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64; do CGO_ENABLED=0 GOOS=$${s%/*} GOARCH=$${s#*/} $(GO) build ./... || exit 1; done
	$(GO) test -race -timeout 60m ./...

## bench: measure beside the tools people use today, into docs/performance.md; about ten minutes
bench:
	@scripts/setup.sh bench
	$(GO) test -run '^$$' -bench . -benchtime 0.5s -benchmem ./benchmarks/ ./benchmarks/queue/
	$(GO) run ./benchmarks/compare -full -o docs/performance.md

## fuzz: run every fuzz target for FUZZTIME (default 30s)
FUZZTIME ?= 30s
fuzz:
	@scripts/fuzz.sh $(FUZZTIME)

## soak: send SOAK_ITEMS good, broken and hostile files (default 20000) to a server, which must be as before then;
## then do with every hostile and demanding file all that is offered for it, and watch the memory of the server;
## then kill the server SOAK_KILLS times (default 1000) under load, and a third as often while engines work
SOAK_ITEMS ?= 20000
SOAK_KILLS ?= 1000
soak:
	@scripts/setup.sh test
	$(GO) test -count=1 -v -timeout 12h -run '^TestSoak$$' ./internal/e2e -items $(SOAK_ITEMS)
	$(GO) test -count=1 -v -timeout 12h -run '^(TestHostileFiles|TestBombs|TestServerMemory)' ./internal/e2e -every-deed
	$(GO) test -count=1 -v -timeout 12h -run '^(TestNothingIsLost|TestEnginesAtWork|TestTakeover)$$' ./internal/kills \
		-kills $(SOAK_KILLS) -engine-kills $$(($(SOAK_KILLS) / 3)) -takeovers 10

## matrix: only the part of "make test" that runs everything that is listed and judges the results
matrix:
	@scripts/setup.sh test
	$(GO) test -count=1 -v -timeout 30m -run '^TestMatrix$$' ./internal/matrix

## docs: write docs/formats.md anew from what the code says
docs:
	@scripts/setup.sh run
	$(GO) run ./internal/matrix/gendocs

clean:
	rm -rf bin
