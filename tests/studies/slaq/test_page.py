"""What stands on the page of SLAQ runs."""

import dataclasses

import pandas as pd
import pytest

from surface_consistency.cli.main import main
from surface_consistency.engine.design import Report
from surface_consistency.engine.report import _check_tables
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import UnscoredWarning
from surface_consistency.report.page import Answers, ForestPlot, Lines, Matrix, MosaicPlots
from surface_consistency.runs.loader import load_runs
from surface_consistency.studies.slaq.judges import matcher_agreement
from surface_consistency.studies.slaq.study import SlaqStudy
from surface_consistency.tables.numbers import Value


def page_of(*folders, **settings):
    """The page of run folders, and its tables."""
    study = SlaqStudy()
    runs = load_runs([folder.path for folder in folders], outcome=study.records.outcome)
    chosen = ReportSettings(resamples=100, **settings)
    report = Report(runs=runs, design=study.design, settings=chosen, cluster="topic_id")
    tables = study.report.compute(report)
    return study.report.page(report, tables), tables


def blocks(page, kind):
    """All blocks of a kind."""
    return [block for part in page.sections for block in part.blocks if isinstance(block, kind)]


def values(item):
    """All numbers of a part of the page."""
    if isinstance(item, Value):
        return [item.value]
    if dataclasses.is_dataclass(item):
        item = [getattr(item, field.name) for field in dataclasses.fields(item)]
    if isinstance(item, list | tuple):
        return [number for part in item for number in values(part)]
    return []


def text(parts):
    """The words of a sentence."""
    return "".join(part if isinstance(part, str) else "#" for part in parts)


def test_a_page_holds_every_section(make_slaq_run):
    page, tables = page_of(make_slaq_run("x", model="a"), make_slaq_run("y", model="b"))

    anchors = [section.anchor for section in page.sections]
    first = ["squares", "momentum", "topic", "flips", "numbers", "contrasts", "answers"]
    assert anchors[:7] == first
    assert len(anchors) == len(set(anchors))
    names = [lines.name for lines in blocks(page, Lines)]
    assert names[:2] == ["slots-1", "slots-2"]
    assert names[2:] == [
        f"momentum-{kind}-{n}" for n in (1, 2) for kind in ("correct", "incorrect")
    ]
    assert len(blocks(page, MosaicPlots)[0].squares) == 2
    assert page.models == ["a", "b"]
    chart = next(dots for dots in blocks(page, ForestPlot) if dots.name == "alignment")
    assert [label for label, _, _ in chart.rows] == ["F_S", "F_L", "alignment"]
    shown = tables["overall"].frame[["first_accuracy", "second_accuracy", "consistency"]]
    assert [values(dots) for _, _, dots in chart.rows] == shown.to_numpy().T.tolist()


def test_numbers_are_those_of_the_tables(make_slaq_run):
    page, tables = page_of(make_slaq_run("x"))

    row = tables["overall"].frame.iloc[0]
    [square] = blocks(page, MosaicPlots)[0].squares
    cells = ("both", "first_only", "second_only", "neither")
    assert [getattr(square, name) for name in cells] == [row[name] for name in cells]
    facts = {name: value.value for name, value, _ in square.facts}
    assert facts["alignment"] == row["consistency"]
    assert facts["long minus short"] == row["accuracy_difference"]
    slots = blocks(page, Lines)[0]
    assert values(slots.series) == tables["position"].frame["accuracy"].tolist()
    assert slots.reference[1].value == row["first_accuracy"]
    curve = next(lines for lines in blocks(page, Lines) if lines.name == "momentum-correct-1")
    table = tables["momentum"].frame
    rows = table[(table["null"] == "topic-and-slot") & (table["streak"] == 1) & (table["n"] > 0)]
    assert [point.x for point in curve.series[0].points] == rows["length"].tolist()
    assert values(curve.series) == rows["probability"].tolist()
    names = ["length", *(f"null_probability{end}" for end in ("_low", "", "_high"))]
    assert [list(step) for step in curve.band] == rows[names].to_numpy(float).tolist()


