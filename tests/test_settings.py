"""Every settings field of every study, in manifest, scoring, help and report."""

import json
import re
import warnings

import pytest

from surface_consistency.cli.main import main
from surface_consistency.cli.record_command import SETTING, flag_of, name_flags
from surface_consistency.engine.model_settings import ModelsSettings
from surface_consistency.engine.paired import page
from surface_consistency.engine.report import report_runs
from surface_consistency.engine.settings import ReportSettings, study_records
from surface_consistency.engine.study import find_study
from surface_consistency.plugins import STUDIES
from surface_consistency.runs.folder import RunFolder
from surface_consistency.schemas.settings import RARE

NAMES = STUDIES.names()
SMALL = {
    "redirectqa": ["--source", "sample", "--limit", "5"],
    "slaq": ["--source", "sample", "--limit", "1", "--setting", "all_facts=true"],
    "audit": ["--limit", "3", "--styles", "cloze", "--retriever", "fuzzy"],
}


def records(study):
    """Return the records of the options of `run STUDY`."""
    own = study.records
    found = [own.source, ModelsSettings, own.settings, own.scoring, ReportSettings, own.toy_model]
    return [record for record in found if record is not None]


@pytest.fixture(scope="module", params=sorted(SMALL))
def run(request, tmp_path_factory):
    """A study, and the folder of a small run."""
    home = tmp_path_factory.mktemp(request.param)
    words = ["run", request.param, *SMALL[request.param], "--repeat", "2", "--label", "labelled"]
    words += ["--runner", "tests.london:London", "--setting", "resamples=50"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main([*words, "--out", str(home / "run")]) == 0
    return find_study(request.param), home / "run"


@pytest.mark.parametrize("name", NAMES)
def test_records_of_a_study_match_its_class(name):
    study, found = find_study(name), study_records(name)

    for record in ("source", "settings", "scoring", "toy_model", "runner"):
        assert getattr(found, record) == getattr(study.records, record)
    assert found.summary == type(study).__doc__.strip().partition("\n")[0]


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_one_of_at_most_40_options_with_help(name, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "2000")

    assert main(["run", name, "--help"]) == 0

    lines = capsys.readouterr().out.splitlines()
    options = re.findall(r"(?m)^[│ *]*(--[a-z][a-z-]*)", "\n".join(lines))
    assert len(options) == len(set(options)) <= 40
    rare = "".join(line for line in lines if re.match(rf"[│ *]*{SETTING} ", line))
    found = records(find_study(name)) if name in SMALL else []
    # A field with the name of an earlier one shares its option.
    fields = {key: info for one in found[::-1] for key, info in one.model_fields.items()}
    flags = {key: flag_of(key, info) for key, info in fields.items()}
    for record in found:
        for field, info in record.model_fields.items():
            if info is not fields[field]:
                continue
            flag, text = flags[field], name_flags(" ".join(info.description.split()), flags)
            if RARE in info.metadata:
                assert re.search(rf"\b{field}\b", rare)
                continue
            [line] = [line for line in lines if re.match(rf"[│ *]*{flag} ", line)]
            if info.default is True:
                text = f"Do not {text[:1].lower()}{text[1:]}"
            assert text in line, flag


def test_every_field_is_in_the_manifest_or_the_scoring(run):
    study, folder = run
    manifest = RunFolder.open(folder).read_manifest()
    scoring = json.loads((folder / "scoring.json").read_text())

    assert set(manifest.source) == set(study.records.source.model_fields)
    assert set(manifest.settings) == set(study.records.settings.model_fields)
    assert set(scoring["settings"]) == set(study.records.scoring.model_fields)
    assert manifest.settings["limit"] in (1, 3, 5)
    assert manifest.model == "labelled"
    assert "london" in json.dumps(manifest.runner)


def test_every_field_is_a_row_of_the_provenance(run, tmp_path, monkeypatch):
    study, folder = run
    seen = []
    made = page.provenance
    monkeypatch.setattr(page, "provenance", lambda report: seen.append(made(report)) or seen[-1])

    report_runs([folder], tmp_path / "page", settings=ReportSettings(resamples=60))

    [[shown]] = seen
    own = study.records
    for record in (own.source, own.settings, own.scoring, ReportSettings):
        # The option for writing the page does not change numbers.
        for name in record.model_fields.keys() - {"page"}:
            assert name.replace("_", " ") in shown.settings, name
    assert shown.settings["resamples"] == "60"
    assert shown.settings["model"] == "labelled"
    text = (tmp_path / "page" / "report.html").read_text(encoding="utf-8")
    assert all(name in text for name in shown.settings)
