"""Tables of SLAQ runs."""

import numpy as np
import pandas as pd
import pytest

from surface_consistency.metrics import PAIRED_RATES, Intervals, forms_by, paired_by
from surface_consistency.studies.slaq.tables import grouped_scores, slot_tables

FAST = {"n_null": 50}


def outcomes(run):
    return pd.read_parquet(run.outcomes).astype(
        {"first_correct": "boolean", "second_correct": "boolean"}
    )


def test_scores_agree_with_paired_by(make_slaq_run, coin):
    """Values and tests are equal; intervals are equal up to resampling noise."""
    frames = [
        outcomes(make_slaq_run(name, model=name, judge=coin(share=share), limit=24))
        for name, share in (("b", 0.7), ("a", 0.4))
    ]
    frame = pd.concat(frames, ignore_index=True)

    table = grouped_scores(frame, ("category",))
    reference = paired_by(
        frame,
        by=["model", "category"],
        cluster="topic_id",
        intervals=Intervals(resamples=20_000),
        rates={"consistency": PAIRED_RATES["consistency"]},
    )

    merged = table.merge(reference, on=["model", "category"], suffixes=("", "_reference"))
    assert len(merged) == len(table) == 24
    for name in ("n", "both", "neither", "n_missing", "p_value", "consistency"):
        np.testing.assert_allclose(merged[name], merged[f"{name}_reference"])
    for name in ("consistency_low", "consistency_high"):
        np.testing.assert_allclose(merged[name], merged[f"{name}_reference"], atol=0.03)
    assert list(dict.fromkeys(table["model"])) == ["b", "a"]


def test_models_on_the_same_topics_share_resamples(make_slaq_run, coin):
    """Two models with equal labels have identical intervals."""
    frame = outcomes(make_slaq_run("one"))
    twins = pd.concat([frame, frame.assign(model="twin")], ignore_index=True)

    table = grouped_scores(twins).set_index("model")

    assert table.loc["m"].drop("condition").equals(table.loc["twin"].drop("condition"))


def test_a_group_of_one_topic_has_no_interval(make_slaq_run):
    table = grouped_scores(outcomes(make_slaq_run("one", limit=1)))

    assert np.isnan(table[["consistency_low", "second_accuracy_high"]].to_numpy(float)).all()
    assert table["consistency"].notna().all()


def test_topics_without_labels_are_not_clusters_and_missing_values_are_a_group(make_slaq_run):
    frame = outcomes(make_slaq_run("one", limit=6)).assign(popularity=None)
    first = frame["topic_id"] == frame["topic_id"].iloc[0]
    frame.loc[first, "second_correct"] = pd.NA

    table = grouped_scores(frame, ("popularity",)).iloc[0]

    assert (table["n_clusters"], table["n_missing"], table["n"]) == (5, 25, 125)
    assert table["popularity"] == "unknown"
    rest = grouped_scores(frame[~first]).iloc[0]
    assert table["consistency_low"] == rest["consistency_low"]
    by_fact = grouped_scores(frame, cluster="item").iloc[0]
    assert by_fact["n_clusters"] == 25


def test_position_table_needs_balanced_orders_and_excludes_facts_with_a_gap(make_slaq_run):
    runs = {n: outcomes(make_slaq_run(f"{n}", model=f"{n}", permutations=n)) for n in (3, 5, 10)}
    whole = runs[5].copy()
    runs[5].loc[0, "second_correct"] = pd.NA

    tables = slot_tables(pd.concat(runs, ignore_index=True), **FAST)
    position = slot_tables(whole, **FAST)["position"]

    assert set(tables["momentum"]["model"]) == {"3", "5", "10"}
    gaps = tables["position"][["model", "n_facts_left_out", "n_topics"]]
    assert gaps.drop_duplicates().values.tolist() == [["5", 1, 6], ["10", 0, 6]]
    means = whole.groupby("slot")["second_correct"].mean().to_numpy(float)
    np.testing.assert_allclose(position["accuracy"], means)


@pytest.mark.parametrize("n_gaps", [0, 40])
def test_order_sensitivity_agrees_with_forms_by(make_slaq_run, n_gaps):
    """The implementations use arrays and forms."""
    frame = outcomes(make_slaq_run("one", limit=8))
    gaps = np.random.default_rng(3).choice(len(frame), n_gaps, replace=False)
    frame.loc[gaps, "second_correct"] = pd.NA

    row = slot_tables(frame, **FAST)["order_sensitivity"].iloc[0]

    forms = [v.dropna().astype(int).tolist() for _, v in frame.groupby("item")["second_correct"]]
    several = [form for form in forms if len(form) > 1]
    scored = frame.dropna(subset="second_correct")
    reference = forms_by(scored, form="permutation", score="second_correct").iloc[0]
    assert row["disagreement"] == pytest.approx(1 - reference["consistency"])
    assert row["n_items"] == len(several)
    assert row["n_changing"] == sum(0 < sum(form) < len(form) for form in several)
    assert row["disagreement_low"] < row["disagreement"] < row["disagreement_high"]


def test_recall_is_nan_if_incorrect_and_absent_are_not_distinguished(make_slaq_run):
    frame = outcomes(make_slaq_run("one", free=True))
    # A fact that is not found can be absent or incorrect.
    frame.loc[frame["second_correct"].eq(False), "is_recalled"] = None

    recall = slot_tables(frame, **FAST)["recall"].iloc[0]

    assert recall["n_judged"] == 30
    assert recall["n_recall_unknown"] > 0
    assert np.isnan(recall["recall"])
    assert np.isnan(recall["accuracy_of_recalled"])
    assert 0 < recall["accuracy"] < 1
