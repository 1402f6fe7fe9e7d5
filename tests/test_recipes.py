"""Commands of recipes are parsed by the command line."""

import shlex
from pathlib import Path

import pytest

from surface_consistency.cli.main import main

FILE = Path(__file__).resolve().parents[1] / "docs" / "recipes" / "redirectqa_models.sh"
COMMANDS = [
    shlex.split(line)[1:]
    for line in FILE.read_text("utf-8").splitlines()
    if line.startswith("surface-consistency ")
]
RUNS = [words for words in COMMANDS if words[0] == "run"]


def test_recipes_have_the_thirteen_models_of_redirectqa():
    assert len(RUNS) == 13
    assert COMMANDS[-1] == ["report", "runs", "--out", "runs"]
    assert all("--as-published" in words for words in RUNS)
    assert sum("protocol=api" in words for words in RUNS) == 1
    assert sum("@stage1-" in word for words in RUNS for word in words) == 4
    assert sum("trust_remote_code=true" in words for words in RUNS) == 2
    assert all(words[2:4] == ["--template", "both"] for words in RUNS)
    assert len({words[-1] for words in RUNS}) == 13


@pytest.mark.parametrize("words", RUNS, ids=lambda words: words[-1])
def test_every_command_of_the_recipes_is_accepted(words, capsys, monkeypatch):
    assert main([*words, "--print-commands"]) == 0

    [printed] = capsys.readouterr().out.splitlines()
    assert sorted(shlex.split(printed)[1:]) == sorted(words)
