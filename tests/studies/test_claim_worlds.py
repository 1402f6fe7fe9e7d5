"""Each claim of a page agrees with the tables and with the planted direction.

Pages and tables of simulations are written to files and read back by `tests.claims`.
"""

import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from surface_consistency.engine.report import write_tables
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import SurfaceConsistencyWarning
from surface_consistency.report.html import write_page
from surface_consistency.report.page import ForestPlot
from surface_consistency.studies.audit.study import AuditStudy
from surface_consistency.studies.lexical.study import LexicalStudy
from surface_consistency.studies.linking.study import LinkingStudy
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.studies.slaq.study import SlaqStudy
from surface_consistency.tables.numbers import Claim
from tests.claims import check_page, unsupported
from tests.studies import test_null_worlds as worlds

VERDICTS = ["first_correct", "second_correct"]
KINDS = ("null", "small", "large", "contradictory", "few", "missing")
HIDDEN = re.compile(r"<(style|script).*?</\1>", re.S)
STUDIES = {
    "redirectqa": (RedirectQAStudy, "item", "loss", -1, "n_facts", "accuracy_difference"),
    "slaq": (SlaqStudy, "topic_id", "long", 1, "n_topics", "accuracy_difference"),
    "audit": (AuditStudy, "base_fact", "store", 1, "n_facts", "retrieval_effect"),
    "lexical": (LexicalStudy, "context", "loss", -1, "n", "accuracy_difference"),
    "linking": (LinkingStudy, "subject_id", "shift", 1, "n_subjects", "auc"),
}
"""Of each study its clusters, the effect of its worlds, the sign of a positive one in the estimate,
the argument that sets the number of clusters, and the column of the finding."""
STRENGTHS = {"null": 0.0, "small": 0.3, "large": 2.0, "missing": 3.0, "few": 3.0}


def world(name, kind, seed=1):
    """Simulate outcomes."""
    _, _, effect, _, size, _ = STUDIES[name]
    make, rng = worlds.STUDIES[name][0], np.random.default_rng(seed)
    if kind == "contradictory":
        parts = [make(rng, **{effect: strength}) for strength in (2.0, -2.0)]
        columns = ("item", "pair", "topic_id", "subject_id", "context", "base_fact")
        names = [one for one in columns if one in parts[0]]
        parts[1][names] = "other " + parts[1][names].astype(str)
        return pd.concat(parts, ignore_index=True)
    few = {size: 3} | ({"tasks": ("piqa",)} if name == "lexical" else {})
    frame = make(rng, **{effect: STRENGTHS[kind]}, **(few if kind == "few" else {}))
    if kind == "missing":
        # The short answer of a topic is the same in all rows of a fact.
        facts = pd.factorize(frame["item"] if name == "slaq" else frame.index)[0]
        gaps = rng.random((2, len(frame))) < 0.3
        gaps = np.column_stack([gaps[0][facts], gaps[1]])
        frame[VERDICTS] = frame[VERDICTS].astype(object).mask(gaps, None)
    return frame


def page_of(name, frame, **settings):
    """Compute report, tables and page."""
    study, cluster, *_ = STUDIES[name]
    made = worlds.report(study(), frame, cluster)
    made = replace(made, settings=ReportSettings(answers=0, **settings))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SurfaceConsistencyWarning)
        tables = study.report.compute(made)
        return made, tables, study.report.page(made, tables)


def records_of(page):
    """Return the claims of finding and summary."""
    parts = [*page.finding.sentence, *page.finding.summary]
    return [part for part in parts if isinstance(part, Claim)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STUDIES)
