"""Commands, flags, imports and links in README, guides and ideas exist."""

import ast
import contextlib
import functools
import importlib
import io
import re
import shlex
from pathlib import Path

import pytest
from cyclopts import CycloptsError

from surface_consistency.cli import app
from surface_consistency.cli.main import main

pytest.importorskip("surface_consistency_build", reason="the docs are of both distributions")

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "docs/index.md", "docs/gallery.md")),
    *(page for part in ("guides", "ideas") for page in sorted((ROOT / "docs" / part).glob("*.md"))),
]
FENCE = re.compile(r"^```(\w+).*\n((?:.*\n)*?)```$", re.MULTILINE)
INLINE = re.compile(r"`(surface-consistency [^`]+)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
STUDIES = ("redirectqa", "slaq", "audit", "forms", "linking", "lexical", "unlearning")
PLUGINS = {"capitals", "capitals:CapitalsStudy", "lengths"}
"""Commands that the guide on extending defines."""


def page_ids(page):
    return str(page.relative_to(ROOT))


def blocks(page, language):
    text = page.read_text("utf-8")
    return [body for kind, body in FENCE.findall(text) if kind == language]


def command_lines(page):
    """Return the command lines of this package in blocks, without comments."""
    for body in (*blocks(page, "console"), *blocks(page, "text")):
        for line in body.replace("\\\n", " ").splitlines():
            if line.startswith("surface-consistency "):
                yield shlex.split(line, comments=True)[1:]


def commands(page):
    """Return these command lines, and the commands in sentences."""
    yield from command_lines(page)
    for found in INLINE.findall(page.read_text("utf-8")):
        yield shlex.split(found)[1:]


def read_only(app, words):
    """Parse a command line without calling the command."""
    app.parse_args(words, exit_on_error=False, print_error=False)
    return 0


@functools.cache
def help_text(*command):
    """Return the help of a command; that of `score` for each study."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main([*command, "--help"]) == 0
    return output.getvalue()


def texts_of(words):
    """Return the help of the command that these words call."""
    if words[0].startswith("--"):
        return help_text()
    if words[0] in ("run", "build", "count", "analyse", "lm-eval"):
        return help_text(*words[:2])
    if words[0] == "score":
        return "".join(help_text("score", "--study", name) for name in STUDIES)
    return help_text(words[0])


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_flags_exist_for_their_command(page):
    for words in commands(page):
        if PLUGINS.intersection(words):
            continue
        flags = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help"}
        missing = [flag for flag in flags if not re.search(rf"{flag}(?![\w-])", texts_of(words))]
        assert not missing, f"{' '.join(words)}: no {', '.join(missing)}"


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_command_lines_are_valid(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app, "run_app", read_only)
    for words in command_lines(page):
        if words[0] == "score" and page.stem in STUDIES and "--study" not in words:
            words += ["--study", page.stem]  # An existing run would determine the study.
        if words[0] != "lm-eval" and not PLUGINS.intersection(words) and "..." not in words:
            assert main(words) == 0, " ".join(words)
        if words[0] in ("report", "analyse") and "--fact" not in words:
            assert "--out" in words, " ".join(words)


@pytest.mark.parametrize("line", ["run slaq --limit two --out x", "compare a b --marg 1", "demo"])
def test_invalid_command_line_is_detected(line, monkeypatch):
    monkeypatch.setattr(app, "run_app", read_only)

    with pytest.raises(CycloptsError, match=r"two|marg|out"):
        main(line.split())


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_imported_names_exist(page):
    for body in blocks(page, "python"):
        for node in ast.walk(ast.parse(body)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("surface_consistency"):
                module = importlib.import_module(node.module)
                missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
                assert not missing, f"{node.module} has no {', '.join(missing)}"


@pytest.mark.parametrize("page", PAGES, ids=page_ids)
def test_linked_files_exist(page):
    missing = [
        link for link in LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()
    ]

    assert not missing
