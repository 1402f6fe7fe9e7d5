"""The page of audits: the finding, states, squares, origins, traces and guards."""

import pandas as pd
import pytest

from surface_consistency.engine.report import build_page
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import SourceNotFoundError
from surface_consistency.report.page import AlluvialPlot, MosaicPlots, Prose, StackedBars
from surface_consistency.studies.audit import AuditStudy
from surface_consistency.studies.audit.tables import audit_tables
from surface_consistency.tables.numbers import Claim, Value
from surface_consistency.tables.table import Table
from tests.studies.audit.conftest import make_outcomes, random_outcomes

FEW = ReportSettings(resamples=100, answers=10)


def page_of(*folders):
    return build_page(folders, study=AuditStudy(), settings=FEW)[0]


def words(parts):
    """Join words and numbers, with rates in percent."""
    return "".join(
        f"{100 * part.value:.1f} %" if isinstance(part, Value) else part
        for part in parts
        if not isinstance(part, Claim)
    )


def check_texts(page, level="warning"):
    return [words(check.text) for check in page.checks if check.level == level]


def blocks(page, anchor, kind):
    (section,) = [section for section in page.sections if section.anchor == anchor]
    return [block for block in section.blocks if isinstance(block, kind)]


@pytest.fixture
def checks():
    """Checks of a run in which every guard has a finding."""
    found = [("sports/base", 125, 6, 6, 5, 0.008, 0.008, True)]
    found += [("released", 6, 6, 0, 0, 0.46, 0.1, False)]
    names = ["database", "n", "n_cells", "n_near_zero", "n_equal", "full_accuracy"]
    names += ["del_on_accuracy", "is_contaminated"]
    bases, lost = ["countries/base", "sports/base"], {"n_prompts": 100, "n_missing": 3}
    left = {"n_items": 20, "n_absent": 1, "n_shared_surface": 19, "n_shared_by_punctuation": 18}
    left |= {"n_other_objects": 5, "n_echoing": 2}
    contents = {"content": "a" * 64, "retriever_content": ["a" * 64, "b" * 64]}
    contents |= {"n_facts": 180, "n_unlinked": 80}
    return {
        "contamination": pd.DataFrame(found, columns=names),
        "databases": pd.DataFrame({"database": bases, "same_content_as": bases[::-1], **contents}),
        "fit": pd.DataFrame([{"database": "released", "style": "cloze", **lost}]),
        "closure": pd.DataFrame([{"database": "countries/base", **left}]),
    }


def quiet(checks):
    """The same checks without findings."""
    return {
        "contamination": checks["contamination"].iloc[1:],
        "databases": checks["databases"].iloc[:1].assign(same_content_as="", n_unlinked=0),
        "fit": checks["fit"].assign(n_missing=0),
        "closure": checks["closure"].assign(
            n_absent=0, n_shared_surface=0, n_other_objects=0, n_echoing=0
        ),
    }


def test_checks_report_the_findings_of_the_guards(audit_run, checks):
    frame = random_outcomes(6, seed=1)
    frame.loc[0, "second_correct"] = pd.NA
    folder = audit_run(frame, checks=checks)

    page = page_of(folder)

    found = " ".join(check_texts(page))
    for expected in (
        "sports/base: of 125 prompts, 1 are answered correctly with the full database and 1 after",
        "countries/base, sports/base contain the same entries",
        "sports/base was searched by a retriever over other content (bbbbbbbbbbbb, not aaaa",
        "released, cloze: the database lacks the facts of 3 of 100 prompts",
        "the correct answers of 19 remain in the database under another relation of the same "
        "subject (18 of them only without punctuation",
        "1 deletions delete nothing",
        "5 have further objects under the same subject and relation",
        "2 correct answers contain their subject",
        "1 of 72 prompts have no score under DEL-OFF",
        "countries/base has 80 of 180 facts without a known base fact",
        "no prompt has two scored answers",
    ):
        assert expected in found
    assert "released: of" not in found
    levels = [check.level for check in page.checks]
    assert levels == sorted(levels, reverse=True)


def test_checks_report_guards_without_findings_and_guards_not_run(audit_run, checks):
    (fine,) = check_texts(page_of(audit_run([{}, {}], checks=quiet(checks))), "ok")
    page = page_of(audit_run([{}, {}], "bare"))

    on_page = " ".join(check_texts(page))
    assert fine.startswith("toy_model: FULL is neither near zero nor equal to DEL-ON")
    assert "not checked, since the run has no such table: contamination, databases" in on_page
    assert not check_texts(page, "ok")


