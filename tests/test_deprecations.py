"""Renamed objects warn as documented on the page of versions, and are removed on time."""

import ast
import re
from pathlib import Path

import pytest

import surface_consistency

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (ROOT / "surface_consistency", ROOT / "dataset_builders" / "surface_consistency_build")
MESSAGE = re.compile(r"use (?P<new>[\w.]+); (?P<old>[\w.]+) goes in (?P<version>\d+\.\d+)")
OLD = """
from typing_extensions import deprecated

def consistency(): ...

@deprecated("use consistency; agreement goes in 9.0")
def agreement():
    return consistency()
"""


def faults(source, version):
    """List the faults of the deprecations of a source at a version of the package."""
    for node in ast.walk(ast.parse(source)):
        for mark in getattr(node, "decorator_list", ()):
            name = ast.unparse(mark.func if isinstance(mark, ast.Call) else mark)
            if name.rpartition(".")[2] != "deprecated":
                continue
            text = getattr(mark.args[0], "value", "") if getattr(mark, "args", ()) else ""
            matched = MESSAGE.fullmatch(str(text))
            if matched is None:
                yield f"{node.name}: say `{MESSAGE.pattern}`, not {text!r}"
            elif matched["old"].rpartition(".")[2] != node.name:
                yield f"{node.name}: the message is about {matched['old']}"
            elif version >= tuple(map(int, matched["version"].split("."))):
                yield f"{node.name}: it was to go in {matched['version']}"


def test_deprecations_contain_their_replacement_and_are_not_overdue():
    version = tuple(map(int, surface_consistency.__version__.split(".")[:2]))
    found = [
        f"{file.relative_to(ROOT)}: {fault}"
        for package in PACKAGES
        for file in package.rglob("*.py")
        if "deprecated" in (source := file.read_text("utf-8"))
        for fault in faults(source, version)
    ]

    assert found == []


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("use consistency; agreement goes in 9.0", None),
        ("use consistency; agreement goes in 1.2", "agreement: it was to go in 1.2"),
        ("use consistency; accord goes in 9.0", "agreement: the message is about accord"),
        ("old", "agreement: say"),
    ],
)
def test_faulty_deprecations_are_detected(message, fault):
    source = OLD.replace("use consistency; agreement goes in 9.0", message)

    found = list(faults(source, (1, 2)))

    assert len(found) == (fault is not None)
    assert not found or found[0].startswith(fault)


def test_page_of_versions_shows_the_decorator():
    page = (ROOT / "docs" / "reference" / "guarantees.md").read_text("utf-8")

    marks = re.findall(r'@deprecated\("(.+)"\)', page)

    assert marks
    assert all(map(MESSAGE.fullmatch, marks))
