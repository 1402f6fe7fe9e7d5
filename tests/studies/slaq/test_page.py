"""The page of SLAQ runs."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from surface_consistency.cli.main import main
from surface_consistency.engine.design import Report
from surface_consistency.engine.report import _check_tables
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import UnscoredWarning
from surface_consistency.report.page import Lines
from surface_consistency.runs.loader import load_runs
from surface_consistency.studies.slaq.judges import matcher_agreement
from surface_consistency.studies.slaq.page import _details
from surface_consistency.studies.slaq.study import SlaqStudy
from surface_consistency.tables.numbers import Value, sentence_text
from surface_consistency.tables.sentences import paragraph


def page_of(folder):
    """Return the page of a run folder, and its tables."""
    study = SlaqStudy()
    runs = load_runs([folder.path], outcome=study.records.outcome)
    settings = ReportSettings(resamples=50)
    report = Report(runs=runs, design=study.design, settings=settings, cluster="topic_id")
    tables = study.report.compute(report) | _check_tables(runs)
    return study.report.page(report, tables), tables


def test_free_form_and_gaps_are_shown(make_slaq_run, coin):
    with pytest.warns(UnscoredWarning, match="answers have no score"):
        folder = make_slaq_run("x", free=True, judge=coin(unjudged=("long",)), permutations=3)

    page, tables = page_of(folder)

    anchors = [section.anchor for section in page.sections]
    assert "recall" in anchors
    assert "momentum" not in anchors
    assert anchors[-1] == "check-tables"
    assert not any(isinstance(block, Lines) for part in page.sections for block in part.blocks)
    shown = {check.title: "".join(map(str, check.text)) for check in page.checks}
    assert "Run a multiple of five balanced orders" in shown["No curve by slot"]
    assert "pairs have no score" in shown["Missing scores"]
    assert "90 facts in short and long answers have no score" in shown["Not scored"]
    assert "By reason, 90: the judge's reply cannot be read." in shown["Not scored"]
    assert tables["overall"].frame["n"].tolist() == [0, 30]
    assert ("orders", "3") in page.finding.facts
    # With few topics the noise floor has no interval and is not quoted.
    assert page.finding.summary == []


def test_curves_equal_the_tables(make_slaq_run):
    page, tables = page_of(make_slaq_run("x"))

    blocks = [block for part in page.sections for block in part.blocks]
    curves = {block.name: block for block in blocks if isinstance(block, Lines)}
    drawn = {
        name: [(point.x, point.value.value) for point in curve.series[0].points]
        for name, curve in curves.items()
    }
    slots, momentum = tables["position"].frame, tables["momentum"].frame
    assert drawn["slots-1"] == list(zip(slots["slot"], slots["accuracy"], strict=True))
    assert slots["accuracy"].nunique() > 1
    short = curves["slots-1"].reference[1].value
    assert short == tables["overall"].frame["first_accuracy"].iloc[0]
    for streak, kind in ((1, "correct"), (0, "incorrect")):
        name = f"momentum-{kind}-1"
        is_drawn = (momentum["null"] == "topic-and-slot") & (momentum["streak"] == streak)
        rows = momentum[is_drawn & (momentum["n"] > 0)]
        assert drawn[name] == list(zip(rows["length"], rows["probability"], strict=True))
        band = rows[["length", *(f"null_probability{end}" for end in ("_low", "", "_high"))]]
        np.testing.assert_array_equal(curves[name].band, band)


def test_page_reports_the_errors_of_the_matcher_next_to_the_finding(make_slaq_run, score):
    """The measured errors are next to the numbers; other judges do not have them there."""
    folder = make_slaq_run("matched", answer="Cassini or Newton", limit=3)
    score(folder, all_facts=True)
    found = matcher_agreement()

    page, tables = page_of(folder)

    words = "".join(part for part in page.finding.summary if isinstance(part, str))
    assert "string matcher that scored m (matcher:boundary)" in words
    assert f"of {found['n']:,} labelled facts" in words
    assert f"{found['false_positives']:,} of" in words
    numbers = [part.value for part in page.finding.summary if isinstance(part, Value)]
    assert found["accuracy"] in numbers
    rows = tables["same_answer"].frame.set_index("among")
    assert rows.loc["all", "n"] > 0


def test_two_runs_of_the_study_are_compared_as_two_conditions(make_slaq_run, tmp_path, capsys):
    """The panel of the study is the condition for which the compared runs have a column."""
    runs = [str(make_slaq_run(name, model=name).path) for name in "ab"]

    assert main(["compare", *runs, "--out", str(tmp_path / "compared")]) == 0

    assert (tmp_path / "compared" / "report.html").is_file()


def test_short_and_long_answers_are_the_same_by_the_rule_and_not_by_their_words():
    """A short answer and a sentence rarely have the same words."""
    rates = {"same_answer": 0.0, "same_answer_low": 0.0, "same_answer_high": 0.08}
    rates |= {"same_by_rule": 0.75, "same_by_rule_low": 0.6, "same_by_rule_high": 0.9}
    frame = pd.DataFrame([{"model": "m", "among": "both wrong", "n": 40, "n_clusters": 20} | rates])
    words = {"clusters": "topics", "confidence": 0.95}
    report = SimpleNamespace(words=words, facet=None, design=SlaqStudy.design)

    sentences = list(
        _details(report, {"same_answer": SimpleNamespace(frame=frame)}, {"model": "m"})
    )

    shown = sentence_text(paragraph(sentences)).replace("\xa0", " ")
    assert shown == (
        "The proportion of answers of m that are the same by the comparison rule among pairs "
        "incorrect under both conditions is 75.0 % (95 % CI 60.0 to 90.0; 40 pairs, 20 topics)."
    )