@pytest.mark.parametrize(
    ("name", "values", "shown"),
    [
        ("retriever", (["minilm"], ["bm25"]), ["minilm", "bm25"]),
        ("threshold", ([0.5], [None]), ["0.5", "none"]),
    ],
)
def test_several_runs_are_compared(audit_run, name, values, shown):
    """They are labelled by the settings that differ."""
    frames = [random_outcomes(4, seed=k) for k in range(2)]
    folders = [
        audit_run(frame, f"run-{k}", settings={name: value})
        for k, (frame, value) in enumerate(zip(frames, values, strict=True))
    ]

    page, tables, _ = build_page(folders, study=AuditStudy(), settings=FEW)

    assert page.models == [f"toy_model ({name} {value})" for value in shown]
    captions = [table.caption for table in blocks(page, "numbers", Table)]
    assert captions[:3] == [
        "Settings in which the runs differ",
        "What survives deletion, by retriever and threshold",
        "Models on the pairs that both answered",
    ]
    assert tables["settings"].frame[name].tolist() == shown
    assert tables["by_topology"].frame["model"].nunique() == 2
    bars = {one.name: one for one in blocks(page, "origins", StackedBars)}
    assert [row[0] for row in bars["deletion-by-model"].rows] == page.models
    # States and squares agree with counting.
    flows = blocks(page, "states", AlluvialPlot)
    everything, given = (group.squares for group in blocks(page, "squares", MosaicPlots))
    for frame, flow, whole, known in zip(frames, flows, everything, given, strict=True):
        full, on, off = (
            frame[f"{one}_correct"].astype(bool) for one in ("full", "first", "second")
        )
        assert [state for state, _, _ in flow.states] == ["FULL", "DEL-ON", "DEL-OFF"]
        assert flow.counts[True, True, False] == (full & on & ~off).sum()
        assert sum(flow.counts.values()) == len(frame)
        assert whole.first_only == (on & ~off).sum()
        assert known.both == (full & on & off).sum()
        assert known.first_only == (full & on & ~off).sum()
        assert known.second_only == (full & ~on & off).sum()
        assert known.neither == (full & ~on & ~off).sum()


def test_page_reports_that_no_fact_survived_or_that_the_run_is_missing(audit_run):
    gone = audit_run([{"first_correct": True}], "gone", "gone")
    page = page_of(audit_run([{}, {}], "nothing", "nothing"), gone)

    expected = [words(block.parts) for block in blocks(page, "traces", Prose)]

    assert expected[0] == "nothing: no answer was correct with retrieval on after deletion."
    assert "has no targets.parquet" in expected[1]


def test_states_that_were_not_run_are_reported(audit_run):
    rows = [{"second_correct": None, "second_f1": None, "second_prediction": None}] * 3
    page = page_of(audit_run(rows))

    assert "DEL-OFF was not run" in words(page.finding.sentence)
    assert any("DEL-OFF was not run" in text for text in check_texts(page))
    (flow,) = blocks(page, "states", AlluvialPlot)
    assert [state for state, _, _ in flow.states] == ["FULL", "DEL-ON"]
    assert not blocks(page, "squares", MosaicPlots)
    names = [bars.name for bars in blocks(page, "origins", StackedBars)]
    assert not any(name.startswith("deletion") for name in names)
    titles = {column.title for column in blocks(page, "numbers", Table)[0].columns}
    assert {"n FULL", "n DEL-ON", "n DEL-OFF"} <= titles


def test_bars_agree_with_the_published_counts(audit_run, data_files):
    """Figures 3 and 7 by topology: L + R and the discordant pairs b and c."""
    rows = []
    for cell in pd.read_csv(data_files / "golden" / "audit_contingencies.csv").itertuples():
        topology = cell.variant.lower()
        expected = {"database": f"{cell.domain}/{topology}", "domain": cell.domain}
        expected |= {"topology": topology, "style": cell.prompt_style}
        for name, on, off in (("a", 1, 1), ("b", 1, 0), ("c", 0, 1), ("d", 0, 0)):
            right = {"first_correct": bool(on), "second_correct": bool(off)}
            rows += [expected | right] * getattr(cell, name)
    frame = make_outcomes([{}]).iloc[[0] * len(rows)].reset_index(drop=True)
    ids = frame.index.astype(str)
    frame = frame.assign(**pd.DataFrame(rows), pair=ids, item=ids, base_fact=ids).astype(
        {"first_correct": "boolean", "second_correct": "boolean"}
    )

    table = audit_tables(frame)["by_topology"].set_index("topology")
    drawn = {
        row[0]: row[2]
        for block in blocks(page_of(audit_run(frame, model="lmlm")), "origins", StackedBars)
        if block.name == "deletion-by-topology"
        for row in block.rows
    }

    # Published metrics, recomputed: L + R by topology (arXiv 2607.00605, figure 3).
    stacks = {"base": 3.698, "alias": 6.250, "collision": 7.169, "noise": 13.558, "released": 0.667}
    for topology, stack in stacks.items():
        row = table.loc[topology]
        assert 100 * (row["leakage"] + row["retrieval_mediated"]) == pytest.approx(stack, abs=5e-4)
        assert drawn[topology][:3] == row[["both", "first_only", "second_only"]].tolist()
    assert drawn["noise"][1:3] == [418, 3]
    assert table.loc["noise", "artifact_rate"] == pytest.approx(420 / 3120)
    assert table.loc["released", "mcnemar_p_value"] == pytest.approx(0.125)
    released = table.loc["released"]
    assert released["p_value"] == pytest.approx(0.0454, abs=1e-4)
    assert released["retrieval_effect_high"] * released["retrieval_effect_low"] > 0.0
    counts = audit_tables(frame.head(50))["attribution"]
    assert not counts["count"].any()


def test_unattributed_answers_have_no_origins(audit_run):
    untraced = {"gold_retrieved": None, "n_lookups": None}
    page = page_of(audit_run([{"first_correct": True, **untraced}, untraced]))

    assert "artifact_rate" not in blocks(page, "numbers", Table)[0].frame
    assert "origins" not in [bars.name for bars in blocks(page, "origins", StackedBars)]


def test_the_folder_of_a_sweep_names_its_runs(audit_run):
    folder = audit_run([{}], "sweep/fuzzy-0.5")

    with pytest.raises(SourceNotFoundError, match=r"contains several: give .*fuzzy-0\.5"):
        page_of(folder.parent)
