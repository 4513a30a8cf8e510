# Bare `make` lists the targets.
.DEFAULT_GOAL := help
.PHONY: help build test race lint generate bench soak real fuzz ci

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/optimus and bin/optimus-bench, without cgo
	CGO_ENABLED=0 go build -o bin/optimus ./cmd/optimus
	CGO_ENABLED=0 go build -o bin/optimus-bench ./benchmarks/bench

test: ## run all tests
	go test ./...

race: ## run the tests of concurrent packages under the race detector
	.ci/run race

lint: ## gofmt, go vet, staticcheck
	.ci/run lint

generate: ## write the generated files anew
	go generate ./...

bench: ## run all benchmarks, six times each, for benchstat
	go test -run '^$$' -bench . -benchmem -count 6 ./...

# OPTIMUS_SOAK=1 makes the tests of live processes run in full: kill -9 of each
# member in each phase of a rescale, a hundred kills of a whole job while it saves.
soak: ## run the tests of concurrent packages again and again, in random order (SOAK=20 times), and those that kill live processes in full
	GOFLAGS="-count=$(or $(SOAK),20) -shuffle=on" .ci/run race
	OPTIMUS_SOAK=1 go test -count=3 -shuffle=on -timeout 30m -run 'BO04_Server|BO13|BO15|Process' ./train
	OPTIMUS_SOAK=1 go test -count=1 -timeout 30m -run TestPolluxAgainstNSGA2 ./scheduler/policy
	OPTIMUS_SOAK=1 go test -count=1 -timeout 90m -run 'TestPollux$$' ./scheduler/sim/pollux

real: ## train on small real data sets, each for some minutes (DATA=folder of the sets)
	go run ./benchmarks/real $(if $(DATA),--data $(DATA))

fuzz: ## run every fuzz target for a few seconds
	.ci/run fuzz

ci: ## everything that a change must pass
	.ci/run
