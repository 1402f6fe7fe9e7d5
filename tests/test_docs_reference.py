"""The reference pages list the exports of the package and the settings of the records."""

import ast
import importlib
import inspect
import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("surface_consistency_build", reason="the docs are of both distributions")

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "reference"
PACKAGE = ROOT / "surface_consistency"
DIRECTIVE = re.compile(
    r"^::: ([\w.]+)\n(?:    options:\n      members:\n((?:        - \w+\n)+))?", re.M
)
SUFFIXES = (".md", ".ipynb")
NOT_SHOWN = {"surface_consistency.cli"}
"""Subpackages that are used from the command line."""


def exporting_packages():
    """List the subpackages that export names."""
    for path in sorted(PACKAGE.rglob("__init__.py")):
        name = ".".join(path.parent.relative_to(ROOT).parts)
        if "__all__" in path.read_text("utf-8") and name not in NOT_SHOWN:
            yield name


def directives():
    """Yield page, module or object, and the listed members of each directive, or None."""
    for page in sorted(PAGES.rglob("*.md")):
        for found in DIRECTIVE.finditer(page.read_text("utf-8") + "\n"):
            members = re.findall(r"- (\w+)", found.group(2) or "")
            yield page.name, found.group(1), members


@pytest.fixture(scope="module")
def shown():
    """The documented objects by name; several if a name is listed twice."""
    objects = {}
    for _, target, members in directives():
        try:
            module = importlib.import_module(target)
        except ModuleNotFoundError:
            home, _, name = target.rpartition(".")
            module, members = importlib.import_module(home), [name]
        for name in members or public_names(module):
            objects.setdefault(name, []).append(getattr(module, name))
    return objects


def public_names(module):
    """Return the public names that a module defines."""
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names = [node.target.id]
        else:
            continue
        yield from (name for name in names if not name.startswith("_"))


@pytest.mark.parametrize("package", list(exporting_packages()))
def test_each_export_is_in_the_reference(package, shown):
    module = importlib.import_module(package)

    missing = [
        name
        for name in module.__all__
        if not inspect.ismodule(getattr(module, name))
        and not any(getattr(module, name) is item for item in shown.get(name, ()))
    ]

    assert not missing


def test_each_object_is_documented_once():
    targets = [target for _, target, _ in directives()]

    assert sorted(targets) == sorted(set(targets))


def test_each_page_of_modules_begins_with_a_table_of_functions():
    for page in sorted(PAGES.rglob("*.md")):
        head, directive, _ = page.read_text("utf-8").partition("\n::: ")
        table = re.search(r"^\| function( or class)? \| question \| returns \|$", head, re.M)
        assert table or not directive, page.name


def test_settings_pages_equal_those_of_the_records():
    script = runpy.run_path(str(ROOT / "scripts" / "option_tables"))
    written = {page.stem: page.read_text("utf-8") for page in script["FOLDER"].glob("*.md")}

    assert written == script["pages"](), "run scripts/option_tables"
    for path, text in script["guides"]().items():
        assert path.read_text("utf-8") == text, "run scripts/option_tables"


def test_each_page_is_in_the_navigation_once():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"[\w./-]+\.(?:md|ipynb)$", navigation, re.MULTILINE)
    docs = ROOT / "docs"
    pages = [str(page.relative_to(docs)) for page in docs.rglob("*.*") if page.suffix in SUFFIXES]

    assert sorted(listed) == sorted(page for page in pages if not page.startswith("paper/"))
