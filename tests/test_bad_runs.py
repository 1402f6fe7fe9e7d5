"""Errors for run folders of another version, study or settings, or with invalid contents."""

import json
import re

import pandas as pd
import pytest

from surface_consistency.cli.main import main
from tests.london import RUN, folder, scored  # noqa: F401 - fixtures
from tests.made_runs import write_outcomes


def change(folder, **fields):
    """Change the manifest."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def error_of(capsys, *words):
    """Run a command line that must fail, and return its one-line message."""
    capsys.readouterr()
    assert main(list(map(str, words))) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    return printed.err


NEWER = r"newer version of this package \(manifest version 5.*update surface-consistency"
UNKNOWN = "study 'astrology' not found; available: .*redirectqa"


@pytest.mark.parametrize(
    ("fields", "message"), [({"schema_version": 5}, NEWER), ({"study": "astrology"}, UNKNOWN)]
)
def test_run_of_newer_version_or_unknown_study_raises(folder, capsys, fields, message):
    change(folder, **fields)
    lines = [["score", folder], ["report", folder, "--out", "x"], [*RUN, "--out", folder]]

    for words in lines[: 3 if "schema_version" in fields else 2]:
        assert re.search(message, error_of(capsys, *words))


def test_runs_of_two_studies_on_one_page_raise(scored, folder, capsys):
    change(folder, study="slaq")

    error = error_of(capsys, "report", scored, folder, "--out", "x")

    assert f"a report must be of one study, but {scored} is of redirectqa" in error
    assert f"{folder} is of slaq; report them separately" in error


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (["--shots", "2"], ["settings.shots is 15 there and 2 now"]),
        (["--limit", "9"], ["settings.limit is 2 there and 9 now"]),
        (["--max-new-tokens", "9"], ["decoding.answers.max_new_tokens is 15 there and 9 now"]),
        (["--repeat", "5"], ["settings.repeat is 2 there and 5 now"]),
        (["--label", "other"], ["model is 'london' there and 'other' now"]),
        # A field that did not exist at the start.
        ([], ["settings.seed is 1 there and 0", "settings.truncate is None there and False now"]),
    ],
)
def test_settings_changed_before_a_resume_raise_with_both_values(folder, capsys, words, messages):
    if not words:
        manifest = json.loads((folder / "manifest.json").read_text())
        del manifest["settings"]["truncate"]
        change(folder, settings=manifest["settings"] | {"seed": 1})

    error = error_of(capsys, *RUN, *words, "--out", folder)

    assert "belongs to a run with other settings: " in error
    assert all(message in error for message in messages)
    assert "Use the same settings to continue it, or choose another --out" in error


def test_undeclared_and_missing_columns_raise(folder, capsys):
    file = folder / "outcomes.parquet"
    frame = pd.read_parquet(file)
    for changed, message in (
        (frame.assign(mood="good"), "column 'mood' is not a field of RedirectOutcome"),
        (frame.drop(columns="relation"), "no column 'relation' of RedirectOutcome"),
    ):
        changed.to_parquet(file)
        error = error_of(capsys, "report", folder, "--out", "x")
        assert message in error
        assert "outcomes.parquet" in error


def test_report_without_pairs_raises(folder, tmp_path, capsys):
    pd.read_parquet(folder / "outcomes.parquet").head(0).to_parquet(folder / "outcomes.parquet")
    file = tmp_path / "verdicts.csv"
    file.write_text("item,a,b\n")
    comparison = ["paired", file, "--first", "a", "--second", "b"]

    for words, message in ((["report", folder], "no pair to report"), (comparison, "no rows")):
        assert message in error_of(capsys, *words, "--out", tmp_path / "page")
        assert not (tmp_path / "page" / "report.html").exists()


def test_page_of_pairs_without_labels_is_written(folder, tmp_path, capsys):
    frame = pd.read_parquet(folder / "outcomes.parquet")
    frame["first_correct"] = pd.array([None] * len(frame), dtype="boolean")
    write_outcomes(folder, frame)

    assert main(["report", str(folder), "--out", str(tmp_path / "page"), "--json"]) == 0

    [overall] = json.loads(capsys.readouterr().out)["tables"]["overall"]
    assert (overall["n"], overall["n_missing"]) == (0, len(frame))
    assert overall["flip_rate"] is None
