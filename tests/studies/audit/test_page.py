"""The page of audits: the finding, states, squares, origins, traces and guards."""

import dataclasses

import pandas as pd
import pytest

from surface_consistency.engine.report import build_page
from surface_consistency.engine.settings import ReportSettings
from surface_consistency.errors import SourceNotFoundError
from surface_consistency.report.page import AlluvialPlot, MosaicPlots, Prose, StackedBars, Trace
from surface_consistency.studies.audit import AuditStudy
from surface_consistency.studies.audit.page import _score_charts
from surface_consistency.studies.audit.tables import audit_tables, baseline_checks
from surface_consistency.tables.numbers import Value, format_cell
from surface_consistency.tables.table import Table

FEW = ReportSettings(resamples=100, answers=10)


def page_of(*folders, settings=FEW):
    return build_page(folders, study=AuditStudy(), settings=settings)[0]


def tables_of(*folders):
    return build_page(folders, study=AuditStudy(), settings=FEW)[1]


def words(parts):
    """Set words and numbers in a row, rates in percent."""
    return "".join(
        f"{100 * part.value:.1f} %" if isinstance(part, Value) else part for part in parts
    )


def check_texts(page, level="warning"):
    return [words(check.text) for check in page.checks if check.level == level]


def blocks(page, anchor, kind):
    (section,) = [section for section in page.sections if section.anchor == anchor]
    return [block for block in section.blocks if isinstance(block, kind)]


def rows_of(table):
    return table.frame.to_dict("records")


@pytest.fixture
def checks():
    """Checks of a run whose every guard has something to say."""
    return {
        "contamination": pd.DataFrame(
            [
                {"database": "sports/base", "n": 125, "n_cells": 6, "n_near_zero": 6, "n_equal": 5}
                | {"full_accuracy": 0.008, "del_on_accuracy": 0.008, "is_contaminated": True},
                {"database": "released", "n": 6, "n_cells": 6, "n_near_zero": 0, "n_equal": 0}
                | {"full_accuracy": 0.46, "del_on_accuracy": 0.1, "is_contaminated": False},
            ]
        ),
        "databases": pd.DataFrame(
            {
                "database": ["countries/base", "sports/base"],
                "content": ["a" * 64, "a" * 64],
                "retriever_content": ["a" * 64, "b" * 64],
                "same_content_as": ["sports/base", "countries/base"],
            }
        ),
        "fit": pd.DataFrame(
            {"database": ["released"], "style": ["cloze"], "n_prompts": [100], "n_missing": [3]}
        ),
        "closure": pd.DataFrame(
            {
                "database": ["countries/base"],
                "n_facts": [20],
                "n_absent": [1],
                "n_shared_surface": [19],
                "n_shared_by_punctuation": [18],
                "n_other_objects": [5],
                "n_echoing": [2],
            }
        ),
    }


def quiet(checks):
    """The same checks where no guard has anything to say."""
    return {
        "contamination": checks["contamination"].iloc[1:],
        "databases": checks["databases"].iloc[:1].assign(same_content_as=""),
        "fit": checks["fit"].assign(n_missing=0),
        "closure": checks["closure"].assign(
            n_absent=0, n_shared_surface=0, n_other_objects=0, n_echoing=0
        ),
    }


def test_checks_tell_what_the_guards_found(audit_run, random_audit, audit_manifest, checks):
    frame = random_audit(6, seed=1)
    frame.loc[0, "second_correct"] = pd.NA
    folder = audit_run("run", frame, audit_manifest(), checks=checks)

    page = page_of(folder)

    found = " ".join(check_texts(page))
    for said in (
        "sports/base: of 125 prompts, 1 are answered correctly with the full database and 1 after",
        "countries/base, sports/base contain the same entries",
        "sports/base was searched by a retriever over other content (bbbbbbbbbbbb, not aaaa",
        "released, cloze: the database lacks the facts of 3 of 100 prompts",
        "the correct answers of 19 remain in the database under another relation of the same "
        "subject (18 of them only without punctuation",
        "1 deletions delete nothing",
        "5 have further objects under the same subject and relation",
        "2 correct answers contain their subject",
        "1 of 72 facts have no score under DEL-OFF",
        "no prompt has two scored answers",
    ):
        assert said in found
    assert "released: of" not in found
    assert [check.level for check in page.checks] == sorted(
        (check.level for check in page.checks), reverse=True
    )


