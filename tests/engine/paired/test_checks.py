"""Warnings about the scores of runs in the finding of the page."""

import json

import pytest

from surface_consistency.engine.report import report_runs
from surface_consistency.engine.score import score_files
from surface_consistency.engine.study import find_study
from surface_consistency.studies.forms.data import load_forms

N = 20
ROWS = [
    {
        "item": f"q{i}",
        "form": form,
        "question": f"Which town, {form} {i}?",
        "answers": [f"Town{i}x"],
    }
    for i in range(N)
    for form in "ab"
]


@pytest.mark.parametrize(
    ("answer", "warning"),
    [
        (lambda i, right: "nowhere", "All scores of m are 0 (40 answers)"),
        (lambda i, right: right, "All scores are 1 (40 answers)"),
        (
            lambda i, right: "\n" + right if i < 2 else right,
            "4 of 40 answers of m are empty, refused",
        ),
        (
            lambda i, right: f"<think>{right}" if i < 3 else right,
            "6 of 40 answers of m are empty, refused, failed or unfinished (15.0 %)",
        ),
        (lambda i, right: right if i < 10 else "nowhere", ""),
    ],
    ids=["none correct", "all correct", "empty", "reasoning without an end", "none"],
)
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.SurfaceConsistencyWarning")
@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UnscoredWarning")
def test_finding_reports_constant_scores_and_unusable_answers(tmp_path, answer, warning):
    rows = [
        {"id": f"{row['item']} | {row['form']}", "prediction": answer(n // 2, row["answers"][0])}
        for n, row in enumerate(ROWS)
    ]
    file = tmp_path / "m.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    study = find_study("forms")
    (run,) = score_files(study, load_forms(ROWS), [file], tmp_path / "run")

    finding = report_runs([run.path], tmp_path / "run", study=study).finding

    assert warning in finding
    assert warning or not any(word in finding for word in ("All scores", "empty", "unfinished"))
