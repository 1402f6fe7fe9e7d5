"""The package as a whole: its names, its weight, its promises on paper."""

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
import surface_consistency_build

import surface_consistency

ROOT = Path(surface_consistency.__file__).parent
MODULES = sorted(
    info.name
    for package in (surface_consistency, surface_consistency_build)
    for info in pkgutil.walk_packages(package.__path__, prefix=f"{package.__name__}.")
)
HEAVY = ("torch", "transformers", "datasets", "scipy.stats", "pandas", "matplotlib")


def loaded_by(statement: str) -> set[str]:
    """Heavy modules that a statement loads in a fresh interpreter."""
    code = f"import sys\n{statement}\nprint(*(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def public_names(module) -> list[str]:
    """What a module exports; a package whose names stand in its modules exports none."""
    return getattr(module, "__all__", []) if hasattr(module, "__path__") else module.__all__


@pytest.mark.parametrize("name", ["surface_consistency", *MODULES])
def test_all_is_sorted_and_holds(name):
    """`__all__` names what is there, in the order of the linter."""
    module = importlib.import_module(name)
    names = public_names(module)

    assert len(set(names)) == len(names)
    for public in names:
        assert getattr(module, public) is not None


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_exported(name):
    """What a module defines without an underscore stands in its `__all__`."""
    module = importlib.import_module(name)
    defined = {
        public
        for public, value in vars(module).items()
        if not public.startswith("_")
        and getattr(value, "__module__", None) == name
        and callable(value)
    }

    assert defined <= set(public_names(module))


def test_importing_the_package_loads_nothing_heavy():
    """A user who wants a metric does not wait for torch."""
    assert loaded_by("import surface_consistency") == set()


def test_light_rooms_load_no_model_library():
    """Metrics, records, matching and prompts work without model libraries."""
    rooms = {"metrics", "schemas", "matching", "errors", "taxonomy", "text", "plugins"}
    light = [name for name in MODULES if name.split(".")[1] in rooms]

    assert len(light) > 50
    assert loaded_by(f"import {', '.join(light)}") <= {"pandas", "scipy.stats"}


def test_records_and_a_metric_on_numbers_load_no_pandas():
    """What needs no frame does not wait for one."""
    light = [name for name in MODULES if name.split(".")[1] in {"schemas", "text"}]

    assert loaded_by(f"import {', '.join(light)}") == set()
    assert loaded_by("from surface_consistency.metrics import mcnemar") == set()


def test_unknown_public_name_is_rejected():
    with pytest.raises(AttributeError, match="No surface_consistency attribute nothing"):
        surface_consistency.nothing  # noqa: B018


def test_version_agrees_with_the_changelog_and_the_citation():
    """A version in development has an Unreleased section."""
    top = Path(__file__).resolve().parents[1]
    version = surface_consistency.__version__.partition(".dev")[0]

    assert "## [Unreleased]" in (top / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(
        rf"^version: {re.escape(version)}$", (top / "CITATION.cff").read_text("utf-8"), re.M
    )
