# `make run` and `make test` are all a newcomer needs; both set up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.docs

.PHONY: setup run test docs fuzz check lint types contract suite-check sweep sweep-c clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed (set PYTHON=...), found: $$($(PYTHON) --version)"; exit 2; }
	@command -v cc >/dev/null || { echo "A C compiler is needed: install gcc or clang (cc)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# The main job on the embedded default: no key, no GPU. A fresh folder a run, so that none is lost.
run: setup
	$(BIN)/ekb run --agent tuner --target llvm --subset quick --evals 8 --out runs/quick-$$(date +%Y%m%d-%H%M%S)

test: setup
	$(BIN)/python -m pytest

# The pages of docs/ as a site; a link that leads nowhere ends it. `python3 -m http.server -d site` shows it.
docs: $(DOCS_STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "site/index.html"

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

# Every rule on all 650 workloads; a sample of it is part of the tests.
suite-check: setup
	$(BIN)/ekb suite check --out runs/suite-check.jsonl

# All 650 canonical programs compiled, judged and timed beside the baselines on this host.
sweep: setup
	$(BIN)/ekb run --agent canonical --target llvm --subset all --evals 1 --out runs/sweep-$$(date +%Y%m%d-%H%M%S)

# The same by way of the system's C compiler; benchmarks/c_sweep.py is the short form.
sweep-c: setup
	$(BIN)/ekb run --agent canonical --target c --subset all --evals 1 --out runs/sweep-c-$$(date +%Y%m%d-%H%M%S)

# Differential fuzzing, the long form: hours. Goes on where it stopped; the short form is a test.
# Every part runs even if one before it found something; the status says whether any did.
fuzz: setup
	@status=0; for part in parser programs layers; do \
	  $(BIN)/python -m tests.fuzz $$part --out runs/fuzz || status=1; done; exit $$status

check: setup lint types contract

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/pyright

contract:
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) site .pytest_cache .ruff_cache .hypothesis .import_linter_cache
