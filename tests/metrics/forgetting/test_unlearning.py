import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from surface_consistency.errors import UnscoredWarning
from surface_consistency.metrics import (
    Intervals,
    contrasts_by,
    paired_by,
    unlearning_by,
    unlearning_verdict,
)
from tests.made_logs import MODELS, official_verdicts

# UNLEARNING logs of TOFU's forget10: matched short answers, full model x retrained one.
SQUARES = {
    "Llama-2-7b-chat-hf": [33, 319, 0, 15],
    "Llama-3.2-1B-Instruct": [25, 257, 1, 84],
    "Llama-3.2-3B-Instruct": [32, 300, 1, 34],
    "Llama-3.1-8B-Instruct": [37, 325, 1, 4],
}
CELLS = ["both", "first_only", "second_only", "neither"]


def crossed(data_files, first, second):
    """Verdicts on two of the eight official models."""
    frame = official_verdicts(data_files).reset_index()
    return frame.assign(first_correct=frame[first], second_correct=frame[second])


def made_frame(rng, *, survival, floor, n=100):
    """Two models that answer at random, 3 questions a person."""
    person = np.repeat(np.arange(n), 3)
    first, second = (rng.random(3 * n) < rate for rate in (survival, floor))
    return pd.DataFrame({"fact_id": person, "first_correct": first, "second_correct": second})


@pytest.mark.parametrize("model", MODELS)
def test_square_of_full_and_retrained_models(data_files, model):
    frame = crossed(data_files, f"{model}.full", f"{model}.retain90")

    row = unlearning_by(frame, cluster="author", pair_id="index").iloc[0]

    assert row[CELLS].tolist() == SQUARES[model]
    assert row["n_clusters"] == 20
    assert row["p_above"] < 1e-9
    assert row["p_equivalent"] > 0.999


def test_two_retrained_models_differ_by_two_points(data_files):
    """What never-taught models answer is no constant: the excess has the interval of contrasts."""
    first, second = "Llama-3.2-3B-Instruct.retain90", "Llama-3.2-1B-Instruct.retain90"
    frame = crossed(data_files, first, second)

    row = unlearning_by(frame, cluster="author", pair_id="index", margin=0.05).iloc[0]

    assert row[CELLS].tolist() == [22, 11, 4, 330]
    assert row["excess"] == pytest.approx(0.019, abs=5e-4)
    bounds = [row["excess_low"], row["excess_high"]]
    assert bounds == pytest.approx([0.00187, 0.07026], abs=1e-5)
    assert row["p_equivalent"] == pytest.approx(0.0803, abs=1e-4)


def test_equivalence_is_that_of_contrasts(data_files):
    first, second = "Llama-3.2-3B-Instruct.retain90", "Llama-3.2-1B-Instruct.retain90"
    frame = crossed(data_files, first, second)
    verdicts = frame.drop(columns=["first_correct", "second_correct"])
    long = verdicts.melt(["index", "author"], [first, second], "model", "first_correct")

    row = unlearning_by(frame, cluster="author", pair_id="index", margin=0.05).iloc[0]
    other = contrasts_by(
        long.assign(second_correct=long["first_correct"]),
        between="model",
        reference=second,
        rate="first_accuracy",
        cluster="author",
        pair_id="index",
        margin=0.05,
    ).iloc[0]

    names = {"excess": "difference", "excess_low": "difference_low", "p_value": "p_value"}
    for mine, theirs in (names | {"p_equivalent": "p_equivalent"}).items():
        assert row[mine] == pytest.approx(other[theirs], abs=1e-12)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 9)), min_size=8))
def test_survival_is_floor_and_leak_less_damage(rows):
    frame = pd.DataFrame(rows, columns=["first_correct", "second_correct", "fact_id"])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Few clusters have no bounds.
        row = unlearning_by(frame).iloc[0]

    assert row["survival"] == pytest.approx(row["floor"] + row["leak"] - row["damage"])
    assert row["excess"] == pytest.approx(row["survival"] - row["floor"])


