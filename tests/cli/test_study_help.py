"""What `run STUDY --help` prints from a file is what the study itself would say."""

import pytest

from surface_consistency.cli.app import run_command
from surface_consistency.cli.main import main
from surface_consistency.cli.study_help import print_study_help
from surface_consistency.plugins import STUDIES

OWN = [name for name in STUDIES.names() if ":" not in name]


@pytest.mark.parametrize("width", ["60", "100", "160"])
@pytest.mark.parametrize("study", OWN)
def test_help_is_that_of_the_loaded_study(study, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    assert main(["run", study, "--help"]) == 0
    printed = capsys.readouterr().out

    run_command(["run", study, "--help"], {"run": ""})

    assert printed == capsys.readouterr().out


def test_studies_of_others_describe_themselves(capsys):
    assert not print_study_help("theirs:toy")
    assert capsys.readouterr().out == ""


def test_misspelt_study_is_told(capsys):
    assert main(["run", "redirectq", "--help"]) == 2
    assert "redirectqa" in capsys.readouterr().err
