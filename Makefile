# The front door: every command of the project, each doing its own set-up. It builds nothing by itself that cargo or the sandbox can build.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CACHE := $(HOME)/.cache/cluster-operator
TARGET := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
SANDBOX := $(TARGET)/release/sandbox
CARGO_DENY_VERSION := 0.20.2
CARGO_DENY := $(CACHE)/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny

.PHONY: help
help: ## List the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /make \1\t/' | expand -t 20

.PHONY: build
# All targets, because tests change features of dependencies: one set of them serves this, the tests and the demo.
build: check-system ## Build target/release/cluster-operator with the built-in plugins inside
	cargo build --release --locked --workspace --all-targets

.PHONY: demo
demo: build ## Watch a cluster come up from one apply, and go again
	$(SANDBOX) tools
	$(SANDBOX) demo

.PHONY: test
test: build lint test-emulator ## Run every test, the ones on the bed included
	$(SANDBOX) tools
	cargo test --release --locked --workspace

.PHONY: test-emulator
test-emulator: build ## Hold the AWS emulator to AWS's documented behaviour
	python=$$($(SANDBOX) tools --python); PYTHONPATH=tests/emulator $$python/bin/python -m pytest -q tests/emulator/tests

.PHONY: lint
lint: $(CARGO_DENY) ## Formatting, clippy with warnings denied, licenses and sources of dependencies
	cargo fmt --all --check
	cargo clippy --release --locked --workspace --all-targets -- --deny warnings
	cargo fetch --quiet --locked # what other platforms need too: it is looked at without being built
	$(CARGO_DENY) --offline check bans licenses sources

.PHONY: bench
bench: build ## Print the project's figures: AWS calls, API writes and requests, plugin plans
	$(SANDBOX) tools
	cargo bench --locked -p plugin --bench plan
	cargo bench --locked -p end-to-end --bench figures

.PHONY: check-system
check-system:
	@missing=(); for it in cc cargo python3; do command -v $$it > /dev/null || missing+=($$it); done; \
	if (( $${#missing[@]} )); then \
	  echo "missing: $${missing[*]}. Install a C compiler and Python with: sudo apt-get install build-essential python3 python3-venv" >&2; \
	  echo "and Rust with rustup (https://rustup.rs)." >&2; exit 1; fi

# Not optimized: that would take minutes longer to compile than it ever saves.
$(CARGO_DENY):
	@echo "installing cargo-deny $(CARGO_DENY_VERSION) into the cache (once, some minutes)"
	CARGO_TARGET_DIR=$(CACHE)/cargo-deny-build CARGO_PROFILE_DEV_DEBUG=false cargo install --quiet --locked --debug \
	  --version $(CARGO_DENY_VERSION) --root $(CACHE)/cargo-deny-$(CARGO_DENY_VERSION) cargo-deny
	rm -rf $(CACHE)/cargo-deny-build
