# The front door: every command of the project, each doing its own set-up. It builds nothing by itself that cargo or the crate `tools` can build.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CACHE := $(HOME)/.cache/cluster-operator
TARGET := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
TOOLS := $(TARGET)/debug/tools
SANDBOX := $(TARGET)/debug/sandbox
CARGO_DENY_VERSION := 0.20.2
CARGO_DENY := $(CACHE)/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny

.PHONY: help
help: ## List the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1\t/' | expand -t 20

.PHONY: setup
setup: ## Install what this machine lacks, and say what
	@tests/tools/setup.sh install

.PHONY: demo
demo: tools ## Watch a cluster come up from one apply, and go again
	@$(TOOLS) build -p cluster-operator -p sandbox
	@$(SANDBOX) demo

.PHONY: test
test: tools ## Run every test, the ones on the bed included
	@$(TOOLS) build --workspace --all-targets
	@$(MAKE) --no-print-directory lint test-emulator
	@tests/tools/test.sh

.PHONY: test-all
test-all: test ## The same, random lives of clusters a million steps long, an operator killed at each write of an upgrade, and signatures by a cosign built from source; takes an hour more
	EDITED_LIVES=4000 cargo test --locked --workspace --test decisions living
	APPROVED_LIVES=3000 cargo test --locked --workspace --lib approval
	INTERRUPTIONS=all cargo test --locked --workspace --test interruptions
	cargo test --locked --workspace --test registries cosign_signs_now -- --ignored --nocapture

.PHONY: test-baseline
test-baseline: tools ## Have this operator take over what an earlier one installed: BASELINE=<commit>, and BASELINE_CLUSTERS=<number> of more than two
	@commit=$$(git rev-parse --verify --quiet "$(BASELINE)^{commit}") || { echo "say which: make test-baseline BASELINE=<commit>" >&2; exit 1; }; \
	source=$(CACHE)/baseline/$$commit; \
	if ! test -d $$source; then rm -rf $$source.new; mkdir -p $$source.new; \
	  git archive $$commit | tar --extract --touch --directory $$source.new; mv $$source.new $$source; fi; \
	CARGO_TARGET_DIR=$(CACHE)/baseline/target cargo build --locked --manifest-path $$source/Cargo.toml -p cluster-operator; \
	$(TOOLS) build --workspace --bins --test baseline; \
	BASELINE_SOURCE=$$source BASELINE_OPERATOR=$(CACHE)/baseline/target/debug/cluster-operator \
	  cargo test --locked --workspace --test baseline -- --ignored --nocapture

.PHONY: test-emulator
test-emulator: tools ## Hold the AWS emulator to AWS's documented behaviour
	python=$$($(TOOLS) python); PYTHONPATH=tests/emulator $$python -m pytest -q tests/emulator/tests

.PHONY: test-fresh
test-fresh: ## Follow the README on a bare Debian root that has only what the README asks for; takes an hour
	@tests/tools/test-fresh.sh

.PHONY: lint
lint: check $(CARGO_DENY) ## Formatting, clippy and rustdoc with warnings denied, licenses and sources of dependencies
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- --deny warnings
	@$(MAKE) --no-print-directory doc
	cargo fetch --quiet --locked # what other platforms need too: it is looked at without being built
	$(CARGO_DENY) --offline check bans licenses sources

.PHONY: doc
doc: check ## The documentation of the crates, warnings denied; begins at target/doc/contract/index.html
	RUSTDOCFLAGS="--deny warnings" cargo doc --locked --workspace --no-deps

.PHONY: bench
bench: tools ## Print the project's figures: AWS calls, API writes and requests, plugin plans
	@$(TOOLS) build --release --workspace --bins --bench plan --bench figures
	cargo bench --locked --workspace --bench plan --bench figures

.PHONY: build
build: ## Build target/release/cluster-operator, optimized, with the built-in plugins inside
	@tests/tools/setup.sh check build
	cargo build --release --locked -p cluster-operator

# Before anything is compiled: as root it installs what is missing, otherwise it says all that is missing and what installs it.
.PHONY: check
check:
	@tests/tools/setup.sh

.PHONY: tools
tools: check
	@cargo build --quiet --locked -p tools

# Not optimized: that would take minutes longer to compile than it ever saves.
$(CARGO_DENY):
	@echo "installing cargo-deny $(CARGO_DENY_VERSION) into the cache (once, some minutes)"
	CARGO_TARGET_DIR=$(CACHE)/cargo-deny-build CARGO_PROFILE_DEV_DEBUG=false cargo install --quiet --locked --debug \
	  --version $(CARGO_DENY_VERSION) --root $(CACHE)/cargo-deny-$(CARGO_DENY_VERSION) cargo-deny
	rm -rf $(CACHE)/cargo-deny-build
