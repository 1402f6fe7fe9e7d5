"""Tables of SLAQ runs."""

import warnings

import numpy as np
import pandas as pd
import pytest

from surface_consistency.engine.design import Report
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import PAIRED_RATES, Intervals, forms_by, paired_by
from surface_consistency.runs.loader import load_runs
from surface_consistency.studies.slaq.study import SlaqStudy
from surface_consistency.studies.slaq.tables import grouped_scores, slot_tables

FAST = {"n_resamples": 200, "n_null": 50}


def run_tables(*folders):
    """The tables of runs."""
    study = SlaqStudy()
    runs = load_runs(folders, outcome=study.records.outcome)
    settings = ReportSettings(resamples=50)
    report = Report(runs=runs, design=study.design, settings=settings, cluster="topic_id")
    with warnings.catch_warnings():
        # As `report_runs` does: what is missing or undefined stands in the tables.
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return {name: table.frame for name, table in study.report.compute(report).items()}


def outcomes(run):
    return pd.read_parquet(run.outcomes).astype(
        {"first_correct": "boolean", "second_correct": "boolean"}
    )


def test_scores_agree_with_paired_by(make_slaq_run, coin):
    """Values and tests are the same; intervals too, but for the draw of the resamples."""
    frames = [
        outcomes(make_slaq_run(name, model=name, judge=coin(share=share), limit=24))
        for name, share in (("b", 0.7), ("a", 0.4))
    ]
    frame = pd.concat(frames, ignore_index=True)

    table = grouped_scores(frame, ("category",), n_resamples=20_000)
    reference = paired_by(
        frame,
        by=["model", "category"],
        cluster="topic_id",
        intervals=Intervals(n_resamples=20_000),
        rates={"consistency": PAIRED_RATES["consistency"]},
    )

    merged = table.merge(reference, on=["model", "category"], suffixes=("", "_reference"))
    assert len(merged) == len(table) == 24
    for name in ("n", "both", "neither", "n_missing", "mcnemar_p_value", "consistency"):
        np.testing.assert_allclose(merged[name], merged[f"{name}_reference"])
    for name in ("consistency_low", "consistency_high"):
        np.testing.assert_allclose(merged[name], merged[f"{name}_reference"], atol=0.03)
    assert list(dict.fromkeys(table["model"])) == ["b", "a"]


def test_scores_agree_with_counting_by_hand(make_slaq_run):
    run = make_slaq_run("one", limit=24)
    frame = outcomes(run)
    overall = grouped_scores(frame, n_resamples=50).iloc[0]
    short, long = frame["first_correct"].astype(bool), frame["second_correct"].astype(bool)

    assert (overall["n"], overall["n_clusters"]) == (len(frame), 24)
    assert overall["first_accuracy"] == pytest.approx(short.mean())
    assert overall["second_accuracy"] == pytest.approx(long.mean())
    assert overall["signed_alignment"] == pytest.approx(short.mean() + long.mean() - 1)
    table = grouped_scores(frame, ("is_entity",), n_resamples=50)
    assert (table["n"].sum(), len(table)) == (len(frame), frame["is_entity"].nunique())
    floor = pd.read_csv(run.checks / "noise_floor.csv")
    assert floor[["form", "n_repeated"]].values.tolist() == [["short", 10], ["long", 50]]


def test_models_on_the_same_topics_share_resamples(make_slaq_run, coin):
    """Two models with the same verdicts have the same interval, to the last bit."""
    frame = outcomes(make_slaq_run("one"))
    twins = pd.concat([frame, frame.assign(model="twin")], ignore_index=True)

    table = grouped_scores(twins, n_resamples=300).set_index("model")

    assert table.loc["m"].drop("condition").equals(table.loc["twin"].drop("condition"))


def test_a_group_of_one_topic_has_no_interval(make_slaq_run):
    table = grouped_scores(outcomes(make_slaq_run("one", limit=1)), n_resamples=50)

    assert np.isnan(table[["consistency_low", "second_accuracy_high"]].to_numpy(float)).all()
    assert table["consistency"].notna().all()


def test_topics_without_verdicts_are_no_clusters_and_missing_labels_are_a_group(make_slaq_run):
    frame = outcomes(make_slaq_run("one", limit=6)).assign(popularity=None)
    first = frame["topic_id"] == frame["topic_id"].iloc[0]
    frame.loc[first, "second_correct"] = pd.NA

    table = grouped_scores(frame, ("popularity",), n_resamples=50).iloc[0]

    assert (table["n_clusters"], table["n_missing"], table["n"]) == (5, 25, 125)
    assert table["popularity"] == "unknown"
    rest = grouped_scores(frame[~first], n_resamples=50).iloc[0]
    assert table["consistency_low"] == rest["consistency_low"]
    by_fact = grouped_scores(frame, cluster="fact_id", n_resamples=50).iloc[0]
    assert by_fact["n_clusters"] == 25