def test_every_table_says_that_a_closure_was_incomplete(audit_run, audit_frame, audit_manifest):
    rows = [{"n_surviving": int(place == 0), "first_correct": place == 0} for place in range(4)]
    page = page_of(
        audit_run("left", audit_frame(rows), audit_manifest("left")),
        audit_run("clean", audit_frame([{}, {}]), audit_manifest("clean")),
    )

    shown = [
        block
        for section in page.sections
        for block in section.blocks
        if isinstance(block, Table) and section.anchor in ("numbers", "tests", "scores", "origins")
    ]
    note = "left: deletion incomplete: after it 1 of 4 facts are still stated"
    assert len(shown) > 10
    assert all(note in table.note for table in shown)
    assert not any("clean: deletion incomplete" in table.note for table in shown)


def test_checks_say_when_the_guards_found_nothing(audit_run, audit_frame, audit_manifest, checks):
    folder = audit_run("run", audit_frame([{}, {}]), audit_manifest(), checks=quiet(checks))

    (fine,) = check_texts(page_of(folder), "ok")

    assert fine.startswith("toy_model: FULL is neither near zero nor equal to DEL-ON")


def test_checks_say_which_guards_were_not_run(audit_run, audit_frame, audit_manifest):
    page = page_of(audit_run("run", audit_frame([{}, {}]), audit_manifest()))

    told = " ".join(check_texts(page))
    assert "not checked, since the run has no such table: contamination, databases" in told
    assert not check_texts(page, "ok")


def test_the_finding_states_and_squares_agree_with_counting(
    audit_run, random_audit, audit_manifest
):
    frame = random_audit(10, seed=2)
    page = page_of(audit_run("run", frame, audit_manifest()))
    full, on, off = (frame[f"{name}_correct"].astype(bool) for name in ("full", "first", "second"))

    sentence, summary = words(page.finding.sentence), words(page.finding.summary)
    assert sentence.startswith(
        "The accuracy of toy_model after deletion with retrieval on is "
        f"{100 * on.mean():.1f} % (95 % CI "
    )
    assert f"retrieval off, is {100 * off.mean():.1f} % (95 % CI " in sentence
    assert f"with the full database is {100 * full.mean():.1f} % (" in summary
    stays = f"stay correct after deletion is {100 * on[full].mean():.1f} % (95 % CI "
    assert stays in summary
    assert f"; {full.sum():,} prompts, " in summary.partition(stays)[2]
    assert f"The {on.sum():,} surviving answers are on" in summary
    (flow,) = blocks(page, "states", AlluvialPlot)
    assert [state for state, _, _ in flow.states] == ["FULL", "DEL-ON", "DEL-OFF"]
    assert flow.counts[True, True, False] == (full & on & ~off).sum()
    assert sum(flow.counts.values()) == len(frame)
    everything, given = (group.squares[0] for group in blocks(page, "squares", MosaicPlots))
    assert everything.first_only == (on & ~off).sum()
    assert given.neither == (full & ~on & ~off).sum()
    assert given.both + given.first_only + given.second_only + given.neither == full.sum()


def test_the_page_shows_rates_origins_and_identity(audit_run, random_audit, audit_manifest):
    frame = random_audit(10, seed=2)
    page = page_of(audit_run("run", frame, audit_manifest()))

    numbers = blocks(page, "numbers", Table)
    assert numbers[0].frame["leakage"].tolist() == [frame["second_correct"].mean()]
    assert {"Leakage", "Mediated", "Interference", "Artifacts"} <= {
        column.title for column in numbers[0].columns
    }
    (section,) = [one for one in page.sections if one.anchor == "numbers"]
    assert "Leakage (L) is correct even with retrieval off" in section.lead[0]
    origins = next(
        block for block in blocks(page, "origins", StackedBars) if block.name == "origins"
    )
    counts = dict(zip((label for label, _ in origins.parts), origins.rows[0][2], strict=True))
    assert counts["same object elsewhere"] == (frame["attribution"] == "same_object").sum()
    tests = blocks(page, "tests", Table)
    assert {"clustered_mcnemar_p_value", "identity_residual", "artifacts_equal_del_on"} <= {
        column.key for column in tests[0].columns
    }
    overall = tests[0].frame.iloc[0]
    on, off = frame["first_correct"].astype(bool), frame["second_correct"].astype(bool)
    assert overall["l_plus_r"] == pytest.approx(off.mean() + (on & ~off).mean())
    (residual,) = [one for one in tests[0].columns if one.key == "identity_residual"]
    assert {format_cell(row, residual)[0] for row in tests[0].frame.to_dict("records")} == {"0.00"}
    assert set(tests[0].frame["artifacts_equal_del_on"]) <= {"yes", "no"}
    assert (
        f"before correction: {100 * overall['detectable_difference']:.1f} points." in tests[0].note
    )
    half = (overall["retrieval_effect_high"] - overall["retrieval_effect_low"]) / 2
    assert overall["detectable_difference"] == pytest.approx(half * 2.801585 / 1.959964)
    assert len(page.sections[-1].blocks[0].answers) == 10


