"""What the reader of an audit must know before its numbers."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from surface_consistency.report._markup import Html, join, tag
from surface_consistency.report._numbers import percent
from surface_consistency.report.audit._sections import closure_note
from surface_consistency.report.audit.run import AuditRun

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["run_warnings", "warnings_html"]


def warnings_html(runs: Sequence[AuditRun]) -> Html:
    """Show the warnings of all runs."""
    notes = [
        tag("p", tag("strong", f"{run.label}: "), text, class_="note")
        for run in runs
        for text in run_warnings(run)
    ]
    nothing = (
        "The guards found nothing: FULL is neither near zero nor equal to DEL-ON in any database, "
        "no two databases are the same, every prompt file fits its database, every deletion is "
        "complete, and every answer was judged."
    )
    return join(notes) if notes else tag("p", nothing)


def run_warnings(run: AuditRun) -> Iterator[str]:
    """Say what speaks against the numbers of a run, gravest first."""
    checks = run.checks
    yield from _contaminated(checks.get("contamination"))
    yield from _same_content(checks.get("databases"))
    yield from _misfit(checks.get("fit"))
    if note := closure_note(run):
        survived = run.outcomes[run.outcomes["n_surviving"].gt(0)]
        yield f"{note}, in {', '.join(survived['database'].drop_duplicates())}"
    yield from _closures(checks.get("closure"))
    yield from _unjudged(run)
    yield from _not_checked(run)


def _contaminated(table: "pd.DataFrame | None") -> Iterator[str]:
    """Name the databases whose FULL is near zero or equals DEL-ON in every style."""
    for row in _rows(table):
        if row["is_contaminated"]:
            yield (
                f"{row['database']}: right are {percent(row['full_accuracy'])} % with the database "
                f"whole and {percent(row['del_on_accuracy'])} % with the fact deleted (FULL is "
                f"near zero in {row['n_near_zero']} and equals DEL-ON in {row['n_equal']} of "
                f"{row['n_cells']} prompt styles). Either the store did not serve this database or "
                "the model does not use it; nothing can be said of forgetting, and the numbers "
                "over several databases are diluted by this one"
            )


def _same_content(table: "pd.DataFrame | None") -> Iterator[str]:
    """Name databases that are the same, and retrievers that were built over another one."""
    told: set[frozenset[str]] = set()
    for row in _rows(table):
        same = row.get("same_content_as")
        if isinstance(same, str) and same:
            group = frozenset([row["database"], *same.split("; ")])
            if group not in told:
                told.add(group)
                same = ", ".join(sorted(group))
                yield f"{same} hold the same entries: one measurement, not several"
        built = row.get("retriever_content")
        if isinstance(built, str) and built != row["content"]:
            yield (
                f"{row['database']} was searched by a retriever over other content "
                f"({built[:12]}, not {row['content'][:12]})"
            )


def _misfit(table: "pd.DataFrame | None") -> Iterator[str]:
    """Name the prompt files that ask for facts which their database lacks."""
    for row in _rows(table):
        if row["n_missing"]:
            yield (
                f"{row['database']}, {row['style']}: the database lacks the facts of "
                f"{row['n_missing']} of {row['n_prompts']} prompts; see that they belong together"
            )


def _closures(table: "pd.DataFrame | None") -> Iterator[str]:
    """Say what blurs the verdicts of a database although its closure is complete."""
    for row in _rows(table):
        said = []
        if row["n_absent"]:
            said.append(f"{row['n_absent']} deletions delete nothing")
        if row["n_shared_surface"]:
            said.append(
                f"{row['n_shared_surface']} golds stay readable under another relation of their "
                f"subject ({row['n_shared_by_punctuation']} of them because the key drops "
                "punctuation)"
            )
        if row.get("n_other_objects"):
            said.append(
                f"{row['n_other_objects']} have further objects under the same subject and "
                "relation, so that a lookup may find another true one than the gold"
            )
        if row["n_echoing"]:
            said.append(
                f"{row['n_echoing']} golds contain their subject, so that repeating the question "
                "may pass for an answer"
            )
        if said:
            yield f"{row['database']}, {row['n_facts']} facts: {'; '.join(said)}"


def _unjudged(run: AuditRun) -> Iterator[str]:
    """Say how many facts lack a verdict in a state."""
    for state, column in (("FULL", "full"), ("DEL-ON", "first"), ("DEL-OFF", "second")):
        n_missing = int(run.outcomes[f"{column}_correct"].isna().sum())
        if n_missing == len(run.outcomes):
            yield f"{state} was not asked, so what needs it is not in the tables"
        elif n_missing:
            yield f"{n_missing:,} of {len(run.outcomes):,} facts have no verdict under {state}"


def _not_checked(run: AuditRun) -> Iterator[str]:
    """Say which guards the run holds no record of."""
    absent = [
        name for name in ("contamination", "databases", "fit", "closure") if name not in run.checks
    ]
    if absent:
        yield f"not checked, since the run holds no such table: {', '.join(absent)}"


def _rows(table: "pd.DataFrame | None") -> "list[dict[Any, Any]]":
    """Give the rows of a table; none where there is none."""
    return [] if table is None else table.to_dict("records")
