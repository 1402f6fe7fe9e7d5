# `make demo` and `make test` set up what they need in .venv and work on a fresh machine with Python >= 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= demo

.PHONY: help demo test slow check lowest bench faults docs paper pictures chromium clean

help:
	@echo "make demo       train a small model, run the whole study on it, write $(OUT)/report.html: a minute"
	@echo "make test       run the tests: ten minutes; TESTS=\"tests/metrics -x\" runs a part"
	@echo "make check      format, lint, types, import directions, docs, the built wheel"
	@echo "make docs       the documentation, in site/; make paper: docs/paper/paper.pdf"
	@echo "make pictures   five pictures of the documentation that toy models are enough for"
	@echo "make bench, make faults, make lowest: see CONTRIBUTING.md; times are those of two free cores."
	@echo "The first of them makes a virtual environment in $(VENV): about 2 GB to download, once."

$(VENV)/.installed: pyproject.toml dataset_builders/pyproject.toml constraints.txt
	@echo "== making the virtual environment $(VENV): about 2 GB to download, mostly torch; once"
	$(PYTHON) -m venv $(VENV)
	@echo "== 1 of 2: torch"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	@echo "== 2 of 2: this package, and what it and its tests need"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' --editable dataset_builders
	touch $@

demo: $(VENV)/.installed
	@echo "== the demo: about a minute on two free cores; the page will be $(OUT)/report.html"
	$(BIN)/surface-consistency demo --out $(OUT)

# `make test TESTS="tests/metrics -x"` runs a part of them.
test: $(VENV)/.installed chromium
	@echo "== the tests: about ten minutes on two free cores, less for a part (TESTS=tests/metrics)"
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/test $(TESTS)

# Tests that train several models, which `make test` leaves out.
slow: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/test -m scheduled $(TESTS)

check: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" scripts/check

# Not a part of .ci/run: making the environment takes minutes, and so do the tests.
# `make lowest TESTS="tests/metrics tests/runs"` runs a part of them.
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

# The page is tested in a real browser where there is one; root on Debian gets it.
chromium:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	&& apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; } \
	|| echo "no Chromium with its driver: the tests of the page in a browser are skipped"

clean:
	rm -rf $(VENV) demo dist site build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
