"""A judge with known errors, held against labels, and its errors taken out."""

import numpy as np
import pandas as pd
import pytest

from surface_consistency.data.slaq import load_slaq_sample
from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency.models import FakeRunner
from surface_consistency.studies.slaq.labels import judge_checks

SENSITIVITY, SPECIFICITY = 0.9, 0.7


class Erring:
    """Knows the truth, which is planted, and errs at fixed rates on it."""

    name = "erring"

    def __init__(self, seed=0):
        self.truth = {}
        self._rng = np.random.default_rng(seed)

    def judge(self, targets):
        rng, rows = self._rng, []
        for form, *key in zip(
            targets["form"], targets["prompt_id"], targets["fact_id"], strict=True
        ):
            share = 0.7 if form == "short" else 0.4
            truth = self.truth.setdefault(tuple(key), bool(rng.random() < share))
            said = bool(rng.random() < (SENSITIVITY if truth else 1 - SPECIFICITY))
            rows.append((said, said or truth if form == "free" else None))
        found = pd.DataFrame(rows, columns=["is_correct", "is_recalled"])
        return found.astype("boolean").assign(reason=None)


def labelled(truth, *, recalled=None):
    """Labels of these facts."""
    rows = [(*key, said, recalled) for key, said in truth.items()]
    frame = pd.DataFrame(rows, columns=["prompt_id", "question_id", "is_correct", "is_recalled"])
    return frame.astype({"is_correct": "boolean", "is_recalled": "boolean"})


def quality(folder, labels, **options):
    """Hold a scored run against labels."""
    targets = folder.read_plan()[0]
    verdicts, outcomes = (pd.read_parquet(p) for p in (folder.verdicts, folder.outcomes))
    return judge_checks(targets, verdicts, outcomes, labels, **options)


@pytest.fixture(scope="module")
def scored(tmp_path_factory, ask, score):
    """A scored run, and the judge that knows what is true."""
    runner = FakeRunner(lambda prompt: "an answer")
    folder = ask(load_slaq_sample(), runner, tmp_path_factory.mktemp("run"), free=True, repeat=0)
    judge = Erring()
    score(folder, judge)
    return folder, judge


def test_counts_agree_with_counting_by_hand(scored):
    folder, judge = scored
    verdicts = pd.read_parquet(folder.verdicts)
    targets = folder.read_plan()[0]
    keys = zip(targets["prompt_id"], targets["fact_id"], strict=True)
    said = dict(zip(keys, verdicts["is_correct"].tolist(), strict=True))

    table = quality(folder, labelled(judge.truth), n_resamples=200)["judge_agreement"]

    rows = table[table["verdict"] == "is_correct"].set_index("form")
    assert list(rows.index) == ["short", "long", "free"]
    assert set(table["judge"]) == {"erring"}
    for form, mark in (("short", "/short"), ("long", "/long/"), ("free", "/free")):
        keys = [key for key in said if mark in key[0]]
        cells = [sum((judge.truth[k], said[k]) == pair for k in keys) for pair in PAIRS]
        names = ["true_positives", "false_negatives", "false_positives", "true_negatives"]
        assert rows.loc[form, names].tolist() == cells
        assert rows.loc[form, "n"] == rows.loc[form, "n_labelled"] == len(keys)
        assert rows.loc[form, "accuracy"] == pytest.approx((cells[0] + cells[3]) / len(keys))
        assert rows.loc[form, "accuracy_low"] < rows.loc[form, "accuracy"]
    assert rows.loc["long", "sensitivity"] == pytest.approx(SENSITIVITY, abs=0.06)
    assert rows.loc["long", "specificity"] == pytest.approx(SPECIFICITY, abs=0.08)


PAIRS = [(True, True), (True, False), (False, True), (False, False)]


def test_correction_finds_the_truth_behind_an_erring_judge(scored):
    folder, judge = scored
    frame = pd.read_parquet(folder.outcomes)

    table = quality(folder, labelled(judge.truth), n_resamples=500)["corrected"]

    assert list(table["condition"]) == ["long", "free"]
    row = table.set_index("condition").loc["long"]
    pairs = frame[frame["second_condition"] == "long"]
    short, long = (
        np.array([judge.truth[key] for key in zip(prompts, pairs["fact_id"], strict=True)])
        for prompts in (pairs["fact_id"] + "/short", pairs["pair_id"].str.rsplit("/", n=1).str[0])
    )
    true = {
        "first_accuracy": short.mean(),
        "second_accuracy": long.mean(),
        "accuracy_difference": long.mean() - short.mean(),
        "consistency": (short == long).mean(),
        "signed_alignment": short.mean() + long.mean() - 1,
    }
    for name, value in true.items():
        assert row[f"{name}_low"] <= value <= row[f"{name}_high"]
    observed = pairs["second_correct"].astype(bool).mean()
    assert row["observed_second_accuracy"] == pytest.approx(observed)
    assert abs(observed - true["second_accuracy"]) > 0.08
    assert abs(row["second_accuracy"] - true["second_accuracy"]) < 0.04
    assert (row["n_topics"], row["n_missing"]) == (24, 0)


def test_recall_is_compared_apart_from_correctness(scored):
    folder, judge = scored
    free = {key: said for key, said in judge.truth.items() if "/free" in key[0]}
    labels = labelled(free, recalled=True)

    with pytest.warns(SurfaceConsistencyWarning, match="no short answer has both"):
        table = quality(folder, labels, n_resamples=50)["judge_agreement"]

    assert list(table["verdict"]) == ["is_correct", "is_recalled"]
    recalled = table.iloc[1]
    assert recalled["true_positives"] + recalled["false_negatives"] == 120
    assert np.isnan(recalled["specificity"])


@pytest.mark.parametrize(
    ("kept", "turned", "message"),
    [
        (lambda said: said, False, "no labelled answer is wrong"),
        (lambda said: True, True, "no better than chance"),
    ],
    ids=["one-sided labels", "a judge like a coin"],
)
def test_scores_that_cannot_be_corrected_are_left_alone(scored, kept, turned, message):
    folder, judge = scored
    labels = {key: said != turned for key, said in judge.truth.items() if kept(said)}

    with pytest.warns(SurfaceConsistencyWarning, match=message):
        found = quality(folder, labelled(labels), n_resamples=50)

    assert found["corrected"].empty
    assert turned or np.isnan(found["judge_agreement"]["specificity"].iloc[0])
