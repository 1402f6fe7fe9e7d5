"""What guards an audit against measuring something else: prompts, databases, closures, states."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from surface_consistency.errors import ContaminationWarning
from surface_consistency.metrics import contamination_by
from surface_consistency.runs.files import write_text
from surface_consistency.studies.audit.cells import AuditCell
from surface_consistency.studies.audit.folder import AuditFolder
from surface_consistency.studies.audit.memory import AuditMemory

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["check_states", "state_counts", "write_inputs", "write_table"]

_CELL: Final = ["model", "database", "domain", "variant", "style"]


def write_inputs(folder: AuditFolder, cells: Sequence[AuditCell], memory: AuditMemory) -> None:
    """Write what is known before a model is asked.

    Args:
        folder: The run.
        cells: Databases with their prompts.
        memory: Their stores and deletions.

    The tables go to `checks/`: `fit.csv` tells how many prompts each database can answer;
    `databases.csv` the digest of each database and which others share it, and that of the content
    of its retriever; `closure.csv` what the deletions of each database leave, `closure_facts.csv`
    the same for each fact that has something to tell.
    """
    tables = {
        "fit": [_fit_row(cell) for cell in cells],
        "databases": list(_database_rows(memory)),
        "closure": list(_closure_rows(memory)),
        "closure_facts": list(_fact_rows(memory)),
    }
    for name, rows in tables.items():
        write_table(rows, folder.checks / f"{name}.csv")


def state_counts(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Count the right answers of each cell by state, over facts judged in FULL and DEL-ON.

    Args:
        frame: Outcomes, columns of `AuditOutcome`.

    Returns:
        One row a model, database and style: n, full_correct, del_on_correct. Cells without a fact
        judged in both are left out.
    """
    judged = frame[frame["full_correct"].notna() & frame["first_correct"].notna()]
    counted = judged[_CELL].assign(
        n=1,
        full_correct=judged["full_correct"].astype(int),
        del_on_correct=judged["first_correct"].astype(int),
    )
    return counted.groupby(_CELL, sort=False).sum().reset_index()


def check_states(frame: "pd.DataFrame", *, near_zero: float = 0.05) -> "pd.DataFrame":
    """Look for databases whose FULL state is no baseline.

    Args:
        frame: Outcomes, columns of `AuditOutcome`.
        near_zero: Largest FULL accuracy that counts as near zero.

    Returns:
        One row a model and database, as of `metrics.contamination_by`; empty when FULL or DEL-ON
        was not asked.

    Warns:
        ContaminationWarning: If FULL is near zero, or equals DEL-ON, in every style of a database.
    """
    counts = state_counts(frame)
    if counts.empty:
        return counts
    table = contamination_by(
        counts, by=["model", "database", "domain", "variant"], near_zero=near_zero
    )
    for row in table[table["is_contaminated"]].to_dict(orient="records"):
        warnings.warn(
            f"{row['database']} ({row['model']}): {row['full_accuracy']:.1%} are right with the "
            f"database whole, {row['del_on_accuracy']:.1%} with the fact deleted; where that is "
            "near zero or the same, the store did not serve this database or the model does not "
            "use it, and nothing can be said of forgetting",
            ContaminationWarning,
            stacklevel=3,
        )
    return table


def write_table(table: "pd.DataFrame | Iterable[dict[str, Any]]", path: Path) -> None:
    """Write a table as CSV, whole or not at all.

    Args:
        table: A frame, or rows.
        path: The file; its folder is made.
    """
    import pandas as pd

    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(list(table))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, frame.to_csv(index=False, lineterminator="\n"))


def _fit_row(cell: AuditCell) -> dict[str, Any]:
    """Tell how many prompts of a cell its database can answer."""
    return {
        "database": cell.label.database,
        "style": cell.label.style,
        "n_triplets": len(cell.database.triplets),
        "n_prompts": cell.fit.n_prompts,
        "n_verbatim": cell.fit.n_verbatim,
        "n_by_alias": cell.fit.n_by_alias,
        "n_missing": len(cell.fit.missing),
        "missing_share": cell.fit.missing_share,
    }


def _database_rows(memory: AuditMemory) -> Iterable[dict[str, Any]]:
    """Tell what each store holds and by what it is searched."""
    for name, content in memory.contents.items():
        store = memory.stores[name]
        told: Any = store.fingerprint()["retriever"]
        yield {
            "database": name,
            "n_triplets": len(store.database.triplets),
            "content": content,
            "retriever_content": told.get("content"),
            "same_content_as": "; ".join(
                other
                for other, digest in memory.contents.items()
                if digest == content and other != name
            ),
        }


def _closure_rows(memory: AuditMemory) -> Iterable[dict[str, Any]]:
    """Tell what the deletions of each database leave."""
    for name, report in memory.reports.items():
        yield {
            "database": name,
            "n_facts": len(report.facts),
            "closure_is_complete": report.is_complete,
            "n_incomplete": report.n_incomplete,
            "n_absent": report.n_absent,
            "n_shared_surface": report.n_shared_surface,
            "n_shared_by_punctuation": report.n_shared_by_punctuation,
            "n_other_objects": sum(map(bool, memory.others[name])),
            "n_echoing": report.n_echoing,
            "summary": report.summary(),
        }


def _fact_rows(memory: AuditMemory) -> Iterable[dict[str, Any]]:
    """Tell of each fact that is not deleted cleanly, echoes, or has further objects."""
    for name, report in memory.reports.items():
        entries = memory.stores[name].database.triplets
        for fact, others in zip(report.facts, memory.others[name], strict=True):
            told = (fact.remaining, fact.shared_surface, fact.echoes, others)
            if fact.n_deleted and not any(told):
                continue
            yield {
                "database": name,
                "fact_id": fact.fact_id,
                "subject": fact.subject,
                "relation": fact.relation,
                "gold_object": fact.gold_object,
                "n_deleted": fact.n_deleted,
                "is_complete": fact.is_complete,
                "remaining": _shown(entries[index] for index in fact.remaining),
                "shared_surface": _shown(entries[index] for index in fact.shared_surface),
                "shared_by_punctuation": _shown(
                    entries[index] for index in fact.shared_by_punctuation
                ),
                "other_objects": _shown(entries[index] for index in others),
                "echoes": "; ".join(fact.echoes),
            }


def _shown(entries: Iterable[tuple[str, str, str]]) -> str:
    """Write entries into one cell."""
    return "; ".join(" | ".join(entry) for entry in entries)
