"""The files of the guide on extending work when written, run and named in its order."""

import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest

from surface_consistency.cli.main import main

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "extend.md"
FENCE = re.compile(r"^```(\w+)(?: title=\"([\w.]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODULES = ("atlas", "initials", "lost", "capitals", "kinds", "options", "lengths", "quiz")
NEEDS_DUMPS = "build redirectqa"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder whose modules can be imported, as with PYTHONPATH=."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield tmp_path
    for name in MODULES:
        sys.modules.pop(name, None)


def blocks():
    """Language, file name or "", and text of each block."""
    return [found.groups(default="") for found in FENCE.finditer(GUIDE.read_text("utf-8"))]


def test_each_file_is_under_40_lines():
    sizes = {
        name: sum(bool(line.strip()) for line in text.splitlines())
        for _, name, text in blocks()
        if name
    }

    assert set(sizes) == {"pyproject.toml", "eswiki.toml", *(f"{name}.py" for name in MODULES)}
    assert max(sizes.values()) < 40


def test_guide_works_from_top_to_bottom(folder):
    """Files are written, other Python runs, commands of ours are called."""
    pytest.importorskip("surface_consistency_build", reason="it ends with a wiki to build")
    names = {}
    for language, name, text in blocks():
        if name:
            (folder / name).write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, "<extend.md>", "exec"), names)
        else:
            for line in text.replace("\\\n", " ").splitlines():
                program, *words = shlex.split(line)
                assert program == "surface-consistency"
                if NEEDS_DUMPS not in line:
                    assert main(words) == 0, line

    judged = (folder / "runs" / "atlas" / "scoring.json").read_text()
    assert '"initials:InitialsRule"' in judged
    assert 0 < names["table"]["share_lost"].iloc[0] <= 1
    assert "Capitals" in (folder / "runs" / "capitals" / "report.html").read_text("utf-8")
    assert (folder / "runs" / "capitals" / "checks" / "noise_floor.csv").is_file()
    assert "full name" in (folder / "runs" / "kinds" / "tables" / "by_kind.csv").read_text()
    assert set(names["EveryOption"]().column) == {"answers"}
    assert (folder / "with-lengths" / "tables" / "by_length.csv").is_file()
