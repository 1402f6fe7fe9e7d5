"""Public and private names of the packages."""

import ast
import importlib
import importlib.util
import pkgutil
from functools import cache
from pathlib import Path

import pytest

import surface_consistency

ROOT = Path(surface_consistency.__file__).parent
NAMES = ("surface_consistency", "surface_consistency_build")
PACKAGES = [importlib.import_module(name) for name in NAMES if importlib.util.find_spec(name)]
"""The library, and the dataset builders if they are installed."""
MODULES = sorted(
    info.name
    for package in PACKAGES
    for info in pkgutil.walk_packages(package.__path__, prefix=f"{package.__name__}.")
)
EXPORTING = [
    name
    for name in ("surface_consistency", *MODULES)
    if "__all__" in vars(importlib.import_module(name))
]


@pytest.mark.parametrize("name", EXPORTING)
def test_all_is_sorted_and_its_names_exist(name):
    module = importlib.import_module(name)

    assert len(set(module.__all__)) == len(module.__all__)
    for public in module.__all__:
        assert getattr(module, public) is not None


@cache
def imported_names(file):
    """Return the names that a module imports from others at the top."""
    return {
        alias.asname or alias.name
        for node in ast.parse(Path(file).read_text("utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_private_and_imported_names_are_not_imported_from_other_modules(package):
    root = Path(package.__file__).parent
    private = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(
                ("surface_consistency.", "surface_consistency_build.")
            ):
                continue
            home = importlib.import_module(node.module)
            if hasattr(home, "__path__"):
                continue
            imported = imported_names(home.__file__)
            private += [
                f"{path.relative_to(root)}: {alias.name} of {node.module}"
                for alias in node.names
                if alias.name.startswith("_") or alias.name in imported
            ]

    assert not private


def test_unknown_public_name_is_rejected():
    with pytest.raises(AttributeError, match="surface_consistency has no attribute nothing"):
        surface_consistency.nothing  # noqa: B018
