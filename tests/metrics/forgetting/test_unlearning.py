import numpy as np
import pandas as pd
import pytest

from surface_consistency.errors import ColumnNotFoundError
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
WHOLE = {"cluster": "author", "pair": "index"}


def crossed(data_files, first, second):
    """Labels of two of the eight official models."""
    frame = official_verdicts(data_files).reset_index()
    return frame.assign(first_correct=frame[first], second_correct=frame[second])


def made_frame(seed, *, survival, floor, n=100):
    """Two models that answer at random, 3 questions per person."""
    rng = np.random.default_rng(seed)
    first, second = (rng.random(3 * n) < rate for rate in (survival, floor))
    person = np.repeat(np.arange(n), 3)
    return pd.DataFrame({"item": person, "first_correct": first, "second_correct": second})


@pytest.mark.parametrize("model", MODELS)
def test_table_and_tests_of_full_and_retrained_models(data_files, model):
    row = unlearning_by(crossed(data_files, f"{model}.full", f"{model}.retain90"), **WHOLE).iloc[0]

    assert row[CELLS].tolist() == SQUARES[model]
    assert row["n_clusters"] == 20
    assert row["p_above"] < 1e-9
    assert row["p_equivalent"] > 0.999


def test_two_retrained_models_differ_by_two_points(data_files):
    """The accuracy of untrained models varies: the excess has the interval of contrasts."""
    first, second = "Llama-3.2-3B-Instruct.retain90", "Llama-3.2-1B-Instruct.retain90"
    frame = crossed(data_files, first, second)

    row = unlearning_by(frame, **WHOLE, margin=0.05).iloc[0]

    assert row[CELLS].tolist() == [22, 11, 4, 330]
    assert row["excess"] == pytest.approx(0.019, abs=5e-4)
    bounds = [row["excess_low"], row["excess_high"]]
    assert bounds == pytest.approx([0.00187, 0.07026], abs=1e-5)
    assert row["p_equivalent"] == pytest.approx(0.0803, abs=1e-4)
    assert row["least_margin"] == pytest.approx(max(map(abs, bounds)))
    assert row["clusters_needed"] == 42
    verdicts = frame.drop(columns=["first_correct", "second_correct"])
    long = verdicts.melt(["index", "author"], [first, second], "model", "first_correct")
    long = long.assign(second_correct=long["first_correct"])
    options = {"between": "model", "reference": second, "rate": "first_accuracy", "margin": 0.05}
    other = contrasts_by(long, **options, **WHOLE).iloc[0]
    names = {"excess": "difference", "excess_low": "difference_low", "p_value": "p_value"}
    for mine, theirs in (names | {"p_equivalent": "p_equivalent"}).items():
        assert row[mine] == pytest.approx(other[theirs], abs=1e-12)


def test_tests_agree_with_the_interval_of_the_excess():
    """The one-sided tests at 5 % agree with the 90 % interval."""
    floors = np.linspace(0.1, 0.5, 30)
    frames = [made_frame(n, survival=0.3, floor=floor) for n, floor in enumerate(floors)]
    frame = pd.concat([one.assign(form=f"{n:02}") for n, one in enumerate(frames)])

    rows = unlearning_by(frame, by="form")
    narrow = unlearning_by(frame, by="form", margin=0.1, intervals=Intervals(confidence=0.9))

    low, high = narrow["excess_low"], narrow["excess_high"]
    for name, is_shown in {
        "p_above": low > 0.1,
        "p_not_above": high < 0.1,
        "p_not_below": low > -0.1,
    }.items():
        assert ((narrow[name] < 0.05) == is_shown).all()
        assert 0 < is_shown.sum() < len(rows)
    paired = paired_by(frame, by="form")
    assert rows["leak"].tolist() == paired["negative_flip_rate"].tolist()


def test_resampled_intervals_have_no_test():
    frame = made_frame(4, survival=0.4, floor=0.2)

    row = unlearning_by(frame, intervals=Intervals(method="percentile", resamples=100)).iloc[0]

    assert np.isnan(row[["p_value", "p_above", "p_equivalent"]].astype(float)).all()
    assert row["excess_low"] < row["excess"] < row["excess_high"]


@pytest.mark.parametrize("margin", [0.0, 1.0, -0.1])
def test_margin_must_be_a_fraction(margin):
    with pytest.raises(ValueError, match=r"margin must be in \(0, 1\)"):
        unlearning_by(made_frame(0, survival=0.5, floor=0.5), margin=margin)


def test_least_margin_and_clusters_needed_agree_with_the_tests():
    """At the least margin, and with the clusters needed, equivalence becomes significant."""
    decided = []
    for survival, margin in ((0.2, 0.05), (0.22, 0.1), (0.3, 0.05), (0.2, 0.2), (0.05, 0.1)):
        frame = made_frame(5, survival=survival, floor=0.2)
        row = unlearning_by(frame, margin=margin).iloc[0]
        for off, is_shown in ((1e-6, True), (-1e-6, False)):
            again = unlearning_by(frame, margin=row["least_margin"] + off).iloc[0]
            assert (again["p_equivalent"] < 0.025) == is_shown
        is_decided = min(row["p_equivalent"], row["p_above"]) < 0.025
        decided.append(bool(is_decided))
        assert (row["clusters_needed"] <= row["n_clusters"]) == is_decided
        assert np.isnan(row["clusters_needed"]) == (row["excess"] <= -margin)
    assert set(decided) == {True, False}