def test_every_column_of_every_table_is_described(audit_run, random_audit, audit_manifest):
    folder = audit_run("run", random_audit(4, seed=1), audit_manifest())

    for name, table in tables_of(folder).items():
        assert all(column.title for column in table.columns), name
        rates = [column for column in table.columns if column.kind == "rate"]
        assert all(column.low for column in rates if column.key != "share"), name


def test_several_runs_are_compared(audit_run, random_audit, audit_manifest):
    folders = [
        audit_run(f"run-{k}", random_audit(4, seed=k), audit_manifest(settings=told))
        for k, told in enumerate(({"retriever": ["minilm"]}, {"retriever": ["bm25"]}))
    ]

    page, tables = page_of(*folders), tables_of(*folders)

    assert page.models == ["toy_model (retriever minilm)", "toy_model (retriever bm25)"]
    captions = [table.caption for table in blocks(page, "numbers", Table)]
    assert captions[:3] == [
        "Settings in which the runs differ",
        "What survives deletion, by retriever and threshold",
        "Models on the pairs that both answered",
    ]
    assert tables["settings"].frame["retriever"].tolist() == ["minilm", "bm25"]
    assert tables["by_topology"].frame["model"].nunique() == 2
    deletion = next(
        one for one in blocks(page, "origins", StackedBars) if one.name == "deletion-by-model"
    )
    assert [row[0] for row in deletion.rows] == page.models


def test_labels_of_a_sweep_are_the_settings_that_differ(audit_run, random_audit, audit_manifest):
    folders = [
        audit_run(f"run-{place}", random_audit(3, seed=1), audit_manifest(settings=told))
        for place, told in enumerate(({"threshold": [0.5]}, {"threshold": [None]}))
    ]

    page, tables = page_of(*folders), tables_of(*folders)

    assert page.models == ["toy_model (threshold 0.5)", "toy_model (threshold none)"]
    assert tables["settings"].frame["threshold"].tolist() == ["0.5", "none"]


def test_numbers_of_a_run_do_not_depend_on_those_beside_it(audit_run, random_audit, audit_manifest):
    first = audit_run("a", random_audit(3, seed=1), audit_manifest("a"))
    second = audit_run("b", random_audit(3, seed=2), audit_manifest("b"))

    alone, both = (tables_of(*folders)["by_style"].frame for folders in ([second], [first, second]))

    own = both[both["model"] == "b"].reset_index(drop=True)
    pd.testing.assert_frame_equal(own, alone, check_dtype=False)


def test_the_page_tells_traces(told_run):
    page = page_of(told_run())

    (trace,) = blocks(page, "traces", Trace)
    assert trace.title.startswith("toy_model: countries/noise/7, cloze: United States")
    assert trace.steps[2][3:] == ("unknown", False)


def test_the_page_says_that_no_fact_survived_or_that_the_log_is_gone(
    audit_run, told_run, audit_frame, audit_manifest
):
    nothing = audit_run("nothing", audit_frame([{}, {}]), audit_manifest("nothing"))
    told = told_run()
    (told / "generations-store.jsonl").unlink()

    said = [words(block.parts) for block in blocks(page_of(nothing, told), "traces", Prose)]

    assert said[0] == "nothing: no answer was correct with retrieval on after deletion."
    assert "has no generations-store.jsonl" in said[1]


def test_states_that_were_not_asked_are_told(audit_run, audit_frame, audit_manifest):
    rows = [{"second_correct": None, "second_f1": None, "second_prediction": None}] * 3
    page = page_of(audit_run("run", audit_frame(rows), audit_manifest()))

    assert "DEL-OFF was not asked" in words(page.finding.sentence)
    assert any("DEL-OFF was not run" in text for text in check_texts(page))
    (flow,) = blocks(page, "states", AlluvialPlot)
    assert [state for state, _, _ in flow.states] == ["FULL", "DEL-ON"]
    assert not blocks(page, "squares", MosaicPlots)
    assert not [
        bars for bars in blocks(page, "origins", StackedBars) if bars.name.startswith("deletion")
    ]
    titles = {column.title for column in blocks(page, "numbers", Table)[0].columns}
    assert {"n FULL", "n DEL-ON", "n DEL-OFF"} <= titles


