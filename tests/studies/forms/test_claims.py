"""Simulated studies of forms: each record of a page is in its tables and was simulated."""

import re

import numpy as np
import pandas as pd
import pytest

from surface_consistency.engine.design import Report
from surface_consistency.engine.report import write_tables
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.report.html import write_page
from surface_consistency.studies.forms import FormsStudy
from surface_consistency.tables.numbers import sentence_text
from tests.claims import check_page, unsupported
from tests.studies.test_null_worlds import logistic, report

pytestmark = pytest.mark.filterwarnings(
    "ignore::surface_consistency.errors.SurfaceConsistencyWarning"
)
FORMS = ("plain", "polite", "terse", "long", "odd")
REASON = "at least 4 forms are needed for an interval of forms like these"
LARGE = {"terse": -2.0}


def outcomes(*, n=400, forms=FORMS, missing=0.0, never=(), item=2.0, seed=0, **effects):
    """Draw correctness of items by forms, each form with an effect on the logit."""
    rng = np.random.default_rng(seed)
    ability = item * rng.normal(size=(n, 1))
    effect = np.array([effects.get(form, 0.0) for form in forms])
    correct = (rng.random((n, len(forms))) < logistic(ability + effect)).astype(object)
    correct[rng.random(correct.shape) < missing] = None
    correct[:, [forms.index(form) for form in never]] = None
    sides = {"item": [f"i{k}" for k in range(n)], "first_correct": correct[:, 0]}
    parts = [
        pd.DataFrame({**sides, "second_condition": form, "second_correct": correct[:, place]})
        for place, form in enumerate(forms)
        if place
    ]
    frame = pd.concat(parts, ignore_index=True)
    same = {"first_condition": forms[0], "sample": 1, "wordings": "shared", "is_same_answer": True}
    names = ("first_prediction", "second_prediction", "first_surface", "second_surface")
    texts = dict.fromkeys(names, "text")
    none = dict.fromkeys(("kind", "relation"))
    frame = frame.assign(pair=frame["item"] + frame["second_condition"], **same, **texts, **none)
    return frame.assign(cluster=frame["item"], item_cluster=frame["item"])


def page_of(folder, *frames, level=0.9, margin=0.1):
    """Write the page of a simulation, and compute each of its records again from its tables."""
    study = FormsStudy()
    made = report(study, *frames[:1], "cluster", *frames[1:])
    settings = ReportSettings(answers=0, margin=margin, confidence=level)
    made = Report(runs=made.runs, design=study.design, settings=settings, cluster="cluster")
    tables = study.report.compute(made)
    page = study.report.page(made, tables)
    write_tables(tables, folder / "tables", runs=made.runs)
    write_page(page, folder / "report.html")
    records = check_page(folder)
    assert unsupported(page.finding.sentence) == unsupported(page.finding.summary) == []
    assert {one["confidence"] for one in records if one["column"]} <= {level}
    parts = [page.finding.sentence, page.finding.summary, *(check.text for check in page.checks)]
    text = " ".join(map(sentence_text, parts)).replace("\xa0", " ")
    assert {*re.findall(r"([\d.]+) % CI", text)} <= {f"{100 * level:g}"}
    return text, tables, records, page


INTERVALS = {
    "forms": "consistency",
    "variance": "share",
    "form_pairs": "agreement",
    "form_answers": "same_answer",
}
WORLDS = {
    "null": ({}, {}),
    "small": ({"terse": -0.15}, {}),
    "large": (LARGE, {"terse": -1}),
    "contradictory": ({"terse": -2.0, "odd": 2.0}, {"terse": -1, "odd": 1}),
    "few": ({"n": 3, "terse": -9.0}, None),
    "one": ({"n": 1}, None),
    "missing": ({"missing": 0.3, **LARGE}, {"terse": -1}),
    "two": ({"forms": ("plain", "terse"), **LARGE}, {"terse": -1}),
    "never": ({"never": ("odd",), **LARGE}, {"terse": -1}),
    "reference never": ({"never": ("plain",), **LARGE}, {}),
}
"""Options of each simulation, and the forms with a simulated difference from the reference."""


