import json

import pytest

from surface_consistency.errors import DataError, SourceNotFoundError
from surface_consistency.runs.loader import load_runs
from surface_consistency.schemas import LookupQuery, Triplet
from surface_consistency.studies.audit import AuditStudy
from surface_consistency.studies.audit.lookup.fact_store import LookupRequest
from surface_consistency.studies.audit.records import AuditOutcome
from surface_consistency.studies.audit.trace import load_traces, surviving_facts
from tests.audit_databases import write_audit_databases
from tests.studies.audit.conftest import Asking

HOSTILE = "\x1b[31mred\nline"


@pytest.fixture
def databases(tmp_path):
    """A fact with a decoy, and one whose subject contains control characters."""
    entries = [("Arania", "Capital", "Lumo"), ("Arania State", "Capital City", "Lumo")]
    entries = [Triplet(*entry) for entry in (*entries, (HOSTILE, "Capital", "Rot"))]
    write_audit_databases(tmp_path / "databases", "lands", {"noise": entries}, ("cloze",))
    return tmp_path / "databases"


class Twice(Asking):
    """Looks up its fact, and then a query unlike all entries."""

    def answer(self, prompt):
        generated = super().answer(prompt)
        if not generated.lookups:
            return generated
        query = LookupQuery(entity="zzz", relation="xyz")
        more = self.source.look_up([LookupRequest(prompt, query)])
        return generated.model_copy(update={"lookups": (*generated.lookups, *more)})


@pytest.fixture
def traced_run(audit, score):
    """A run whose plan contains a surviving entry."""
    folder = audit(runner=Twice())
    targets, pairs = folder.read_plan()
    left = [[["RA", "Seat", "Lumo"]]] * len(targets)
    folder.write_plan(targets.assign(surviving=left), pairs)
    score(folder)
    return load_runs([folder.path], outcome=AuditOutcome)[0]


def fact_trace(run, fact=0):
    """Read the trace of a fact of a run."""
    (trace,) = load_traces(run, [f"lands/noise/cloze/{fact}"])
    return trace


def test_text_trace_contains_each_candidate_with_score_and_flags(traced_run):
    text = AuditStudy.report.trace(traced_run.folder.path, "lands/noise/0", outcome=AuditOutcome)
    lines = text.splitlines()

    assert text == fact_trace(traced_run).to_text()
    after = [line.strip() for line in lines[lines.index("  DEL-ON: correct") :]]
    gold, decoy = '"Arania" | "Capital" | "Lumo"', '"Arania State" | "Capital City" | "Lumo"'
    assert f"1.0000  {gold}  [same subject, relation, object; deleted]" in after
    assert f"0.7179  {decoy}  [same object; retained; SELECTED]" in after
    assert 'lookup  "zzz" | "xyz" gave nothing' in after
    assert "abstained, threshold 0.5" in after
    assert "  SURVIVED  1: the deletion is incomplete" in lines
    assert "  DEL-OFF: incorrect" in lines
    assert lines[-1].startswith("  origin    same_object: an entry with the correct object under")
    # The page shows the same: marks at their entries, and abstention.
    block = fact_trace(traced_run).to_block()
    entries = ["Arania · Capital · Lumo", "Arania State · Capital City · Lumo"]
    for step, right, marks in zip(
        block.steps,
        (True, True, False),
        (["selected", ""], ["deleted", "selected"], []),
        strict=True,
    ):
        assert [row[1:] for row in step[2][:2]] == [*zip(entries[: len(marks)], marks, strict=True)]
        assert step[4] is right
    assert "deleted" not in {mark for *_, mark in block.steps[0][2]}
    assert "looks up zzz, xyz, abstained, threshold 0.5" in block.steps[1][1]
    assert dict(block.facts)["deleted"] == f"1: {entries[0]}"
    survived = "survived the deletion, which is incomplete"
    assert dict(block.facts)[survived] == "RA · Seat · Lumo"
    assert block.note.startswith("same_object: an entry with the correct object")
    # Control characters are escaped.
    hostile = fact_trace(traced_run, 2).to_text()
    assert "\x1b" not in hostile
    assert '"\\u001b[31mred\\nline" | "Capital"' in hostile


def test_trace_reports_an_error_and_missing_answers_of_a_stopped_run(traced_run):
    off, store = map(traced_run.folder.log, ("off", "store"))
    line = json.loads(off.read_text().splitlines()[0])
    line |= {"text": None, "finish_reason": "error", "error": "out of memory", "lookups": None}
    off.write_text(json.dumps(line) + "\n")

    assert "DEL-OFF: no answer (out of memory)" in fact_trace(traced_run).to_text()

    store.write_text(store.read_text().splitlines(keepends=True)[0])
    off.write_text("")
    states = fact_trace(traced_run).states
    assert [state.generation is None for state in states] == [False, True, True]


def test_trace_rejects_facts_and_files_missing_in_the_run(traced_run):
    folder = traced_run.folder
    with pytest.raises(DataError, match="has no fact 'nix'; it has lands/noise/0"):
        AuditStudy.report.trace(folder.path, "nix", outcome=AuditOutcome)
    targets, pairs = folder.read_plan()
    folder.write_plan(targets.iloc[:0], pairs)
    with pytest.raises(
        DataError, match=r"pairs\.parquet: pair column 'full_target' has 'lands/noise/cloze/0/FULL'"
    ):
        fact_trace(traced_run)
    folder.write_plan(targets, pairs)
    for path in (folder.log("store"), folder.targets):
        path.unlink()
        with pytest.raises(SourceNotFoundError, match=f"has no {path.name}"):
            fact_trace(traced_run)


def test_surviving_facts_alternate_between_origins(audit_run):
    kinds = ["same_object", "same_object", "no_candidate", None, "surviving_equivalent"]
    folder = audit_run([{"first_correct": kind is not None, "attribution": kind} for kind in kinds])
    [run] = load_runs([folder], outcome=AuditOutcome)

    picked = [pair.rsplit("/", 1)[1] for pair in surviving_facts(run, 10)]

    assert picked == ["4", "0", "2", "1"]
    assert len(surviving_facts(run, 2)) == 2
