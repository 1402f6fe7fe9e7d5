"""Every field of every study's settings, in the five places that it is written out for people."""

import json
import re
import warnings

import pytest

from surface_consistency.cli.main import main
from surface_consistency.engine.design import ReportSettings
from surface_consistency.engine.model_settings import ModelSettings
from surface_consistency.engine.paired import page
from surface_consistency.engine.report import report_runs
from surface_consistency.engine.study import find_study
from surface_consistency.plugins import STUDIES
from surface_consistency.runs.folder import RunFolder
from surface_consistency.schemas.settings import option_table, record_from_options, record_options

RUNNER = """
from surface_consistency.schemas import Generation


class London:
    name = "london"

    def __init__(self, model=None):
        self.model = model

    def fingerprint(self):
        return {"runner": "london", "model": self.model}

    def generate(self, prompts, params):
        for prompt in prompts:
            yield Generation(prompt_id=prompt.id, text="London")
"""
ASKED = STUDIES.names()
SMALL = {
    "redirectqa": ["--source", "sample", "--limit", "5"],
    "slaq": ["--source", "sample", "--limit", "1", "--all-facts"],
    "audit": ["--limit", "3", "--styles", "cloze", "--retriever", "fuzzy"],
}


def records(study):
    """The records behind the options of `run STUDY`."""
    found = {
        "source": study.source,
        "model": ModelSettings,
        "settings": study.settings,
        "scoring": study.scoring,
        "reporting": ReportSettings,
    }
    return found if study.toy_model is None else found | {"toy_model": study.toy_model.settings}


def test_every_study_that_is_asked_is_walked():
    assert set(ASKED) >= set(SMALL)


@pytest.fixture(scope="module", params=sorted(SMALL))
def run(request, tmp_path_factory):
    """A study, and the folder of a small run of it."""
    home = tmp_path_factory.mktemp(request.param)
    (home / "settings_walk_runner.py").write_text(RUNNER)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.syspath_prepend(str(home))
        words = ["run", request.param, *SMALL[request.param], "--repeat", "2"]
        words += ["--runner", "settings_walk_runner:London", "--label", "walked"]
        assert main([*words, "--resamples", "50", "--out", str(home / "run")]) == 0
    return find_study(request.param), home / "run"


@pytest.mark.parametrize("name", sorted(SMALL))
def test_every_field_is_an_option_with_its_help(name, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "2000")

    assert main(["run", name, "--help"]) == 0

    lines = capsys.readouterr().out.splitlines()
    for record in records(find_study(name)).values():
        for option in record_options(record):
            [line] = [line for line in lines if re.match(rf"[│ *]*{option.flags[0]} ", line)]
            assert option.help
            assert option.help in line, option.flags[0]


@pytest.mark.parametrize("name", sorted(SMALL))
def test_every_error_names_the_flag(name):
    for record in records(find_study(name)).values():
        for option in record_options(record):
            wrong = ["no equals sign"] if option.is_mapping else object()
            with pytest.raises(ValueError, match=rf"^{option.flags[0]}\b"):
                record_from_options(record, {option.argument: wrong})


def test_every_field_is_in_the_manifest_or_the_scoring(run):
    study, folder = run
    manifest = RunFolder.open(folder).read_manifest()
    scoring = json.loads((folder / "scoring.json").read_text())

    assert set(manifest.source) == set(study.source.model_fields)
    assert set(manifest.settings) == set(study.settings.model_fields)
    assert set(scoring["settings"]) == set(study.scoring.model_fields)
    assert manifest.settings["limit"] in (1, 3, 5)
    assert manifest.model == "walked"
    assert "london" in json.dumps(manifest.runner)


def test_every_field_is_a_row_of_how_it_was_made(run, tmp_path, monkeypatch):
    study, folder = run
    seen = []
    made = page.provenance
    monkeypatch.setattr(page, "provenance", lambda report: seen.append(made(report)) or seen[-1])

    report_runs([folder], tmp_path / "page", settings=ReportSettings(resamples=60))

    [[shown]] = seen
    for record in (study.source, study.settings, study.scoring, ReportSettings):
        for option in record_options(record):
            # Whether pages and figures are written changes no number.
            if option.path[0] not in {"figures", "page"}:
                assert option.path[0].replace("_", " ") in shown.settings, option.flags[0]
    assert shown.settings["resamples"] == "60"
    assert shown.settings["model"] == "walked"
    text = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert all(name in text for name in shown.settings)


@pytest.mark.parametrize("name", sorted(SMALL))
def test_every_field_is_a_row_of_the_table_of_the_documents(name):
    for record in records(find_study(name)).values():
        rows = option_table(record).splitlines()[2:]
        for row, option in zip(rows, record_options(record), strict=True):
            assert f"`{option.flags[0]}`" in row
            assert option.help.replace("|", "\\|") in row


def test_every_option_of_a_study_has_a_flag_of_its_own():
    for name in ASKED:
        flags = [o.flags[0] for r in records(find_study(name)).values() for o in record_options(r)]
        assert len(set(flags)) == len(flags)