@pytest.mark.parametrize("name", WORLDS)
def test_page_reports_the_planted_forms_at_its_confidence_level(name, tmp_path):
    options, planted = WORLDS[name]
    text, tables, records, page = page_of(tmp_path, outcomes(**options))
    rows = tables["by_form"].frame.set_index("form")
    found = {
        one["scope"]["form"]: one["direction"]
        for one in records
        if one["column"] == "accuracy_difference" and one["kind"] == "difference"
    }
    alike = [one["scope"]["form"] for one in records if one["kind"] == "equivalence"]

    directions = {form: sign for form, sign in found.items() if sign}
    assert directions == (planted or {}) or (name == "small" and directions == {"terse": -1})
    assert alike == [*rows.index[rows["p_equivalent_holm"] < 0.05]]
    assert {*alike}.isdisjoint(planted or {})
    if planted is None:
        assert re.search("consistency .* cannot be inferred: [13] items? (is|are) too few", text)
        assert found == {}
        return
    like = tables["forms"].frame.iloc[-1]
    is_few = len({*options.get("forms", FORMS)} - {*options.get("never", ())}) < 4
    assert np.isnan(like["consistency_low"]) == is_few == (REASON in text)
    titles = [check.title for check in page.checks]
    assert ("No interval for forms like these" in titles) == is_few
    assert "for other forms like these" in text
    assert "too few" not in text
    lost = {"never": {"odd"}, "reference never": {*FORMS[1:]}}.get(name, set())
    assert ("Forms without scored answers" in titles) == bool(lost)
    assert {*rows.index[rows["n"] == 0]} == lost
    scored = 4 if "never" in name else len(options.get("forms", FORMS))
    assert tables["spread"].frame["n_forms"].tolist() == [scored]
    assert ("Unequal numbers of forms" in titles) == (name == "missing")
    if name == "null":
        assert {*alike} == {*FORMS[1:]}


def test_page_names_at_most_six_equivalent_forms_and_counts_all(tmp_path):
    """Seven forms have the accuracy of the reference, one more than the maximum of the page."""
    forms = tuple(f"form {place}" for place in range(8))
    text, _, records, _ = page_of(tmp_path, outcomes(forms=forms, n=800), margin=0.2)

    named = [one["scope"]["form"] for one in records if one["kind"] == "equivalence"]
    assert named == [*forms[1:7]]
    assert "statistically significant for 7 of 7 other forms" in text


def test_forms_without_scores_are_not_counted_as_sampled_forms(tmp_path):
    frame = outcomes(never=("odd",))
    _, tables, _, _ = page_of(tmp_path, frame)
    assert "all_correct_of" not in tables["forms"].frame

    is_lost = (frame["item"] == "i0") & (frame["second_condition"] == "long")
    frame.loc[is_lost, "second_correct"] = None
    _, tables, _, _ = page_of(tmp_path, frame)
    heads = {column.key: column.title for column in tables["forms"].columns}
    assert heads["all_correct_of"] == "Correct in 3"
    assert "from 3 to 4 scored forms" in tables["forms"].note


def test_models_are_compared_at_the_confidence_level_of_the_report(tmp_path):
    frames = outcomes(n=300), outcomes(n=300, item=6.0, seed=1)
    text, tables, records, _ = page_of(tmp_path, *frames, margin=None)
    (claimed,) = [one for one in records if one["column"] == "difference"]
    row = tables["models_forms"].frame.query("rate == 'consistency'").iloc[0]
    assert claimed["estimate"] == pytest.approx(row["difference"])
    assert claimed["direction"] == np.sign(row["difference_low"]) == np.sign(row["difference_high"])
    assert "quivalen" not in text


def test_confidence_level_determines_filled_markers_and_interval_widths(tmp_path):
    frame = outcomes(terse=-0.8)
    filled, widths = {}, {}
    for level in (0.9, 1.0 - 1e-12):
        _, tables, _, page = page_of(tmp_path / f"{level}", frame, level=level)
        blocks = [block for one in page.sections for block in one.blocks]
        (chart,) = [one for one in blocks if getattr(one, "name", "") == "accuracy-form"]
        dots = [dot for _, _, row in chart.rows for dot in row]
        filled[level] = sum(dot.is_certain for dot in dots)
        widths[level] = [
            tables[name].frame.filter(regex=f"^{column}_(low|high)$").iloc[0].diff().iloc[1]
            for name, column in INTERVALS.items()
        ]
    assert [*filled.values()] == [1, 0]
    narrow, wide = widths.values()
    assert all(one < other for one, other in zip(narrow, wide, strict=True))
