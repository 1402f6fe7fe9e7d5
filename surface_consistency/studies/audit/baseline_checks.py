"""What guards an audit against measuring something else: databases, prompts, closures, states."""

from collections.abc import Iterator
from typing import Any, Final

from surface_consistency.runs.loader import Run
from surface_consistency.studies.audit.tables import STATE_COLUMNS

__all__ = ["GUARDS", "baseline_facts", "closure_note"]

GUARDS: Final = ("contamination", "databases", "fit", "closure")
"""Names of the checks that are read."""


def baseline_facts(run: Run) -> dict[str, Any]:
    """Gather what the guards of a run found, for the sentences of `page.md.jinja`.

    Args:
        run: The run.

    Returns:
        Rows of each of its guards, those without a baseline, a closure or a verdict, by the names
        that the block "guards" has for them.
    """
    survived = run.outcomes[run.outcomes["n_surviving"].gt(0)]
    return {
        "label": run.label,
        **{name: _rows(run, name) for name in ("contamination", "fit", "closure")},
        "databases": list(_databases(run)),
        "incomplete": closure_note(run),
        "survived": survived["database"].drop_duplicates().tolist(),
        "n": len(run.outcomes),
        "states": [
            (state, int(run.outcomes[f"{column}_correct"].isna().sum()))
            for state, column in STATE_COLUMNS.items()
        ],
        "absent": [name for name in GUARDS if name not in run.checks],
    }


def _databases(run: Run) -> Iterator[dict[Any, Any]]:
    """Yield the databases: which are the same, and which were searched in another one."""
    warned: set[frozenset[str]] = set()
    for row in _rows(run, "databases"):
        same, built = row.get("same_content_as"), row.get("retriever_content")
        group = frozenset([row["database"], *(same.split("; ") if isinstance(same, str) else ())])
        is_new = len(group - {""}) > 1 and group not in warned
        warned.add(group)
        yield row | {
            "same": ", ".join(sorted(group)) if is_new else "",
            "is_foreign": isinstance(built, str) and built != row["content"],
        }


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
