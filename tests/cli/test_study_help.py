"""What `--help` prints from a file is what the command, or the study, itself would say."""

import pytest

from surface_consistency.cli.app import run_command
from surface_consistency.cli.main import main
from surface_consistency.cli.study_help import print_help
from surface_consistency.plugins import STUDIES

OWN = [("run", name) for name in STUDIES.names() if ":" not in name]


@pytest.mark.parametrize("width", ["60", "100", "160"])
@pytest.mark.parametrize("words", [*OWN, ("score",), ("demo",)], ids=" ".join)
def test_help_is_that_of_the_loaded_command(words, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    assert main([*words, "--help"]) == 0
    printed = capsys.readouterr().out

    run_command([*words, "--help"], {words[0]: ""})

    assert printed == capsys.readouterr().out


def test_studies_of_others_describe_themselves(capsys):
    assert not print_help("run theirs:toy")
    assert capsys.readouterr().out == ""


def test_misspelt_study_is_told(capsys):
    assert main(["run", "redirectq", "--help"]) == 2
    assert "redirectqa" in capsys.readouterr().err
