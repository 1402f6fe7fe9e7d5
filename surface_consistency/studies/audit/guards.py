"""What guards an audit against measuring something else: databases, prompts, closures, states."""

from collections.abc import Iterator
from typing import Any, Final

from surface_consistency.report.page import Part, Value
from surface_consistency.runs.loader import Run
from surface_consistency.studies.audit.tables import STATE_COLUMNS

__all__ = ["GUARDS", "closure_note", "run_warnings"]

GUARDS: Final = ("contamination", "databases", "fit", "closure")
"""Names of the checks that are read."""


def run_warnings(run: Run) -> Iterator[tuple[str, list[Part]]]:
    """Say what speaks against the numbers of a run, gravest first.

    Args:
        run: The run.

    Yields:
        A title and a sentence.
    """
    yield from _contaminated(run)
    yield from _same_content(run)
    for row in _rows(run, "fit"):
        if row["n_missing"]:
            yield (
                "Prompts that do not fit",
                [
                    f"{row['database']}, {row['style']}: the database lacks the facts of "
                    f"{row['n_missing']} of {row['n_prompts']} prompts; see that they belong "
                    "together."
                ],
            )
    if note := closure_note(run):
        survived = run.outcomes[run.outcomes["n_surviving"].gt(0)]
        names = ", ".join(survived["database"].drop_duplicates())
        yield "Incomplete deletion", [f"{note}, in {names}."]
    yield from _left_readable(run)
    for state, column in STATE_COLUMNS.items():
        n_missing = int(run.outcomes[f"{column}_correct"].isna().sum())
        if n_missing == len(run.outcomes):
            text = f"{state} was not asked, so what needs it is not in the tables."
            yield "Not asked", [text]
        elif n_missing:
            text = f"{n_missing:,} of {len(run.outcomes):,} facts have no verdict under {state}."
            yield "Missing verdicts", [text]
    if absent := [name for name in GUARDS if name not in run.checks]:
        text = f"not checked, since the run holds no such table: {', '.join(absent)}."
        yield "Not checked", [text]


def _contaminated(run: Run) -> Iterator[tuple[str, list[Part]]]:
    """Name the databases whose FULL is near zero or equals DEL-ON in every style."""
    for row in _rows(run, "contamination"):
        if row["is_contaminated"]:
            yield (
                "No baseline",
                [
                    f"{row['database']}: right are ",
                    Value(value=row["full_accuracy"]),
                    " with the database whole and ",
                    Value(value=row["del_on_accuracy"]),
                    f" with the fact deleted (FULL is near zero in {row['n_near_zero']} and equals "
                    f"DEL-ON in {row['n_equal']} of {row['n_cells']} prompt styles). Either the "
                    "store did not serve this database or the model does not use it; nothing can "
                    "be said of forgetting, and the numbers over several databases are diluted by "
                    "this one.",
                ],
            )


def _same_content(run: Run) -> Iterator[tuple[str, list[Part]]]:
    """Name databases that are the same, and retrievers that were built over another one."""
    told: set[frozenset[str]] = set()
    for row in _rows(run, "databases"):
        same = row.get("same_content_as")
        group = frozenset([row["database"], *(same.split("; ") if isinstance(same, str) else ())])
        if len(group - {""}) > 1 and group not in told:
            told.add(group)
            names = ", ".join(sorted(group))
            yield (
                "Same databases",
                [f"{names} hold the same entries: one measurement, not several."],
            )
        built = row.get("retriever_content")
        if isinstance(built, str) and built != row["content"]:
            text = (
                f"{row['database']} was searched by a retriever over other content "
                f"({built[:12]}, not {row['content'][:12]})."
            )
            yield "Retriever of other content", [text]


def _left_readable(run: Run) -> Iterator[tuple[str, list[Part]]]:
    """Say what blurs the verdicts of a database although its closure is complete."""
    for row in _rows(run, "closure"):
        said = []
        if row["n_absent"]:
            said.append(f"{row['n_absent']} deletions delete nothing")
        if row["n_shared_surface"]:
            said.append(
                f"the right answers of {row['n_shared_surface']} still stand in the database under "
                f"another relation of the same subject ({row['n_shared_by_punctuation']} of them "
                'only if punctuation is dropped: ".us" read as "US")'
            )
        if row.get("n_other_objects"):
            said.append(
                f"{row['n_other_objects']} have further objects under the same subject and "
                "relation, so that a lookup may find another true answer than the one asked for"
            )
        if row["n_echoing"]:
            said.append(
                f"{row['n_echoing']} right answers contain their subject, so that repeating the "
                "question may pass for an answer"
            )
        if said:
            text = f"{row['database']}, {row['n_facts']} facts: {'; '.join(said)}."
            yield "Answers that can be read elsewhere", [text]


def closure_note(run: Run) -> str:
    """Say how many deletions of a run are incomplete.

    Args:
        run: The run.

    Returns:
        Half a sentence; empty when all are complete.
    """
    facts = run.outcomes.drop_duplicates("fact_id")
    n_incomplete = int(facts["n_surviving"].gt(0).sum())
    if not n_incomplete:
        return ""
    return (
        f"deletion incomplete: after it {n_incomplete:,} of {len(facts):,} facts are still stated "
        "by an entry under another of their names"
    )


def _rows(run: Run, name: str) -> list[dict[Any, Any]]:
    """Give the rows of a check; none where there is none."""
    return run.checks[name].to_dict("records") if name in run.checks else []
