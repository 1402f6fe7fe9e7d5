"""The tables of a run, compared with counts by hand; reports of single states."""

import numpy as np
import pytest

from surface_consistency.studies.audit.tables import audit_tables

KNOWN = {("Corvia", "Capital"): "Tallow"}


@pytest.fixture
def frame(audit, score):
    return score(audit(known=KNOWN))


def test_attribution_sums_to_the_correct_answers(frame):
    tables = audit_tables(frame)

    for name in ("attribution", "attribution_by_topology", "attribution_by_style"):
        table = tables[name]
        assert table["count"].sum() == frame["first_correct"].sum()
        assert table["rate_low"].le(table["rate"]).all()
        assert table["rate_high"].ge(table["rate"]).all()
        share = table["count"] / table["n_del_on_correct"]
        assert table["share"].tolist() == pytest.approx(share.tolist(), nan_ok=True)
    # The upper limit of a proportion of 0 is Wilson's limit over the 12 facts, which are in
    # both databases, and the 2 decoys of one.
    none = tables["attribution"].query("attribution == 'echo'").iloc[0]
    assert none["n_clusters"] == 14


def test_incomplete_closure_is_noted_in_every_table(frame):
    frame = frame.assign(n_surviving=np.where(frame["database"] == "lands/noise", 1, 0))
    tables = audit_tables(frame)

    for name, table in tables.items():
        known = {"closure_is_complete", "n_incomplete", "closure_note"}
        assert known <= set(table) or name == "survivors", name
    by_topology = tables["by_topology"].set_index("topology")
    assert by_topology.loc["base", "closure_is_complete"]
    assert by_topology.loc["noise", "closure_note"] == (
        "closure incomplete after 14 of 14 deletions"
    )


@pytest.mark.parametrize("name", ["overall", "by_topology", "by_condition"])
def test_other_states_are_reported_without_del_off(audit, finish, settings, name):
    """Accuracies, F1 and counts are those of the run of all three states."""
    whole = finish(audit("whole", known=KNOWN))[name]
    part = finish(audit("part", known=KNOWN, chosen=settings(states=("FULL", "DEL-ON"))))[name]

    for column in ("full_accuracy", "del_on_accuracy", "full_f1", "del_on_f1", "n_full"):
        assert part[column].tolist() == pytest.approx(whole[column].tolist())
    assert part["n_del_on"].tolist() == whole["n"].tolist()
    assert part["n_del_off"].eq(0).all()
    assert part["full_accuracy_low"].lt(1).all()
    rates = ["leakage", "retrieval_mediated", "interference", "artifact_rate"]
    assert part[rates].isna().all(axis=None)
    assert part["states_note"].str.startswith("DEL-OFF was not run").all()
    assert whole["states_note"].eq("").all()


def test_run_without_full_reports_it(audit, finish, settings):
    overall = finish(audit(chosen=settings(states=("DEL-ON", "DEL-OFF"))))["overall"].iloc[0]

    assert overall["n"] == overall["n_del_on"] == overall["n_del_off"]
    assert overall["states_note"].startswith("FULL was not run")
    assert np.isfinite(overall["leakage"])
    alone = finish(audit("alone", chosen=settings(states=("FULL",))))
    assert set(alone["states"]["state"]) == {"FULL"}
    assert alone["overall"]["n"].tolist() == [0]
    assert alone["overall"]["leakage"].isna().all()
    assert alone["attribution"].empty


def test_unscored_answer_is_not_a_survivor(frame):
    judged = frame["first_correct"].astype(object)
    judged.iloc[0] = None

    listed = audit_tables(frame.assign(first_correct=judged))["survivors"]

    assert 0 < len(listed) == judged.eq(True).sum()
