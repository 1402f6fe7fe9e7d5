"""Runs of this package as results, held against how two runs are compared."""

import json
import shutil

import pytest

from surface_consistency import FakeRunner
from surface_consistency.analysis.compare import compare_results
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine.compare.results_text import comparison_text
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.engine.settings import RuleScoring
from surface_consistency.errors import DataError
from surface_consistency.metrics import paired_table
from surface_consistency.results.frame import read_results
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from tests.made_rows import rows_of


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run knows everything, the other nothing of one name."""
    home, data = tmp_path_factory.mktemp("runs"), load_redirectqa(rows_of())
    answers = {q.question: q.triple.answers[0] for q in data.questions}
    for name, lost in (("before", "nobody"), ("after", "Smith")):

        def handler(prompt, lost=lost):
            question = prompt.text.rpartition("Q: ")[2].removesuffix(" A:")
            return " dunno" if lost in question else f" {answers[question]}"

        how = {"model": "m", "settings": RedirectQASettings(repeat=0), "progress": False}
        folder = run_study(RedirectQAStudy(), data, FakeRunner(handler), home / name, **how)
        score_run(folder, scoring=RuleScoring(rule="popqa", agreement=False))
    return home


def test_two_runs_have_the_table_that_comparing_them_gives(runs):
    frame = read_results([runs / "before", runs / "after"]).frame
    wide = frame.pivot(index="item", columns="model", values="score").astype(bool)

    own = paired_table(wide["m (before)"], wide["m (after)"])
    compared = compare_results([runs / "before", runs / "after"])
    row = compared.metrics["correct"].differences.iloc[0]
    cells = ("both", "reference_only", "model_only", "neither")
    assert list(own.counts) == [row[name] for name in cells]
    assert "differs from itself" not in comparison_text(compared)


def test_a_run_tells_questions_answers_and_facts(runs):
    results = read_results(runs / "after")

    row = results.frame[results.frame["score"] == 0].iloc[0]
    assert "Smith" in row["question"]
    assert row["prediction"] == "dunno"
    assert row["references"]
    assert (results.frame["task"] == "redirectqa").all()
    assert "fact_id" in results.clusters


def test_a_folder_of_runs_is_read_run_by_run(runs):
    assert read_results(runs).frame["model"].nunique() == 2


@pytest.mark.parametrize(
    ("version", "told"),
    [
        (2, r"an earlier version .*\(manifest version 2, this package reads 3\); run again"),
        (4, r"a newer version .*\(manifest version 4, this package reads 3\); update"),
    ],
)
def test_a_run_folder_of_another_version_is_refused(runs, tmp_path, version, told):
    folder = shutil.copytree(runs / "after", tmp_path / "run")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["schema_version"] = version
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")

    with pytest.raises(DataError, match=told):
        read_results(folder)