def test_bars_agree_with_the_published_counts(audit_run, audit_manifest, audit_frame, data_files):
    """Figures 3 and 7 by topology: L + R and the discordant pairs b and c."""
    cells = pd.read_csv(data_files / "golden" / "audit_contingencies.csv")
    rows = []
    for cell in cells.itertuples():
        for count, on, off in (
            (cell.a, True, True),
            (cell.b, True, False),
            (cell.c, False, True),
            (cell.d, False, False),
        ):
            database = f"{cell.domain}/{cell.variant.lower()}"
            said = {"database": database, "style": cell.prompt_style, "attribution": None}
            rows += [said | {"first_correct": on, "second_correct": off}] * count
    frame = audit_frame([{}]).iloc[[0] * len(rows)].reset_index(drop=True)
    told = pd.DataFrame(rows)
    told["topology"] = told["database"].str.partition("/")[2]
    told["domain"] = told["database"].str.partition("/")[0]
    frame = frame.assign(
        **{name: told[name] for name in told},
        pair_id=frame.index.astype(str),
        fact_id=frame.index.astype(str),
    ).astype({"first_correct": "boolean", "second_correct": "boolean"})

    table = audit_tables(frame)["by_topology"].set_index("topology")
    drawn = {
        row[0]: row[2]
        for block in blocks(
            page_of(audit_run("run", frame, audit_manifest("lmlm"))), "origins", StackedBars
        )
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
    assert released["clustered_mcnemar_p_value"] == pytest.approx(0.0454, abs=1e-4)
    assert released["retrieval_effect_high"] * released["retrieval_effect_low"] > 0.0
    counts = audit_tables(frame.head(50))["attribution"]
    assert not counts["count"].any()


def test_unattributed_answers_have_no_origins(audit_run, audit_frame, audit_manifest):
    untraced = {"has_gold": None, "n_lookups": None}
    frame = audit_frame([{"first_correct": True, **untraced}, untraced])
    page = page_of(audit_run("run", frame, audit_manifest()))

    assert "artifact_rate" not in blocks(page, "numbers", Table)[0].frame
    assert not [bars for bars in blocks(page, "origins", StackedBars) if bars.name == "origins"]


def test_dots_show_each_state_of_each_model(audit_run, random_audit, audit_manifest):
    frames = [random_audit(5, seed=seed) for seed in (1, 2)]
    folders = [
        audit_run(name, frame, audit_manifest(name))
        for name, frame in zip("ab", frames, strict=True)
    ]

    dots = {one.name: one for one in _score_charts(_report(folders), tables_of(*folders))}

    labels = [label for label, level, _ in dots["f1-by-style"].rows if level == 0]
    assert labels == ["cloze", "direct", "few-shot"]
    full = dots["f1-by-style"].rows[1]
    assert full[0] == "FULL"
    expected = frames[1][frames[1]["style"] == "cloze"]["full_f1"].mean()
    assert full[2][1].value.value == pytest.approx(expected)


def _report(folders):
    from surface_consistency.engine.design import Report
    from surface_consistency.runs.loader import load_runs
    from surface_consistency.studies.audit.records import AuditOutcome

    runs = load_runs(folders, outcome=AuditOutcome)
    return Report(runs=runs, design=AuditStudy.design, settings=FEW)


def test_an_answer_that_survived_says_where_it_came_from(told_run):
    page = page_of(told_run())

    (section,) = [section for section in page.sections if section.anchor == "answers"]
    (answer,) = section.blocks[0].answers
    assert answer.question == "United States, Capital"
    assert answer.accepted == ["Washington, D.C."]
    assert answer.note == "same object elsewhere: Government | Seat | Washington, D.C."
    assert answer.labels["origin"] == ["same object elsewhere"]


def test_the_real_products_of_an_audit_make_a_page(audit, score, study, settings):
    folder = audit(chosen=settings(limit=3, repeat=5))
    frame = score(folder)

    page, tables, runs = build_page([folder.path], study=study, settings=FEW)

    assert len(runs[0].outcomes) == len(frame) == 12
    assert {"fit", "databases", "closure", "lookups", "contamination", "noise_floor"} <= set(tables)
    assert not any("not checked" in text for text in check_texts(page))
    assert "test-retest flip rate of identical prompts" in words(page.finding.summary)
    assert ("retriever", "fuzzy") in page.finding.facts
    assert page.provenance[0].command.startswith("# from Python")
    baseline_checks(frame)


def test_a_page_holds_plain_values(told_run):
    """Whatever stands on it can be walked by whoever sets it."""
    page = page_of(told_run())

    assert dataclasses.is_dataclass(page)
    assert page.method[0].startswith("FULL: the full database.")


def test_the_folder_of_a_sweep_names_its_runs(audit_run, audit_frame, audit_manifest):
    folder = audit_run("sweep/fuzzy-0.5", audit_frame([{}]), audit_manifest())

    with pytest.raises(SourceNotFoundError, match=r"holds several: give .*fuzzy-0\.5"):
        page_of(folder.parent)
