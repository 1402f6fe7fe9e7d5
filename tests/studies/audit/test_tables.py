"""The tables of a run, against counting by hand; what is told of each state alone."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from surface_consistency.studies.audit.tables import AUDIT_GROUPINGS, audit_tables
from tests.studies.audit.conftest import random_outcomes

KNOWN = {("Corvia", "Capital"): "Tallow"}


@pytest.fixture
def frame(audit, score):
    return score(audit(known=KNOWN))


def test_rates_agree_with_counting(frame):
    tables = audit_tables(frame)
    first, second = frame["first_correct"].astype(bool), frame["second_correct"].astype(bool)
    row = tables["overall"].iloc[0]

    assert row["n"] == len(frame)
    assert row["n_clusters"] == frame["fact_id"].nunique() == 12 + 14
    assert row["leakage"] == pytest.approx(second.mean())
    assert row["retrieval_mediated"] == pytest.approx((first & ~second).mean())
    assert row["interference"] == pytest.approx((~first & second).mean())
    assert row["del_on_accuracy"] == pytest.approx(first.mean())
    assert len(tables["by_condition"]) == 4
    for name in AUDIT_GROUPINGS:
        assert tables[name]["identity_residual"].abs().max() < 1e-12
        assert tables[name]["artifacts_equal_del_on"].all()
    assert list(tables["by_style"]["style"]) == ["direct_questions", "cloze"]


def test_attribution_adds_up_to_the_right_answers(frame):
    tables = audit_tables(frame)

    for name in ("attribution", "attribution_by_topology", "attribution_by_style"):
        table = tables[name]
        assert table["count"].sum() == frame["first_correct"].sum()
        assert table["rate_low"].le(table["rate"]).all()
        assert table["rate_high"].ge(table["rate"]).all()
        share = table["count"] / table["n_del_on_correct"]
        assert table["share"].tolist() == pytest.approx(share.tolist(), nan_ok=True)
    # Nothing of a kind that never occurs is certain: Wilson's bound over 26 facts.
    none = tables["attribution"].query("attribution == 'echo'").iloc[0]
    t = stats.t.ppf(0.975, 25)
    assert none["rate_high"] == pytest.approx(t**2 / (26 + t**2))


def test_an_incomplete_closure_stands_in_every_table(frame):
    frame = frame.assign(n_surviving=np.where(frame["database"] == "lands/noise", 1, 0))
    tables = audit_tables(frame)

    for name, table in tables.items():
        known = {"closure_is_complete", "n_incomplete", "closure_note"}
        assert known <= set(table) or name == "survivors", name
    by_topology = tables["by_topology"].set_index("topology")
    assert by_topology.loc["base", "closure_is_complete"]
    assert by_topology.loc["noise", "closure_note"] == (
        "closure incomplete: 14 of 14 facts are still stated"
    )


def test_states_are_means_of_the_frame(frame):
    table = audit_tables(frame)["states_by_topology"]
    row = table.query("topology == 'noise' and state == 'DEL-ON'").iloc[0]
    noise = frame[frame["topology"] == "noise"]

    assert row["exact_match"] == pytest.approx(noise["first_correct"].astype(bool).mean())
    assert row["f1"] == pytest.approx(noise["first_f1"].mean())
    assert row["f1_low"] <= row["f1"] <= row["f1_high"]


@pytest.mark.parametrize("name", ["overall", "by_topology", "by_condition"])
def test_states_that_were_asked_are_told_without_del_off(audit, finish, settings, name):
    """Accuracies, F1 and counts are those of the run that asks all three states."""
    whole = finish(audit("whole", known=KNOWN))[name]
    part = finish(audit("part", known=KNOWN, chosen=settings(states=("FULL", "DEL-ON"))))[name]

    for column in ("full_accuracy", "del_on_accuracy", "full_f1", "del_on_f1", "n_full"):
        assert part[column].tolist() == pytest.approx(whole[column].tolist())
    assert part["n_del_on"].tolist() == whole["n"].tolist()
    assert part["n_del_off"].eq(0).all()
    assert part["full_accuracy_low"].lt(1).all()
    rates = ["leakage", "retrieval_mediated", "interference", "artifact_rate"]
    assert part[rates].isna().all(axis=None)
    assert part["states_note"].str.startswith("DEL-OFF was not asked").all()
    assert whole["states_note"].eq("").all()


def test_a_run_without_full_says_so(audit, finish, settings):
    overall = finish(audit(chosen=settings(states=("DEL-ON", "DEL-OFF"))))["overall"].iloc[0]

    assert overall["n"] == overall["n_del_on"] == overall["n_del_off"]
    assert overall["states_note"].startswith("FULL was not asked")
    assert np.isfinite(overall["leakage"])
    alone = finish(audit("alone", chosen=settings(states=("FULL",))))
    assert set(alone["states"]["state"]) == {"FULL"}
    assert alone["overall"]["n"].tolist() == [0]
    assert alone["overall"]["leakage"].isna().all()
    assert alone["attribution"].empty


def test_an_answer_that_nobody_judged_is_no_survivor(frame):
    judged = frame["first_correct"].astype(object)
    judged.iloc[0] = None

    listed = audit_tables(frame.assign(first_correct=judged))["survivors"]

    assert 0 < len(listed) == judged.eq(True).sum()


def test_survivors_are_crossed_with_the_state_without_retrieval(audit, finish):
    """Two facts have a decoy; the model knows one of them besides."""
    known = {("Arania", "Capital"): "Lumo"}
    tables = finish(audit(known=known))

    listed = tables["survivors"]
    alone = listed[listed["right_under_del_off"].astype(bool)]
    assert set(zip(alone["subject"], alone["relation"], strict=True)) == set(known)
    counted = tables["attribution"].set_index("attribution")["count"]
    assert counted.sum() == len(listed)
    assert counted["parameters"] == len(alone)
    assert counted["same_object"] > 0
    assert {"Arania", "Beldova"} <= set(listed["subject"])


def test_rates_given_full_get_wilson_intervals_over_the_facts_that_full_has_right(audit, finish):
    overall = finish(audit())["overall"].iloc[0]

    assert overall["leakage_given_full"] == 0
    n_facts = int(overall["n_clusters_given_full"])
    t = stats.t.ppf(0.975, n_facts - 1)
    assert overall["leakage_given_full_high"] == pytest.approx(t**2 / (n_facts + t**2))


def test_tables_of_several_models_are_those_of_each():
    frames = [random_outcomes(4, seed=seed, model=f"m{seed}") for seed in (1, 2)]

    both = audit_tables(pd.concat(frames))["by_style"]
    one = audit_tables(frames[1])["by_style"]

    pd.testing.assert_frame_equal(
        both[both["model"] == "m2"].reset_index(drop=True), one, check_dtype=False
    )