@pytest.mark.parametrize(("n_permutations", "is_shown"), [(5, True), (10, True), (3, False)])
def test_position_needs_balanced_orders(make_slaq_run, n_permutations, is_shown):
    frame = outcomes(make_slaq_run("one", permutations=n_permutations, repeat=0))

    tables = slot_tables(frame, **FAST)

    assert ("position" in tables) is is_shown
    if is_shown:
        position = tables["position"]
        assert list(position["slot"]) == [1, 2, 3, 4, 5]
        means = frame.groupby("slot")["second_correct"].mean().to_numpy(float)
        np.testing.assert_allclose(position["accuracy"], means)


def test_facts_with_a_gap_are_left_out_of_the_position_and_counted(make_slaq_run):
    frame = outcomes(make_slaq_run("one"))
    frame.loc[0, "second_correct"] = pd.NA

    position = slot_tables(frame, **FAST)["position"]

    assert set(position["n_facts_left_out"]) == {1}
    assert set(position["n_topics"]) == {6}


def test_both_nulls_have_the_same_curve(make_slaq_run):
    tables = slot_tables(outcomes(make_slaq_run("one")), **FAST)

    by_null = dict(list(tables["momentum"].groupby("null")))
    assert set(by_null) == {"topic", "topic-and-slot"}
    columns = ["streak", "length", "n", "probability", "probability_low", "probability_high"]
    first, second = (part[columns].reset_index(drop=True) for part in by_null.values())
    pd.testing.assert_frame_equal(first, second)
    slopes = tables["momentum_slopes"]
    assert (
        slopes.groupby("streak")[["slope", "slope_low", "slope_high"]]
        .nunique()
        .eq(1)
        .all(axis=None)
    )


@pytest.mark.parametrize("n_gaps", [0, 40])
def test_order_sensitivity_agrees_with_forms_by(make_slaq_run, n_gaps):
    """Two implementations: over arrays here, over forms there."""
    frame = outcomes(make_slaq_run("one", limit=8))
    gaps = np.random.default_rng(3).choice(len(frame), n_gaps, replace=False)
    frame.loc[gaps, "second_correct"] = pd.NA

    row = slot_tables(frame, **FAST)["order_sensitivity"].iloc[0]

    forms = [v.dropna().astype(int).tolist() for _, v in frame.groupby("fact_id")["second_correct"]]
    several = [form for form in forms if len(form) > 1]
    scored = frame.dropna(subset="second_correct")
    reference = forms_by(scored, form="permutation", correct="second_correct").iloc[0]
    assert row["disagreement"] == pytest.approx(1 - reference["consistency"])
    assert row["n_facts"] == len(several)
    assert row["n_changing"] == sum(0 < sum(form) < len(form) for form in several)
    assert row["disagreement_low"] < row["disagreement"] < row["disagreement_high"]


def test_free_form_distinguishes_recall_from_correctness(make_slaq_run):
    frame = outcomes(make_slaq_run("one", free=True))
    free = frame[frame["second_condition"] == "free"]

    recall = slot_tables(frame, **FAST)["recall"].iloc[0]

    recalled = free["is_recalled"].astype(bool)
    right = free["second_correct"].astype(bool)
    assert recall["n_judged"] == recall["n"] == 30
    assert recall["recall"] == pytest.approx(recalled.mean())
    assert recall["accuracy_of_recalled"] == pytest.approx(right.sum() / recalled.sum())
    assert recall["accuracy"] == pytest.approx(right.mean())

    # What is not found may be absent or wrong: the share of facts recalled is then unknown.
    frame.loc[frame["second_correct"].eq(False), "is_recalled"] = None
    recall = slot_tables(frame, **FAST)["recall"].iloc[0]
    assert recall["n_judged"] == 30
    assert recall["n_recall_unknown"] > 0
    assert np.isnan(recall["recall"])
    assert np.isnan(recall["accuracy_of_recalled"])
    assert 0 < recall["accuracy"] < 1


def test_tables_of_several_models_stand_below_each_other(make_slaq_run, coin):
    folders = [
        make_slaq_run("x", model="one").path,
        make_slaq_run("y", model="two", permutations=3, judge=coin(share=0.2)).path,
        make_slaq_run("z", model="two").path,
    ]

    tables = run_tables(*folders)

    labels = ["one", "two (permutations 3)", "two (permutations 5)"]
    assert list(tables["overall"]["model"]) == labels
    assert list(dict.fromkeys(tables["momentum"]["model"])) == labels
    assert set(tables["position"]["model"]) == {labels[0], labels[2]}
    # Pairs of one name are compared: the first three orders are those of the smaller run.
    assert {"a", "b", "condition"} <= set(tables["contrasts"])


def test_listed_and_free_queries_are_never_pooled(make_slaq_run):
    tables = run_tables(
        make_slaq_run("x", model="one", free=True).path,
        make_slaq_run("y", model="two", free=True).path,
    )

    assert tables["overall"][["condition", "model"]].values.tolist() == [
        ["long", "one"],
        ["long", "two"],
        ["free", "one"],
        ["free", "two"],
    ]
    assert set(tables["contrasts"]["condition"]) == {"long", "free"}