def test_one_topic_stands_in_all_its_orders(make_slaq_run):
    folder = make_slaq_run("x")
    page, _ = page_of(folder)

    [matrix] = blocks(page, Matrix)
    frame = pd.read_parquet(folder.outcomes)
    targets = folder.read_plan()[0].drop_duplicates("fact_id").set_index("fact_id")
    references = targets["answers"].str[0]
    assert len(matrix.columns) == len(matrix.rows) == 5
    topics = []
    for number, (_, cells) in enumerate(matrix.rows):
        found = frame[(frame["permutation"] == number)]
        by_slot = found.assign(said=found["fact_id"].map(references))
        match = by_slot.groupby("topic_id")[["slot", "said"]].apply(
            lambda rows, cells=cells: (
                rows.sort_values("slot")["said"].tolist() == [cell[0] for cell in cells]
            )
        )
        topics.append(match.idxmax())
        assert match.sum() == 1
        remarks = {"both": "stated", "first_only": "lost", "neither": "never correct"}
        assert all(remarks.get(cell, remark) == remark for _, remark, cell in cells)
    assert len(set(topics)) == 1


def test_answers_show_question_reference_and_slot(make_slaq_run):
    attack = '<script>alert("x")</script> & 結果'
    page, _ = page_of(make_slaq_run("x", answer=attack, free=True), answers=40)

    [answers] = blocks(page, Answers)
    assert len(answers.answers) == 40
    assert answers.n_pairs == {0: 6 * 5 * 6}
    assert {answer.answers for answer in answers.answers} == {(attack, attack)}
    assert {answer.surfaces[0] for answer in answers.answers} == {"short answer"}
    assert {"free form", "slot 1 of 5"} <= {answer.surfaces[1] for answer in answers.answers}
    assert all(answer.question.endswith("?") and answer.accepted for answer in answers.answers)
    assert answers.filters == ["category", "popularity", "is_entity", "condition"]
    assert {answer.labels["is_entity"][0] for answer in answers.answers} <= {
        "named entity",
        "description",
    }
    page, _ = page_of(make_slaq_run("y"), answers=0)
    assert not blocks(page, Answers)


def test_free_form_and_gaps_are_shown(make_slaq_run, coin):
    with pytest.warns(UnscoredWarning, match="answers have no verdict"):
        folder = make_slaq_run("x", free=True, judge=coin(unjudged=("long",)), permutations=3)
    study = SlaqStudy()
    runs = load_runs([folder.path], outcome=study.records.outcome)
    settings = ReportSettings(resamples=50)
    report = Report(runs=runs, design=study.design, settings=settings, cluster="topic_id")
    tables = {**study.report.compute(report), **_check_tables(runs)}

    page = study.report.page(report, tables)

    anchors = [section.anchor for section in page.sections]
    assert "recall" in anchors
    assert "momentum" not in anchors
    assert anchors[-1] == "check-tables"
    assert not blocks(page, Lines)
    told = {check.title: text(check.text) for check in page.checks}
    assert "Run a multiple of five orders" in told["No curve by slot"]
    assert "pairs have no score" in told["Missing scores"]
    assert "90 answers: the judge's reply cannot be read" in told["Not scored"]
    assert tables["overall"].frame["n"].tolist() == [0, 30]
    assert ("orders", "3") in page.finding.facts
    # So few topics give the noise floor no interval, without which it is not quoted.
    assert page.finding.summary == []


def test_a_page_says_beside_its_finding_how_far_its_matcher_errs(make_slaq_run, score):
    """The measured error stands where the numbers are quoted; other judges have none there."""
    folder = make_slaq_run("matched", answer="Cassini or Newton", limit=3)
    score(folder, all_facts=True)
    found = matcher_agreement()

    page, tables = page_of(folder)

    words = "".join(part for part in page.finding.summary if isinstance(part, str))
    assert "string matcher (matcher:boundary)" in words
    assert f"On {found['n']:,} labelled facts" in words
    assert f"{found['false_positives']:,} of" in words
    assert found["accuracy"] in values(page.finding)
    rows = tables["same_answer"].frame.set_index("among")
    assert rows.loc["all", "n"] > 0


def test_two_runs_of_the_study_are_two_conditions(make_slaq_run, tmp_path, capsys):
    """The panel of the study is the condition that the compared runs have a column for."""
    runs = [str(make_slaq_run(name, model=name).path) for name in "ab"]

    assert main(["compare", *runs, "--out", str(tmp_path / "compared"), "--resamples", "200"]) == 0

    assert (tmp_path / "compared" / "report.html").is_file()
