"""An audit from start to end, and several of them with other retrievers and thresholds."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from surface_consistency.retrieval import Retriever, content_digest
from surface_consistency.schemas.memory import TripletDatabase
from surface_consistency.studies.audit._states import survivors_table
from surface_consistency.studies.audit.ask import RunnerFactory, run_audit
from surface_consistency.studies.audit.cells import AuditCell
from surface_consistency.studies.audit.checks import write_table
from surface_consistency.studies.audit.folder import AuditFolder, check_sweep, mark_sweep
from surface_consistency.studies.audit.retrievers import Retrievers, retrievers_by_name
from surface_consistency.studies.audit.score import score_audit
from surface_consistency.studies.audit.settings import AuditSettings
from surface_consistency.studies.audit.tables import audit_tables

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SweepResult", "finish_audit", "sweep_audit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """Result of `sweep_audit`."""

    folders: tuple[AuditFolder, ...]
    """The runs, one a retriever and threshold."""

    table: "pd.DataFrame"
    """The rates of all runs, overall and by variant."""


def finish_audit(
    folder: AuditFolder,
    *,
    cleaner: str = "audit",
    equivalence: str = "audit",
    n_resamples: int = 10_000,
) -> "dict[str, pd.DataFrame]":
    """Score a run and write its tables.

    Args:
        folder: The run.
        cleaner: Name of a cleaner, as in `score_audit`.
        equivalence: Name of an equivalence, as in `score_audit`.
        n_resamples: Resamples of facts for intervals.

    Returns:
        The tables by name, as of `audit_tables`, and "survivors", a row an answer that is right
        after deletion, with its origin and whether it is right without retrieval too; each is a
        file of `tables/`.

    Raises:
        RunLogError: If the run has no answer yet.
    """
    frame = score_audit(folder, cleaner=cleaner, equivalence=equivalence)
    tables = audit_tables(frame, n_resamples=n_resamples)
    tables["survivors"] = survivors_table(frame)
    for name, table in tables.items():
        write_table(table, folder.tables / f"{name}.csv")
    return tables


def sweep_audit(
    cells: Sequence[AuditCell],
    runner: RunnerFactory,
    out: str | os.PathLike[str],
    *,
    model: str,
    data: str = "databases",
    settings: AuditSettings | None = None,
    retrievers: Sequence[str] = ("minilm",),
    thresholds: Sequence[float | None] = (0.6,),
    find_retrievers: Callable[[str], Retrievers] = retrievers_by_name,
    cleaner: str = "audit",
    equivalence: str = "audit",
    n_resamples: int = 10_000,
    progress: bool = True,
) -> SweepResult:
    """Run one audit for each retriever and threshold, each in a folder of its own.

    The model is asked without retrieval once: those answers are the same in all runs. Each
    retriever is built once for all thresholds.

    Args:
        cells: Databases with their prompts.
        runner: Makes the runner of a store.
        out: Folder of the runs.
        model: Label of the model in tables.
        data: Where the cells came from.
        settings: How to run; its retriever and threshold are replaced.
        retrievers: Names of retrievers.
        thresholds: Lowest accepted scores; None for no limit.
        find_retrievers: Finds the retrievers of a name.
        cleaner: Name of a cleaner.
        equivalence: Name of an equivalence.
        n_resamples: Resamples of facts for intervals.
        progress: Whether to show a progress bar on a terminal.

    Returns:
        The runs and their rates in one table, which is also written to `tables/sweep.csv`.

    Raises:
        ValueError: If a name or threshold is given twice, or none is given.
        RunMismatchError: If the folder holds a single run, or one of its folders a run with other
            settings.
    """
    for name, values in (("retrievers", retrievers), ("thresholds", thresholds)):
        if not values or len(set(values)) < len(values):
            raise ValueError(f"{name} must be given, each once; got {list(values)}")
    check_sweep(out)
    import pandas as pd

    mark_sweep(out, [_folder_name(name, limit) for name in retrievers for limit in thresholds])
    folders: list[AuditFolder] = []
    tables = []
    for name in retrievers:
        built = _built_once(find_retrievers(name))
        for threshold in thresholds:
            chosen = replace(settings or AuditSettings(), retriever=name, threshold=threshold)
            folder = run_audit(
                cells,
                runner,
                Path(out) / _folder_name(name, threshold),
                model=model,
                data=data,
                settings=chosen,
                retrievers=built,
                without_retrieval=folders[0] if folders else None,
                progress=progress,
            )
            folders.append(folder)
            found = finish_audit(
                folder, cleaner=cleaner, equivalence=equivalence, n_resamples=n_resamples
            )
            for label, table in (("all", found["overall"]), (None, found["by_variant"])):
                named = table if label is None else table.assign(variant=label)
                tables.append(named.assign(retriever=name, threshold=threshold))
    table = pd.concat(tables, ignore_index=True)
    first = ["model", "retriever", "threshold", "variant"]
    table = table[[*first, *(column for column in table if column not in first)]]
    write_table(table, Path(out) / "tables" / "sweep.csv")
    return SweepResult(folders=tuple(folders), table=table)


def _built_once(retrievers: Retrievers) -> Retrievers:
    """Keep the retriever of each database."""
    made: dict[str, Retriever] = {}

    def make(database: TripletDatabase) -> Retriever:
        """Make a retriever, or take the one that was made."""
        content = content_digest(database.triplets)
        if content not in made:
            made[content] = retrievers.make(database)
        return made[content]

    return Retrievers(make=make, encoder=retrievers.encoder)


def _folder_name(retriever: str, threshold: float | None) -> str:
    """Name the folder of a run."""
    limit = "none" if threshold is None else f"{threshold:g}"
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', retriever).strip('-')}-{limit}"
