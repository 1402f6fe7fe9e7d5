"""Comparison of a judge with human labels, and correction of scores."""

import numpy as np
import pandas as pd
import pytest

from surface_consistency.data.slaq import load_slaq
from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency.models import FakeRunner
from surface_consistency.studies.slaq.labels import judge_checks


@pytest.fixture(scope="module")
def scored(tmp_path_factory, ask, score, coin):
    """Return labels that agree with the judge, and a function that compares labels with it."""
    runner = FakeRunner(lambda prompt: "an answer")
    folder = ask(load_slaq("sample"), runner, tmp_path_factory.mktemp("run"), free=True, repeat=0)
    score(folder, coin())
    targets = folder.read_plan()[0]
    verdicts, outcomes = (pd.read_parquet(p) for p in (folder.verdicts, folder.outcomes))

    def quality(labels):
        return judge_checks(targets, verdicts, outcomes, labels, resamples=50)

    labels = targets[["prompt_id"]].assign(question_id=targets["item"], is_recalled=pd.NA)
    labels = labels.assign(correct=verdicts["correct"])
    return labels.astype({"correct": "boolean", "is_recalled": "boolean"}), quality


def test_recall_and_correctness_have_separate_agreement_rows(scored):
    labels, quality = scored
    free = labels[labels["prompt_id"].str.endswith("/free")].assign(is_recalled=True)

    with pytest.warns(SurfaceConsistencyWarning, match="no short answer has both"):
        table = quality(free.astype({"is_recalled": "boolean"}))["judge_agreement"]

    assert list(table["verdict"]) == ["correct", "is_recalled"]
    recalled = table.iloc[1]
    assert recalled["true_positives"] + recalled["false_negatives"] == 120
    assert np.isnan(recalled["specificity"])


@pytest.mark.parametrize(
    ("is_turned", "message"),
    [(False, "no labelled answer is incorrect"), (True, "not better than chance")],
    ids=["one-sided labels", "a judge below chance"],
)
def test_scores_are_not_corrected_by_labels_that_give_no_error_rates(scored, is_turned, message):
    labels, quality = scored
    labels = labels.assign(correct=~labels["correct"]) if is_turned else labels[labels["correct"]]

    with pytest.warns(SurfaceConsistencyWarning, match=message):
        found = quality(labels)

    assert found["corrected"].empty
    assert is_turned or np.isnan(found["judge_agreement"]["specificity"].iloc[0])
