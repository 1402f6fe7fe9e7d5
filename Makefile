# `make demo` and `make test` install their requirements into .venv and work on a fresh machine with Python >= 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= demo

.PHONY: help demo test slow check lowest bench faults docs paper pictures chromium clean

help:
	@echo "make demo       train a small model, run a complete study on it, write $(OUT)/report.html: a minute"
	@echo "make test       run the tests: ten minutes; TESTS=\"tests/metrics -x\" runs some of them"
	@echo "make check      format, lint, types, import directions, docs, the built wheel"
	@echo "make docs       the documentation, in site/; make paper: docs/paper/paper.pdf"
	@echo "make pictures   make the five pictures of the documentation that need only toy models"
	@echo "make bench, make faults, make lowest: see CONTRIBUTING.md; times are for two free cores."
	@echo "On first use, a virtual environment is created in $(VENV) (about 2 GB of downloads)."

$(VENV)/.installed: pyproject.toml dataset_builders/pyproject.toml constraints.txt
	@echo "== creating the virtual environment $(VENV): about 2 GB of downloads, mostly torch"
	$(PYTHON) -m venv $(VENV)
	@echo "== 1 of 2: torch"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	@echo "== 2 of 2: this package and the requirements of its tests"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' --editable dataset_builders
	touch $@

demo: $(VENV)/.installed
	@echo "== the demo: about a minute on two free cores; writes $(OUT)/report.html"
	$(BIN)/surface-consistency demo --out $(OUT)

# `make test TESTS="tests/metrics -x"` runs some of them.
test: $(VENV)/.installed chromium
	@echo "== the tests: about ten minutes on two free cores, less for some of them (TESTS=tests/metrics)"
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/test $(TESTS)

# Tests that train several models, which `make test` skips.
slow: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/test -m scheduled $(TESTS)

check: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/check

# Not included in .ci/run: creating the environment takes minutes, and so do the tests.
# `make lowest TESTS="tests/metrics tests/runs"` runs some of them.
lowest: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" PYTHON="$(PYTHON)" scripts/lowest $(TESTS)

bench: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/bench

faults: $(VENV)/.installed chromium
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/faults

docs: $(VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The article for the Journal of Open Source Software; needs Debian's pandoc, texlive-latex-recommended and lmodern.
paper:
	cd docs/paper && pandoc paper.md --citeproc -V geometry:margin=2.5cm -V colorlinks --output paper.pdf

pictures: $(VENV)/.installed chromium
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python scripts/pictures redirectqa compare verdicts slaq audit

# The page is tested in Chromium if it is installed; root on Debian installs it.
chromium:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	&& apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; } \
	|| echo "no Chromium with its driver: browser tests of the page are skipped"

clean:
	rm -rf $(VENV) demo dist site build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