def test_p_value_agrees_with_the_interval_of_the_excess():
    rng = np.random.default_rng(0)
    frames = [made_frame(rng, survival=0.3, floor=floor) for floor in np.linspace(0.1, 0.5, 30)]
    frame = pd.concat([one.assign(form=f"{n:02}") for n, one in enumerate(frames)])

    rows = unlearning_by(frame, by="form")

    leaves_out = (rows["excess_low"] > 0) | (rows["excess_high"] < 0)
    assert (leaves_out == (rows["p_value"] < 0.05)).all()
    assert 0 < leaves_out.sum() < len(rows)


def test_one_sided_tests_are_those_of_a_ninety_per_cent_interval():
    rng = np.random.default_rng(1)
    for floor in (0.1, 0.2, 0.3):
        frame = made_frame(rng, survival=0.25, floor=floor)
        row = unlearning_by(frame, margin=0.1, intervals=Intervals(level=0.9)).iloc[0]

        assert (row["p_above"] < 0.05) == (row["excess_low"] > 0.1)
        assert (row["p_not_above"] < 0.05) == (row["excess_high"] < 0.1)
        assert (row["p_not_below"] < 0.05) == (row["excess_low"] > -0.1)


def test_groups_are_those_of_paired_by():
    rng = np.random.default_rng(2)
    frame = made_frame(rng, survival=0.4, floor=0.2)
    frame["form"] = rng.choice(["plain", "name", "long"], len(frame))

    rows = unlearning_by(frame, by="form").set_index("form")

    paired = paired_by(frame, by="form").set_index("form")
    assert rows["leak"].tolist() == paired["negative_flip_rate"].tolist()
    for form, part in frame.groupby("form"):
        alone = unlearning_by(part).iloc[0]
        assert rows.loc[form, "p_above"] == pytest.approx(alone["p_above"])


def test_unscored_questions_are_left_out():
    frame = made_frame(np.random.default_rng(3), survival=0.4, floor=0.2)
    gaps = frame.astype({"first_correct": object})
    gaps.loc[:29, "first_correct"] = None

    with pytest.warns(UnscoredWarning, match="30 of 300 pairs"):
        row = unlearning_by(gaps).iloc[0]
    alone = unlearning_by(frame[30:]).iloc[0]
    assert row["p_equivalent"] == pytest.approx(alone["p_equivalent"])


def test_resampled_intervals_have_no_test():
    frame = made_frame(np.random.default_rng(4), survival=0.4, floor=0.2)

    row = unlearning_by(frame, intervals=Intervals(method="percentile", n_resamples=100)).iloc[0]

    assert np.isnan(row[["p_value", "p_above", "p_equivalent"]].astype(float)).all()
    assert row["excess_low"] < row["excess"] < row["excess_high"]


@pytest.mark.parametrize("margin", [0.0, 1.0, -0.1])
def test_margin_must_be_a_fraction(margin):
    with pytest.raises(ValueError, match="margin must be above 0 and below 1"):
        unlearning_by(made_frame(np.random.default_rng(0), survival=0.5, floor=0.5), margin=margin)


def forms(**p_values):
    """Rows of forms by p of an excess beyond the margin; that of none is its complement."""
    rows = [
        {
            "form": form,
            "p_above": p,
            "p_not_above": 1 - p,
            "p_equivalent": max(1 - p, 0.01),
            "excess_high": 0.1,
        }
        for form, p in p_values.items()
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("p_values", "verdict"),
    [
        ({"plain": 0.99, "name": 0.99}, "forgotten"),
        ({"plain": 0.99, "name": 0.01}, "hidden"),
        ({"plain": 0.01, "name": 0.99}, "not forgotten"),
        ({"plain": 0.5, "name": 0.01}, "not forgotten"),
        ({"plain": 0.5, "name": 0.99}, "cannot tell"),
        ({"plain": 0.99, "name": 0.04}, "cannot tell"),
        ({"plain": 0.99, "name": float("nan")}, "cannot tell"),
        ({}, "cannot tell"),
    ],
)
def test_verdict_of_all_forms(p_values, verdict):
    columns = ["form", "p_above", "p_not_above", "p_equivalent", "excess_high"]
    table = forms(**p_values).reindex(columns=columns)

    assert unlearning_verdict(table).verdict == verdict


def test_forgotten_below_the_reference_is_not_equivalent():
    table = forms(plain=0.999).assign(p_equivalent=0.4, excess_high=-0.02)

    said = unlearning_verdict(table)

    assert (said.verdict, said.is_equivalent, said.below) == ("forgotten", False, ("plain",))