def test_claims_of_a_page_have_the_planted_direction_and_its_confidence_level(name, kind, tmp_path):
    made, tables, page = page_of(name, world(name, kind), confidence=0.9)
    write_tables(tables, tmp_path / "tables", runs=made.runs)
    write_page(page, tmp_path / "report.html")
    records, planted = records_of(page), STUDIES[name][3]

    read = check_page(tmp_path)
    assert len(read) >= len(records) > 0
    assert {one["confidence"] for one in read if one["kind"] in ("difference", "rate")} <= {0.9}
    assert unsupported(page.finding.sentence) == unsupported(page.finding.summary) == []
    text = HIDDEN.sub("", (tmp_path / "report.html").read_text("utf-8"))
    assert re.findall(r".{30}\b95(?:\s|&nbsp;)%.{20}|.{30}[^\d]\.05\b", text) == []
    directions = [one.direction for one in records if one.column == STUDIES[name][5]]
    if kind == "few":
        assert "none" in {one.kind for one in records}
        assert not any(one.direction for one in records)
        assert "effective number of clusters 3, minimum 4" in text
    elif kind in ("large", "missing"):
        assert {*directions} == {planted}
    else:
        allowed = {0, planted} if kind == "small" else {0}
        assert {*directions[:1]} <= allowed
        assert directions


def test_filled_markers_and_detectable_difference_depend_on_the_confidence_level():
    frame = world("redirectqa", "large")
    certain = {}
    for confidence in (0.9, 1.0 - 1e-9):
        page = page_of("redirectqa", frame, confidence=confidence)[2]
        blocks = [block for section in page.sections for block in section.blocks]
        # The markers of a chart without a test, whose `certain` is empty, are never filled.
        charts = [one for one in blocks if isinstance(one, ForestPlot) and one.certain]
        dots = [dot for chart in charts for _, _, of_row in chart.rows for dot in of_row]
        certain[confidence] = {dot.is_certain for dot in dots}
    assert certain == {0.9: {True}, 1.0 - 1e-9: {False}}
    row = page_of("redirectqa", frame, confidence=0.9)[1]["overall"].frame.iloc[0]
    half = (row["accuracy_difference_high"] - row["accuracy_difference_low"]) / 2
    expected = (1.644854 + 0.841621) / 1.644854 * half
    assert row["detectable_difference"] == pytest.approx(expected, rel=1e-5)


def test_alignment_is_averaged_over_topics_and_consistency_over_pairs():
    frame = world("slaq", "missing")
    known = frame.dropna(subset=VERDICTS).astype(dict.fromkeys(VERDICTS, bool))
    known = known.assign(aligned=known["first_correct"] == known["second_correct"])
    signed = known["first_correct"].astype(int) + known["second_correct"] - 1
    by_topic = known.assign(signed=signed).groupby("topic_id")[["aligned", "signed"]].mean()

    _, tables, page = page_of("slaq", frame)
    row = tables["overall"].frame.iloc[0]
    claimed = next(one for one in records_of(page) if one.column == "alignment")
    assert row["alignment"] == pytest.approx(by_topic["aligned"].mean())
    assert row["signed_alignment"] == pytest.approx(by_topic["signed"].mean())
    assert row["consistency"] == pytest.approx(known["aligned"].mean())
    assert row["alignment"] != pytest.approx(row["consistency"], abs=1e-4)
    assert (claimed.estimate, claimed.n_clusters) == (row["alignment"], row["n_topics"])


def test_claims_of_conditional_rates_have_the_number_of_their_rows():
    frame = world("audit", "large")
    frame.loc[frame.index % 3 == 0, "full_correct"] = False
    _, tables, page = page_of("audit", frame)
    row = tables["overall"].frame.iloc[0]
    claimed = next(one for one in records_of(page) if one.column == "survival_given_full")
    assert claimed.n == row["survival_given_full_n"] == frame["full_correct"].sum() < row["n"]
    assert claimed.n_clusters == row["survival_given_full_n_clusters"]
    frame = world("linking", "missing")
    frame.loc[frame.index % 7 == 0, "first_log_odds"] = np.nan
    _, _, page = page_of("linking", frame)
    sizes = {one.column: one.n for one in records_of(page)}
    kinds = frame.dropna(subset=["first_correct"])["kind"]
    assert sizes["positive_accuracy"] == (kinds == "positive").sum()
    assert sizes["negative_accuracy"] == (kinds != "positive").sum()
    assert sizes["auc"] == frame["first_log_odds"].notna().sum()
