"""What is told of each state alone, and of answers that survive."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from surface_consistency.metrics import wilson_interval
from surface_consistency.studies.audit import AuditSettings, finish_audit

SETTINGS = AuditSettings(retriever="fuzzy", threshold=0.5)
KNOWN = {("Corvia", "Capital"): "Tallow"}


@pytest.mark.parametrize("name", ["overall", "by_variant", "by_cell"])
def test_states_that_were_asked_are_told_without_del_off(audit, name):
    """Accuracies, F1 and counts are those of the run that asks all three states."""
    whole = finish_audit(audit("whole", known=KNOWN), n_resamples=50)[name]
    settings = replace(SETTINGS, states=("FULL", "DEL-ON"))
    part = finish_audit(audit("part", known=KNOWN, settings=settings), n_resamples=50)[name]

    for column in ("full_accuracy", "del_on_accuracy", "full_f1", "del_on_f1", "n_full"):
        assert part[column].tolist() == pytest.approx(whole[column].tolist())
    assert part["n_del_on"].tolist() == whole["n"].tolist()
    assert part["n_del_off"].eq(0).all()
    assert part["full_accuracy_low"].lt(1).all()
    assert (
        part[["leakage", "retrieval_mediated", "interference", "artifact_rate"]]
        .isna()
        .all(axis=None)
    )
    assert part["states_note"].str.startswith("DEL-OFF was not asked").all()
    assert whole["states_note"].eq("").all()


def test_a_run_without_full_says_so(audit):
    settings = replace(SETTINGS, states=("DEL-ON", "DEL-OFF"))
    overall = finish_audit(audit(settings=settings), n_resamples=50)["overall"].iloc[0]

    assert overall["n"] == overall["n_del_on"] == overall["n_del_off"]
    assert overall["states_note"].startswith("FULL was not asked")
    assert np.isfinite(overall["leakage"])


def test_survivors_are_crossed_with_the_state_without_retrieval(audit):
    """Two facts have a decoy; the model knows one of them besides."""
    known = {("Arania", "Capital"): "Lumo"}
    folder = audit(known=known)
    tables = finish_audit(folder, n_resamples=50)

    listed = pd.read_csv(folder.tables / "survivors.csv", keep_default_na=False)
    alone = listed[listed["right_under_del_off"].astype(str) == "True"]
    assert set(zip(alone["subject"], alone["relation"], strict=True)) == set(known)
    counted = tables["attribution"].set_index("attribution")
    assert counted["count"].sum() == len(listed)
    assert counted["n_also_right_without_retrieval"].sum() == len(alone)
    assert 0 < counted.loc["same_object", "n_also_right_without_retrieval"] < len(listed)
    assert {"Arania", "Beldova"} <= set(listed["subject"])


def test_rates_given_full_get_wilson_intervals_over_the_facts_that_full_has_right(audit):
    frame = finish_audit(audit(), n_resamples=50)
    overall = frame["overall"].iloc[0]

    assert overall["leakage_given_full"] == 0
    bounds = wilson_interval(0, int(overall["n_clusters_given_full"]))
    assert overall["leakage_given_full_high"] == pytest.approx(bounds.high)
    assert overall["leakage_given_full_high"] > 0
