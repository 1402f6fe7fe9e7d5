"""The library works without the dataset builders and rejects another version of them."""

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import surface_consistency
from tests.without_makers import ABSENT

ROOT = Path(__file__).resolve().parents[1]
WITHOUT = "from tests.without_makers import block; block()\n"
MAIN = "from surface_consistency.cli.main import main; raise SystemExit(main({words!r}))"


def python(code):
    """Run a statement in a new interpreter in the root of the checkout."""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'dataset_builders'}"},
        check=False,
    )


def test_every_module_of_the_library_imports_without_the_builders():
    code = """
import importlib, pkgutil, surface_consistency
for info in pkgutil.walk_packages(surface_consistency.__path__, "surface_consistency."):
    importlib.import_module(info.name)
"""
    done = python(WITHOUT + code)

    assert done.returncode == 0, done.stderr


def required(name, extra=""):
    """Return all installed requirements of a requirement."""
    installed, waiting = set(), [(name, extra)]
    while waiting:
        name, extra = waiting.pop()
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for one in map(Requirement, lines):
            part = (one.name.lower(), ",".join(sorted(one.extras)))
            is_required = one.marker is None or any(
                one.marker.evaluate({"extra": name}) for name in extra.split(",")
            )
            if is_required and part not in installed:
                installed.add(part)
                waiting.append(part)
    return {name.replace("-", "_") for name, _ in installed}


def test_dependencies_of_the_library_do_not_include_those_of_the_builders():
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    needed = [Requirement(line) for line in lines]

    installed = {one.name: {one.name} | required(one.name, ",".join(one.extras)) for one in needed}

    assert "numpy" in installed["pandas"]
    assert {name: found & ABSENT for name, found in installed.items() if found & ABSENT} == {}


def test_builder_commands_are_listed_if_installed():
    words = MAIN.format(words=["--help"])
    listed = [
        set(re.findall(r"(?m)^  (build|count|run) ", python(code + words).stdout))
        for code in ("", WITHOUT)
    ]

    assert listed == [{"build", "count", "run"}, {"run"}]


@pytest.mark.parametrize("words", [["build", "redirectqa"], ["count", "--help"]])
def test_error_of_builder_commands_contains_the_missing_distribution(words):
    done = python(WITHOUT + MAIN.format(words=words))

    assert done.returncode == 2
    assert "surface-consistency-build, which is not installed" in done.stderr
    assert "pip install 'surface-consistency[build]'" in done.stderr


@pytest.mark.skipif(
    find_spec("surface_consistency_build") is None, reason="one of the two is not installed"
)
def test_different_versions_raise_with_both_versions():
    code = "import surface_consistency; surface_consistency.__version__ = '9.9'\n"

    done = python(code + MAIN.format(words=["build", "redirectqa", "--help"]))

    assert done.returncode == 2
    assert "9.9 is installed" in done.stderr
    assert f"surface-consistency-build {surface_consistency.__version__}" in done.stderr