def test_clusters_needed_agree_with_copies_of_the_clusters():
    """With fewer copies of these persons the test is inconclusive, with more equivalence holds."""
    frame = made_frame(9, survival=0.22, floor=0.2)
    margin = abs(unlearning_by(frame).iloc[0]["excess"]) + 0.02
    row = unlearning_by(frame, margin=margin).iloc[0]
    times = row["clusters_needed"] / row["n_clusters"]
    assert 3 < times < 20

    for copies, is_shown in ((int(0.9 * times), False), (int(times) + 1, True)):
        many = [frame.assign(item=frame["item"] + 100 * k) for k in range(copies)]
        again = unlearning_by(pd.concat(many), margin=margin).iloc[0]
        assert (again["p_equivalent"] < 0.025) == is_shown


def test_fewer_than_four_clusters_give_no_decision():
    frame = made_frame(5, survival=0.22, floor=0.2)

    needed = [unlearning_by(frame, margin=one).iloc[0]["clusters_needed"] for one in (0.9, 0.999)]

    assert needed == [4, 4]


FORMS = ["form", "p_above", "p_equivalent", "excess_low", "excess_high", "least_margin"]


def forms(**p_values):
    """Rows of forms by p of an excess beyond the margin, and p of a difference as large as it."""
    rows = [(form, *p, -0.1, 0.1, 0.2) for form, p in p_values.items()]
    return pd.DataFrame(rows, columns=FORMS).assign(clusters_needed=70.0)


SAME, LEAK, BELOW, OPEN = (0.99, 0.01), (0.001, 0.999), (0.999, 0.8), (0.6, 0.4)


@pytest.mark.parametrize(
    ("p_values", "verdict", "unclear"),
    [
        ({"plain": SAME, "name": SAME}, "forgotten", ()),
        ({"plain": SAME, "name": LEAK}, "hidden", ()),
        ({"plain": LEAK, "name": SAME}, "not forgotten", ()),
        ({"plain": OPEN, "name": LEAK}, "not forgotten", ("plain",)),
        ({"plain": BELOW, "name": LEAK}, "not forgotten", ("plain",)),
        ({"plain": OPEN, "name": SAME}, "cannot tell", ("plain",)),
        ({"plain": BELOW, "name": SAME}, "cannot tell", ("plain",)),
        ({"plain": SAME, "name": (0.04, 0.96)}, "cannot tell", ("name",)),
        ({"plain": SAME, "name": (np.nan, np.nan)}, "cannot tell", ()),
        ({"plain": (np.nan, np.nan)}, "not inferred", ()),
        ({}, "cannot tell", ()),
    ],
)
def test_conclusion_depends_on_the_tests_of_all_forms(p_values, verdict, unclear):
    result = unlearning_verdict(forms(**p_values))

    assert (result["verdict"], result["unclear"]) == (verdict, unclear)
    assert result["leaking"] == tuple(form for form, p in p_values.items() if p is LEAK)


def test_least_margin_and_clusters_needed_require_every_form():
    table = forms(plain=OPEN, name=OPEN, other=SAME).assign(
        least_margin=[0.2, 0.3, 0.5], clusters_needed=[70.0, 40.0, 900.0]
    )

    result = unlearning_verdict(table)

    assert (result["least_margin"], result["clusters_needed"]) == (0.5, 70.0)
    table.loc[1, "clusters_needed"] = np.nan
    assert np.isnan(unlearning_verdict(table)["clusters_needed"])
    assert np.isnan(unlearning_verdict(forms(plain=SAME))["clusters_needed"])
    # Fewer answers than the reference, within the margin, are named.
    result = unlearning_verdict(forms(plain=SAME, name=SAME).assign(excess_high=[-0.02, 0.01]))
    assert (result["verdict"], result["below"]) == ("forgotten", ("plain",))


def test_significant_excess_of_any_measured_form_forbids_forgotten():
    table, leaks = forms(plain=SAME, other=OPEN), forms(plain=SAME, other=LEAK)

    for above, verdict in (
        ((), "forgotten"),
        (("plain",), "equivalent"),
        (("other",), "equivalent"),
    ):
        lows = [0.01 if form in above else -0.1 for form in table["form"]]
        result = unlearning_verdict(table.assign(excess_low=lows), excluded=["other"])
        assert (result["verdict"], result["tested"], result["above"]) == (
            verdict,
            ("plain",),
            above,
        )
    for excluded, verdict in ((["other"], "hidden"), (["plain", "other"], "not forgotten")):
        assert unlearning_verdict(leaks, excluded=excluded)["verdict"] == verdict


def test_conclusion_uses_the_confidence_level_of_the_intervals():
    frame = made_frame(9, survival=0.22, floor=0.2).assign(form="plain")
    margin = unlearning_by(frame, intervals=Intervals(confidence=0.8)).iloc[0]["least_margin"]
    for level, verdict in ((0.95, "cannot tell"), (0.8, "forgotten")):
        table = unlearning_by(
            frame, by="form", margin=margin + 1e-6, intervals=Intervals(confidence=level)
        )
        assert unlearning_verdict(table, confidence=level)["verdict"] == verdict


def test_conclusion_needs_the_columns_of_unlearning_by():
    with pytest.raises(ColumnNotFoundError, match="no column p_equivalent, clusters_needed: pass"):
        unlearning_verdict(forms(plain=SAME).drop(columns=["p_equivalent", "clusters_needed"]))
