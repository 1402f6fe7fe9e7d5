"""The files of the guides on extending, memories and runners work as documented."""

import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest

from surface_consistency.cli.main import main
from surface_consistency.schemas import GenerationParams, Prompt

GUIDES = Path(__file__).resolve().parents[1] / "docs" / "guides"
FENCE = re.compile(r"^```(\w+)(?: title=\"([\w.]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODULES = ("atlas", "initials", "lost", "capitals", "kinds", "options", "lengths")
MEMORY_MODULES = ("reader", "notes")
NEEDS_DUMPS = "build redirectqa"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder whose modules can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield tmp_path
    for name in (*MODULES, *MEMORY_MODULES):
        sys.modules.pop(name, None)


def blocks(guide):
    """Language, file name or "", and text of each block."""
    text = (GUIDES / guide).read_text("utf-8")
    return [found.groups(default="") for found in FENCE.finditer(text)]


def run_guide(guide, folder):
    """Write the files of a guide, run its Python and commands; return the names it defines."""
    names = {}
    for language, name, text in blocks(guide):
        if name:
            (folder / name).write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, f"<{guide}>", "exec"), names)
        else:
            for line in text.replace("\\\n", " ").splitlines():
                program, *words = shlex.split(line)
                assert program == "surface-consistency"
                if NEEDS_DUMPS not in line:
                    assert main(words) == 0, line
    return names


def test_each_file_has_fewer_than_40_lines():
    for guide, files in (
        ("extend.md", {"pyproject.toml", "eswiki.toml", *(f"{name}.py" for name in MODULES)}),
        ("memory.md", {f"{name}.py" for name in MEMORY_MODULES}),
    ):
        texts = {name: text.splitlines() for _, name, text in blocks(guide) if name}
        assert set(texts) == files
        assert max(sum(map(bool, map(str.strip, lines))) for lines in texts.values()) < 40


def test_memory_guide_runs_completely(folder):
    names = run_guide("memory.md", folder)

    states, table = names["states"], names["table"].iloc[0]
    found = [names["answers"][f"{of}/{state}"] for of in ("Peru", "Ghana") for state in states]
    assert found == ["Lima", "Lima", "unknown", "Accra", "unknown", "Accra"]
    rates = ["leakage", "retrieval_mediated", "interference", "del_on_accuracy"]
    assert table[rates].tolist() == pytest.approx([1 / 3] * 4)
    assert table["not_inferred"] == "effective number of clusters 3, minimum 4"
    assert "reader" in (folder / "runs" / "reader" / "report.html").read_text("utf-8")


def test_runner_guide_contains_the_minimal_runner():
    source = GUIDES.parents[1] / "surface_consistency" / "models" / "minimal.py"
    texts = {name: text for _, name, text in blocks("runners.md") if name}

    assert texts["minimal.py"] == source.read_text(encoding="utf-8")


def test_server_of_the_runner_guide_reports_timeouts_as_errors():
    def ask(model, text, params):
        if text == "slow":
            raise TimeoutError("60 s")
        return f"{model}: {text}"

    names, texts = {"ask": ask}, {name: text for _, name, text in blocks("runners.md")}
    exec(compile(texts["server.py"], "<runners.md>", "exec"), names)
    prompts = [Prompt(id=text, text=text) for text in ("slow", "quick")]

    answers = list(names["ServerRunner"]("m").generate(prompts, GenerationParams()))

    assert [(one.text, one.error) for one in answers] == [
        (None, "no reply: 60 s"),
        ("m: quick", None),
    ]


@pytest.mark.filterwarnings("ignore:no difference is defined")
def test_extending_guide_runs_completely(folder):
    pytest.importorskip("surface_consistency_build", reason="it ends with a wiki to build")
    names = run_guide("extend.md", folder)

    scoring = (folder / "runs" / "atlas" / "scoring.json").read_text()
    assert '"initials:InitialsRule"' in scoring
    assert 0 < names["table"]["share_lost"].iloc[0] <= 1
    page = (folder / "runs" / "capitals" / "report.html").read_text("utf-8")
    assert "Capitals" in page
    assert "(not recorded)" in page  # Its outcomes have no columns of predictions.
    assert "no answer</bdi>" not in page
    assert (folder / "runs" / "capitals" / "checks" / "noise_floor.csv").is_file()
    assert [len(names[name].to_frame()) for name in ("compared", "agreement")] == [1, 2]
    assert (folder / "runs" / "both" / "report.html").is_file()
    assert "full name" in (folder / "runs" / "kinds" / "tables" / "by_kind.csv").read_text()
    assert set(names["EveryOption"]().column) == {"references"}
    assert (folder / "with-lengths" / "tables" / "by_length.csv").is_file()
