# Every target does all the set-up it needs, and only what is out of date. `make` alone lists them.
#
#   PYTHON=python3.12   the interpreter to make the virtual environment with (default: the newest that is complete)
#   JOBS=2              processors to use (default: all)
#   CONFIG=aurora.yaml ARGS='--seed 2'   what `make train` trains, and how
#   TARGETS="..."     what `make wheel` builds for, by Rust's names (default: Linux on x86-64 and aarch64)
#   BENCH="cubic link"  only the benchmarks whose names contain one of these words

PYTHON ?=
JOBS ?=
BENCH ?=
TARGETS ?=
CONFIG ?= aurora.yaml
ARGS ?=
DEMO_TRACE ?= 77.72mbps
DEMO_OUT ?= results/demo

SETUP := PYTHON='$(PYTHON)' $(if $(JOBS),CARGO_BUILD_JOBS=$(JOBS)) tools/setup.sh
ENTER := . .venv/ccgym.env &&

.DEFAULT_GOAL := help
.PHONY: help setup demo train test test-all notebooks bench lint site format wheel docker-check clean distclean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | \
	    awk -F '\t' '{ printf "  make %-12s %s\n", $$1, $$2 }'

setup: ## make .venv with everything for development, build the native module
	@$(SETUP) --profile dev

demo: ## evaluate the default schemes on the calibrated path 77.72mbps: table, figures and files in results/demo
	@$(SETUP) --profile demo
	@$(ENTER) python evaluate.py --trace $(DEMO_TRACE) --out $(DEMO_OUT) $(if $(JOBS),--jobs $(JOBS))

train: ## train an agent, watch it in TensorBoard: CONFIG=aurora.yaml ARGS='--seed 2'
	@$(SETUP) --profile train
	@$(ENTER) python train.py --config $(CONFIG) $(ARGS)

test: ## cargo test and pytest: what every change must pass
	@$(SETUP) --profile test
	@$(ENTER) JOBS='$(JOBS)' tools/check.sh test

test-all: ## all tests, those too that take long: wheel, Ray, QUIC, browser, figures, trainings
	@$(SETUP) --profile dev
	@$(ENTER) JOBS='$(JOBS)' tools/check.sh test-all

notebooks: ## run the notebooks of examples/notebooks, as a test
	@$(SETUP) --profile test
	@$(ENTER) pytest --run-long --durations 6 tests/integration/test_notebooks.py

bench: ## benchmarks, one JSON line {name, value, unit} each
	@$(SETUP) --profile dev >&2
	@$(ENTER) python tools/bench.py $(BENCH)

lint: ## ruff, mypy, import-linter, site with links, generated code, spelling, words, lines, cargo fmt, clippy
	@$(SETUP) --profile test
	@$(ENTER) JOBS='$(JOBS)' tools/check.sh lint

site: ## build the documentation into site/, with tables, figures and search; open site/index.html
	@$(SETUP) --profile test
	@$(ENTER) python tools/figures.py && mkdocs build --strict

format: ## put the sources into their standard form, and renew generated code
	@$(SETUP) --profile dev
	@$(ENTER) python tools/models.py && python tools/docs.py && cargo run --release --locked -q -p ccgym-protocol
	@$(ENTER) ruff check --fix-only --quiet . ; ruff format --quiet . && cargo fmt --all

wheel: ## build the wheels for Linux (x86-64, aarch64) and the source distribution into dist
	@$(SETUP) --profile wheel
	@$(ENTER) python tools/wheel.py $(TARGETS)

docker-check: ## run the steps of the Dockerfile in bare Debian systems, without Docker (needs root)
	@tools/docker-check.sh

clean: ## remove what was built and the caches; keep .venv and results
	@rm -rf target dist site .cache/figures .cache/setup.log .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@rm -f ccgym/_core*.so
	@find ccgym tests tools benches -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove .venv and a fetched toolchain too
	@rm -rf .venv .cache
