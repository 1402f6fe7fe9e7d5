"""Simulations of unlearning: claims of the finding agree with the tables."""

import re

import numpy as np
import pandas as pd
import pytest

from surface_consistency.engine.design import Design, Report
from surface_consistency.engine.report import write_tables
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.report.html import write_page
from surface_consistency.report.page import Finding, Page
from surface_consistency.studies.unlearning.analysis import UnlearningAnalysis, UnlearningSettings
from surface_consistency.studies.unlearning.crossing import Crossing
from surface_consistency.tables.numbers import sentence_text
from tests.claims import check_page, unsupported

ROLES = {"original": "original", "npo": "unlearned", "retrained": "reference"}


def analysed(folder, forms, *, n=200, floor=0.1, margin=0.05, missing=0.0, alike=None, level=0.95):
    """Write the page of a world, by form: known, left of what is known, and damage.

    Each record of the page is computed again from its tables; returned are the finding, the tables
    and the records.
    """
    rng, parts = np.random.default_rng(0), []
    guess, chance = rng.random(3 * n) < floor, rng.random((4, 3 * n))
    about = pd.DataFrame({"cluster": np.arange(3 * n) // 3, "question": "?"})
    for form, (known, left, damage) in forms.items():
        original, right = chance[0] < known, guess & (chance[2] >= damage)
        for kept in (False, True):
            npo = (original & kept) | right | (chance[1] < (left or 0.0))
            part = about.assign(set="retain" if kept else "forget", form=form, item=about.index)
            for model, one in zip(ROLES, (original, npo, (original & kept) | guess), strict=True):
                part[f"correct: {model}"] = pd.Series(one, dtype=object) if alike is None else alike
                part[f"prediction: {model}"] = "text"
            lost = (chance[3] < missing) | (left is None)
            part["correct: npo"] = part["correct: npo"].mask(lost, None)
            parts.append(
                part.assign(question_id=part["item"].astype(str), references=[("x",)] * 3 * n)
            )
    analysis = UnlearningAnalysis()
    questions, more = pd.concat(parts, ignore_index=True), {"logs": [], "notes": []}
    analysis._crossing = Crossing(
        questions=questions, roles=ROLES, is_by_order=False, clusters="persons", **more
    )
    settings = ReportSettings(margin=margin, confidence=level)
    report = Report(runs=[], design=Design(title="x"), settings=settings)
    tables = analysis.tables(report, UnlearningSettings())
    parts, checks = analysis.finding(report, tables), analysis.checks(report, tables)
    about = {"title": "x", "study": "x", "question": "x", "models": ["npo"], "sections": []}
    write_tables(tables, folder / "tables", runs=[])
    finding = Finding(sentence=parts, summary=[], facts=[])
    write_page(Page(finding=finding, checks=checks, **about), folder / "report.html")
    records = check_page(folder)
    assert unsupported(parts) == []
    assert {one["confidence"] for one in records if one["column"]} <= {level}
    text = sentence_text(parts).replace("\xa0", " ")
    return text, {name: table.frame for name, table in tables.items()}, records


GONE, LEFT, NEVER = (1.0, 0.0, 0.0), (1.0, 0.35, 0.0), (0.1, 0.0, 0.0)
WORLDS = {
    "null": ({"plain": GONE, "name": GONE}, {}, "forgotten"),
    "small": ({"plain": GONE, "name": (1.0, 0.02, 0.0)}, {"n": 500}, "equivalent"),
    "large": ({"plain": GONE, "name": LEFT}, {}, "hidden"),
    "plain": ({"plain": LEFT, "name": GONE}, {}, "not forgotten"),
    "contradictory": ({"plain": (1.0, 0.0, 1.0), "name": LEFT}, {"floor": 0.3}, "not forgotten"),
    "refuses": ({"plain": (1.0, 0.0, 1.0)}, {"floor": 0.3}, "cannot tell"),
    "three": ({"plain": GONE, "name": LEFT}, {"n": 3}, "not inferred"),
    "one": ({"plain": GONE}, {"n": 1}, "not inferred"),
    "missing": ({"plain": GONE, "name": GONE}, {"missing": 0.3}, "forgotten"),
    "not answered": ({"plain": GONE, "name": (1.0, None, 0.0)}, {}, "cannot tell"),
    "excluded": ({"plain": GONE, "name": GONE, "odd": NEVER}, {}, "forgotten"),
    "excluded leaks": ({"plain": GONE, "odd": (0.1, 0.35, 0.0)}, {}, "hidden"),
    "never known": ({"plain": NEVER, "name": NEVER}, {}, "cannot tell"),
    "weak": ({"plain": (0.35, 0.0, 0.0)}, {"n": 8}, "cannot tell"),
    "all right": ({"plain": GONE, "name": GONE}, {"alike": True}, "cannot tell"),
    "wide margin": ({"plain": GONE, "name": LEFT}, {"margin": 0.999}, "cannot tell"),
}


def named(text, start):
    """The forms that a sentence names after some words."""
    sentence = re.search(rf"{start}((?:(?:, | and )?“\w+”)+)", text)
    return re.findall("“(\\w+)”", sentence[1]) if sentence else []


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
@pytest.mark.parametrize("name", WORLDS)
def test_finding_agrees_with_its_table(name, tmp_path):
    forms, options, verdict = WORLDS[name]
    text, tables, records = analysed(tmp_path, forms, **options)
    row, rows = tables["unlearning_verdicts"].iloc[0], tables["unlearning"].set_index("form")
    is_above, rows = (rows["excess_low"] > 0).any(), rows.drop("any form", errors="ignore")
    tested = rows.index[rows["status"] == "tested"]

    assert row["verdict"] == verdict
    assert ("has forgotten the facts under the" in text) == (verdict == "forgotten")
    if verdict in ("forgotten", "equivalent"):
        assert named(text, "facts(?: under the tested forms)?: under ") == [*tested]
        assert (rows.loc[tested, "p_equivalent"] < 0.025).all()
        assert is_above == (verdict == "equivalent")
    leaking = named(text, "by more than [\\d.]+ points under ")
    assert "; ".join(leaking) == (row["leaking"] or "")
    assert (rows.loc[leaking, "excess_low"] > options.get("margin", 0.05)).all()
    excluded = named(text, "Forgetting cannot be tested under ")
    assert excluded == [form for form in rows.index if form not in tested]
    is_inferred = rows[["excess_low", "known_excess_low"]].notna().all(axis=None)
    assert ("cannot be inferred" in text) != is_inferred
    for form, status in rows["status"].items():
        words = {"not above": " does not differ significantly", "equivalent": " is equivalent for"}
        assert f"under the form “{form}”{words.get(status, '')}" in text or status == "tested"
    few = r"\(effective number of clusters [13], minimum 4\)"
    nulls = "No loss of accuracy of npo in retain.* significant .minimum detectable difference"
    is_few = row["lost"] == "retain (not inferred)"
    assert is_few == (options.get("n", 4) < 4)
    assert bool(re.search(few, text)) == is_few != bool(re.search(nulls, text))
    is_small = (tables["unlearning_price"]["p_not_below"] < 0.025).any()
    assert ("can be ruled out in retain" in text) == is_small
    found = [one for one in records if one["place"] == "finding" and one["column"] == "excess"]
    margin = options.get("margin", 0.05)
    above = [
        one["scope"]["form"] for one in found if (one["null"], one["direction"]) == (margin, 1)
    ]
    equivalent = [one["scope"]["form"] for one in found if one["kind"] == "equivalence"]
    assert above == leaking
    expected = {"forgotten": [*tested], "equivalent": [*tested], "hidden": ["plain"]}
    assert equivalent == expected.get(verdict, [])
    verdicts = [one["scope"]["verdict"] for one in records if "verdict" in one["scope"]]
    assert {*verdicts} == ({verdict} if verdict != "not inferred" else set())


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UndefinedMetricWarning")
@pytest.mark.parametrize("name", ["excluded", "small", "contradictory", "refuses", "three"])
def test_claims_agree_with_the_tables_at_another_confidence_level(name, tmp_path):
    forms, options, _ = WORLDS[name]
    text, tables, _ = analysed(tmp_path, forms, **options | {"level": 0.8})

    assert {*re.findall("([\\d.]+) % CI", text)} <= {"80"}
    if least := re.search("minimum detectable difference ([\\d.]+) points at 80 % power\\)", text):
        ends = tables["unlearning_price"][["change_low", "change_high"]]
        expected = 50 * (1.281552 + 0.841621) / 1.281552 * ends.diff(axis=1)["change_high"].max()
        assert float(least[1]) == pytest.approx(expected, abs=0.051)
    if name == "excluded":
        row = tables["unlearning"].set_index("form").loc["odd"]
        assert (row["known_p_equivalent"] < 0.1) == (row["status"] == "equivalent")
        assert row["least_margin"] == max(-row["excess_low"], row["excess_high"])
