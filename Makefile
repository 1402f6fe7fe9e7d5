# `make demo` and `make test` set up what they need in .venv and work on a fresh machine with Python >= 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= demo

.PHONY: demo test slow check lowest bench faults docs chromium clean

$(VENV)/.installed: pyproject.toml dataset_builders/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' --editable dataset_builders
	touch $@

demo: $(VENV)/.installed
	$(BIN)/surface-consistency demo --out $(OUT)

# `make test TESTS="tests/metrics -x"` runs a part of them.
test: $(VENV)/.installed chromium
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

# The page is tested in a real browser where there is one; root on Debian gets it.
chromium:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	|| { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	&& apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; } \
	|| echo "no Chromium with its driver: the tests of the page in a browser are skipped"

clean:
	rm -rf $(VENV) demo dist site build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
