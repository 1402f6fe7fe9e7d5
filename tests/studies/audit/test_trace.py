import json

import pytest

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.loader import load_runs
from surface_consistency.studies.audit import AuditStudy
from surface_consistency.studies.audit.records import AuditOutcome
from surface_consistency.studies.audit.trace import load_traces, surviving_facts

FACT = "countries/noise/7"


def fact_trace(folder):
    """Read the trace of the one fact of a run."""
    (run,) = load_runs([folder], outcome=AuditOutcome)
    (trace,) = load_traces(run, run.outcomes["pair_id"].tolist())
    return trace


def test_trace_in_text_shows_each_candidate_with_score_and_fate(told_run):
    folder = told_run()
    text = AuditStudy.report.trace(folder, FACT, outcome=AuditOutcome)
    lines = text.splitlines()

    assert text == fact_trace(folder).to_text()
    after = [line.strip() for line in lines[lines.index("  DEL-ON: right") :]]
    gold = '"United States" | "Capital" | "Washington, D.C."'
    assert f"0.9800  {gold}  [same subject, relation, object; deleted]" in after
    decoy = '"Government" | "Seat" | "Washington, D.C."'
    assert f"0.7100  {decoy}  [same object; retained; SELECTED]" in after
    assert 'lookup  "nowhere" | "at all" gave nothing' in after
    assert "abstained, threshold 0.6" in after
    assert "  SURVIVED  1: the deletion is incomplete" in lines
    assert "  DEL-OFF: wrong" in lines
    assert lines[-1].startswith("  origin    same_object: an entry with the right object under")


def test_trace_in_text_escapes_what_a_terminal_would_obey(told_run):
    text = fact_trace(told_run(subject="\x1b[31mred\nline")).to_text()

    assert "\x1b" not in text
    assert '"\\u001b[31mred\\nline" | "Capital"' in text


def test_trace_of_an_error_names_it(told_run):
    folder = told_run()
    log = folder / "generations-off.jsonl"
    line = json.loads(log.read_text())
    line |= {"text": None, "finish_reason": "error", "error": "out of memory", "lookups": None}
    log.write_text(json.dumps(line) + "\n")

    assert "DEL-OFF: no answer (out of memory)" in fact_trace(folder).to_text()


def test_trace_of_a_run_that_was_stopped_has_what_there_is(told_run):
    folder = told_run()
    log = folder / "generations-store.jsonl"
    log.write_text(log.read_text().splitlines(keepends=True)[0])
    (folder / "generations-off.jsonl").write_text("")

    states = fact_trace(folder).states

    assert [state.generation is None for state in states] == [False, True, True]


def test_trace_rejects_what_the_run_does_not_hold(told_run):
    folder = told_run()

    with pytest.raises(DataError, match="has no fact 'nix'; it has countries/noise/7"):
        AuditStudy.report.trace(folder, "nix", outcome=AuditOutcome)
    targets, pairs = RunFolder(folder).read_plan()
    RunFolder(folder).write_plan(targets.iloc[:0], pairs)
    with pytest.raises(DataError, match=r"targets\.parquet: lacks countries/noise/cloze/0"):
        fact_trace(folder)
    RunFolder(folder).write_plan(targets, pairs)
    for name in ("generations-store.jsonl", "targets.parquet"):
        (folder / name).unlink()
        with pytest.raises(SourceNotFoundError, match=f"has no {name}"):
            fact_trace(folder)


def test_trace_of_a_page_marks_what_was_deleted_and_what_answered(told_run):
    block = fact_trace(told_run()).to_block()

    assert block.title == "toy_model: countries/noise/7, cloze: United States, Capital"
    assert [(step[0], step[4]) for step in block.steps] == [
        ("FULL", True),
        ("DEL-ON", True),
        ("DEL-OFF", False),
    ]
    gold = "United States · Capital · Washington, D.C."
    decoy = "Government · Seat · Washington, D.C."
    assert block.steps[1][2] == [("0.9800", gold, "deleted"), ("0.7100", decoy, "selected")]
    assert "nowhere, at all, abstained, threshold 0.6" in block.steps[1][1]
    facts = dict(block.facts)
    assert facts["deleted"] == f"1: {gold}"
    assert facts["survived the deletion, which is incomplete"].startswith("USA · Capital city")
    assert block.note.startswith("same_object: an entry with the right object")


def test_surviving_facts_takes_each_origin_in_turn(audit_run):
    kinds = ["same_object", "same_object", "no_candidate", None, "surviving_equivalent"]
    folder = audit_run([{"first_correct": kind is not None, "attribution": kind} for kind in kinds])
    [run] = load_runs([folder], outcome=AuditOutcome)

    picked = [pair_id.rsplit("/", 1)[1] for pair_id in surviving_facts(run, 10)]

    assert picked == ["4", "0", "2", "1"]
    assert len(surviving_facts(run, 2)) == 2
