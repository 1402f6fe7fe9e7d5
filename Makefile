# `make demo` and `make test` set up what they need in .venv and work on a fresh machine with Python >= 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= demo

.PHONY: demo test check bench docs clean

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/surface-consistency demo --out $(OUT)

test: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/test

check: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/check

bench: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/bench

docs: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) demo dist site build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
