"""A judge with known errors, held against labels, and its errors taken out."""

import numpy as np
import pandas as pd
import pytest

from surface_consistency.data.slaq import load_slaq_sample
from surface_consistency.errors import DataError, SurfaceConsistencyWarning
from surface_consistency.inference import FakeRunner
from surface_consistency.schemas.slaq import Judgement
from surface_consistency.studies.slaq.ask import SlaqSettings, ask_slaq
from surface_consistency.studies.slaq.judge_quality import judge_quality
from surface_consistency.studies.slaq.labels import Label
from surface_consistency.studies.slaq.score import read_slaq_tasks, score_slaq

SENSITIVITY, SPECIFICITY = 0.9, 0.7


class Erring:
    """Knows the truth, which is planted, and errs at fixed rates on it."""

    name = "erring"

    def __init__(self, seed=0):
        self.truth = {}
        self._rng = np.random.default_rng(seed)

    def judge(self, tasks):
        rng = self._rng
        for task in tasks:
            for question in task.questions:
                share = 0.7 if task.form == "short" else 0.4
                key = (task.prompt_id, question.id)
                truth = self.truth.setdefault(key, bool(rng.random() < share))
                said = rng.random() < (SENSITIVITY if truth else 1 - SPECIFICITY)
                yield Judgement(
                    prompt_id=task.prompt_id,
                    question_id=question.id,
                    judge=self.name,
                    is_correct=bool(said),
                    is_recalled=bool(said) or truth if task.form == "free" else None,
                )


def labelled(truth, *, recalled=None):
    return {key: Label(is_correct=said, is_recalled=recalled) for key, said in truth.items()}


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A scored run, and the judge that knows what is true."""
    settings = SlaqSettings(forms=("short", "long", "free"), n_permutations=5, repeat=0)
    folder = ask_slaq(
        load_slaq_sample(),
        FakeRunner(lambda prompt: "an answer"),
        tmp_path_factory.mktemp("run"),
        model="m",
        settings=settings,
        progress=False,
    )
    judge = Erring()
    score_slaq(folder, judge)
    return folder, judge


def test_counts_agree_with_counting_by_hand(scored):
    folder, judge = scored
    said = {
        (j.prompt_id, j.question_id): j.is_correct
        for j in map(
            Judgement.model_validate_json, folder.judgements.read_text("utf-8").splitlines()
        )
    }

    table = judge_quality(folder, labelled(judge.truth), n_resamples=200).agreement

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

    table = judge_quality(folder, labelled(judge.truth), n_resamples=500).corrected

    assert list(table["condition"]) == ["long", "free"]
    row = table.set_index("condition").loc["long"]
    pairs = frame[frame["second_condition"] == "long"]
    short, long = (
        np.array([judge.truth[key] for key in zip(prompts, pairs["fact_id"], strict=True)])
        for prompts in (
            pairs["fact_id"] + "/short",
            pairs["pair_id"].str.rsplit("/", n=1).str[0],
        )
    )
    true = {
        "short_accuracy": short.mean(),
        "long_accuracy": long.mean(),
        "accuracy_difference": long.mean() - short.mean(),
        "alignment": (short == long).mean(),
        "signed_alignment": short.mean() + long.mean() - 1,
    }
    for name, value in true.items():
        assert row[f"{name}_low"] <= value <= row[f"{name}_high"]
    observed = pairs["second_correct"].astype(bool).mean()
    assert row["observed_long_accuracy"] == pytest.approx(observed)
    assert abs(observed - true["long_accuracy"]) > 0.08
    assert abs(row["long_accuracy"] - true["long_accuracy"]) < 0.04
    assert (row["n_topics"], row["n_missing"]) == (24, 0)


def test_recall_is_compared_apart_from_correctness(scored):
    folder, judge = scored
    labels = {
        key: Label(is_correct=said, is_recalled=True)
        for key, said in judge.truth.items()
        if "/free" in key[0]
    }

    with pytest.warns(SurfaceConsistencyWarning, match="no short answer has both"):
        table = judge_quality(folder, labels, n_resamples=50).agreement

    assert list(table["verdict"]) == ["is_correct", "is_recalled"]
    recalled = table.iloc[1]
    assert recalled["true_positives"] + recalled["false_negatives"] == 120
    assert np.isnan(recalled["specificity"])


def test_one_sided_labels_leave_the_scores_alone(scored):
    folder, judge = scored
    right = {key: said for key, said in judge.truth.items() if said}

    with pytest.warns(SurfaceConsistencyWarning, match="no labelled answer is wrong"):
        quality = judge_quality(folder, labelled(right), n_resamples=50)

    assert quality.corrected.empty
    assert np.isnan(quality.agreement["specificity"].iloc[0])


def test_a_judge_like_a_coin_is_not_corrected(scored):
    folder, judge = scored
    turned = {key: not said for key, said in judge.truth.items()}

    with pytest.warns(SurfaceConsistencyWarning, match="no better than chance"):
        assert judge_quality(folder, labelled(turned), n_resamples=50).corrected.empty


def test_labels_of_another_run_are_rejected(scored):
    folder, judge = scored
    foreign = {("other/short", "other/1"): Label(is_correct=True, is_recalled=None)}

    with pytest.raises(DataError, match="1 of 721 labels are of answers that this run"):
        judge_quality(folder, labelled(dict(list(judge.truth.items())[:720])) | foreign)
    with pytest.raises(DataError, match="no answer is labelled"):
        judge_quality(folder, {("a", "b"): Label(is_correct=None, is_recalled=None)})


def test_scoring_reads_the_labels_of_the_run_and_forgets_them_with_it(scored):
    folder, judge = scored
    lines = [f"{p},{q},{int(said)}" for (p, q), said in judge.truth.items()]
    folder.labels.write_text("\n".join(["prompt_id,question_id,is_correct", *lines]) + "\n")

    score_slaq(folder, judge)

    agreement = pd.read_csv(folder.checks / "judge_agreement.csv")
    assert set(agreement["form"]) == {"short", "long", "free"}
    assert (folder.checks / "corrected.csv").is_file()
    folder.labels.write_text("prompt_id,question_id,is_correct\nother/short,other/1,1\n")
    with pytest.raises(DataError, match="labels are of answers that this run does not hold"):
        score_slaq(folder, judge)
    # The verdicts are new, so what was said of the old ones is gone.
    assert not list(folder.checks.glob("*.csv"))
    folder.labels.unlink()
    score_slaq(folder, judge)
    assert not list(folder.checks.glob("*.csv"))
    assert len(read_slaq_tasks(folder)) == 24 * (5 + 5 + 1)
