"""Commands, flags, imports and links in README, guides and ideas name what is there."""

import ast
import contextlib
import functools
import importlib
import io
import re
import shlex
from pathlib import Path

import pytest

from surface_consistency.cli.main import main

pytest.importorskip("surface_consistency_build", reason="the docs are of both distributions")

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs" / "index.md",
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
    *sorted((ROOT / "docs" / "ideas").glob("*.md")),
]
FENCE = re.compile(r"^```(\w+).*\n((?:.*\n)*?)```$", re.MULTILINE)
INLINE = re.compile(r"`(surface-consistency [^`]+)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
PLUGINS = {"capitals", "lengths"}
"""Commands that the guide on extending makes."""


def page_ids(page):
    return str(page.relative_to(ROOT))


def blocks(page, language):
    text = page.read_text("utf-8")
    return [body for kind, body in FENCE.findall(text) if kind == language]


def commands(page):
    """Every command line of ours, without comments."""
    for body in blocks(page, "console"):
        for line in body.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == "surface-consistency":
                yield words[1:]
    for found in INLINE.findall(page.read_text("utf-8")):
        yield shlex.split(found)[1:]


@functools.cache
def help_text(*command):
    """What a command says of itself; `score` says it for each study."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        assert main([*command, "--help"]) == 0
    return told.getvalue()


def texts_of(words):
    """Help of the command that these words call."""
    if words[0].startswith("--"):
        return help_text()
    if words[0] in ("run", "build", "count", "analyse", "lm-eval"):
        return help_text(*words[:2])
    if words[0] == "score":
        studies = ("redirectqa", "slaq", "audit", "forms", "linking", "lexical")
        return "".join(help_text("score", "--study", name) for name in studies)
    return help_text(words[0])


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_flags_are_those_of_the_command(page):
    for words in commands(page):
        if PLUGINS.intersection(words):
            continue
        flags = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help"}
        missing = [flag for flag in flags if not re.search(rf"{flag}(?![\w-])", texts_of(words))]
        assert not missing, f"{' '.join(words)}: no {', '.join(missing)}"


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_imported_names_exist(page):
    for body in blocks(page, "python"):
        for node in ast.walk(ast.parse(body)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("surface_consistency"):
                module = importlib.import_module(node.module)
                missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
                assert not missing, f"{node.module} has no {', '.join(missing)}"


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_linked_files_are_there(page):
    missing = [
        link for link in LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()
    ]

    assert not missing
