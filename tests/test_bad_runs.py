"""Run folders that are of another version, study or settings, or hold what they must not."""

import json
import warnings

import pandas as pd
import pytest

from surface_consistency.cli.main import main
from surface_consistency.errors import DataError
from surface_consistency.runs.frames import make_frame
from surface_consistency.schemas import PairedOutcome
from tests.made_runs import write_outcomes

RUNNER = """
from surface_consistency.models import Runner
from surface_consistency.schemas import Generation


class London(Runner):
    name = "london"

    def __init__(self, model=None):
        pass

    def fingerprint(self):
        return {"runner": "london"}

    def generate(self, prompts, params):
        for prompt in prompts:
            yield Generation(prompt_id=prompt.id, text="London")
"""


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A scored run on the sample, and its runner on the path."""
    home = tmp_path_factory.mktemp("bad_runs")
    (home / "bad_runs_runner.py").write_text(RUNNER)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.syspath_prepend(str(home))
        assert main([*RUN, "--out", str(home / "run")]) == 0
        yield home / "run"


RUN = ["run", "redirectqa", "--source", "sample", "--limit", "8", "--repeat", "4"]
RUN += ["--runner", "bad_runs_runner:London", "--setting", "resamples=50"]


@pytest.fixture
def folder(scored, tmp_path):
    """A copy of the run, to be spoiled."""
    for path in scored.rglob("*"):
        if path.is_file() and path.suffix in (".json", ".jsonl", ".parquet"):
            target = tmp_path / "run" / path.relative_to(scored)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return tmp_path / "run"


def change(folder, **fields):
    """Change the manifest."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def refused(capsys, *words):
    """Run a command line that must fail, and return what it says in one line."""
    capsys.readouterr()
    assert main(list(map(str, words))) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    return printed.err


def test_run_of_a_newer_version_is_refused(folder, capsys):
    change(folder, schema_version=4)

    for words in (["score", folder], ["report", folder, "--out", "x"], [*RUN, "--out", folder]):
        said = refused(capsys, *words)
        assert "written by a newer version of this package (manifest version 4" in said
        assert "update surface-consistency" in said


def test_run_of_an_unknown_study_is_refused(folder, capsys):
    change(folder, study="astrology")

    for words in (["score", folder], ["report", folder, "--out", "x"]):
        said = refused(capsys, *words)
        assert "no study 'astrology'; available: " in said
        assert "redirectqa" in said


def test_runs_of_two_studies_do_not_share_a_page(scored, folder, capsys):
    change(folder, study="slaq")

    said = refused(capsys, "report", scored, folder, "--out", "x")

    assert f"one report is of one study, but {scored} is of redirectqa" in said
    assert f"{folder} is of slaq; report them apart" in said


@pytest.mark.parametrize(
    ("words", "change"),
    [
        (["--shots", "2"], "settings.shots is 15 there and 2 now"),
        (["--limit", "9"], "settings.limit is 8 there and 9 now"),
        (["--max-new-tokens", "9"], "decoding.answers.max_new_tokens is 15 there and 9 now"),
        (["--repeat", "5"], "settings.repeat is 4 there and 5 now"),
        (["--label", "other"], "model is 'london' there and 'other' now"),
    ],
)
def test_settings_that_changed_between_start_and_resume_are_named(folder, capsys, words, change):
    said = refused(capsys, *RUN, *words, "--out", folder)

    assert "belongs to a run with other settings: " in said
    assert change in said
    assert "Use the same settings to continue it, or choose another --out" in said


def test_settings_field_that_an_older_start_did_not_have_is_named(folder, capsys):
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["settings"]["truncate"]
    manifest["settings"]["seed"] = 1
    (folder / "manifest.json").write_text(json.dumps(manifest))

    said = refused(capsys, *RUN, "--out", folder)

    assert "settings.seed is 1 there and 0 now" in said
    assert "settings.truncate is None there and False now" in said


def test_run_that_did_not_change_goes_on(folder, capsys):
    log = (folder / "generations.jsonl").read_bytes()

    assert main([*RUN, "--out", str(folder), "--json"]) == 0

    assert (folder / "generations.jsonl").read_bytes() == log
    assert json.loads(capsys.readouterr().out)["tables"]["overall"][0]["model"] == "london"


def test_columns_that_the_study_did_not_declare_are_refused(folder, capsys):
    frame = pd.read_parquet(folder / "outcomes.parquet")
    frame.assign(mood="good").to_parquet(folder / "outcomes.parquet")

    said = refused(capsys, "report", folder, "--out", "x")

    assert "column 'mood' is no field of RedirectOutcome" in said
    assert "outcomes.parquet" in said
    with pytest.raises(DataError, match="column 'mood' is no field of PairedOutcome"):
        make_frame({name: [] for name in (*PairedOutcome.model_fields, "mood")}, PairedOutcome)


def test_columns_that_are_missing_are_named(folder, capsys):
    frame = pd.read_parquet(folder / "outcomes.parquet")
    frame.drop(columns="relation").to_parquet(folder / "outcomes.parquet")

    assert "no column 'relation' of RedirectOutcome" in refused(
        capsys, "report", folder, "--out", "x"
    )


def test_page_of_no_pair_is_refused(folder, tmp_path, capsys):
    frame = pd.read_parquet(folder / "outcomes.parquet")
    frame.head(0).to_parquet(folder / "outcomes.parquet")

    said = refused(capsys, "report", folder, "--out", tmp_path / "page")

    assert "holds no pair, so there is nothing to report" in said
    assert not (tmp_path / "page" / "report.html").exists()


def test_comparison_of_no_pair_writes_no_page(tmp_path, capsys):
    file = tmp_path / "verdicts.csv"
    file.write_text("fact_id,a,b\n")
    words = ["compare", file, "--first", "a", "--second", "b", "--out", tmp_path / "page"]

    assert "no rows" in refused(capsys, *words)
    assert not (tmp_path / "page").exists()


def test_page_of_pairs_without_verdicts_is_written(folder, tmp_path, capsys):
    frame = pd.read_parquet(folder / "outcomes.parquet")
    frame["first_correct"] = pd.array([None] * len(frame), dtype="boolean")
    write_outcomes(folder, frame)

    assert main(["report", str(folder), "--out", str(tmp_path / "page"), "--json"]) == 0

    [overall] = json.loads(capsys.readouterr().out)["tables"]["overall"]
    assert (overall["n"], overall["n_missing"]) == (0, len(frame))
    assert overall["flip_rate"] is None
