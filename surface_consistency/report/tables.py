"""The tables of a report: paired metrics by group, and the checks of all runs together."""

import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from surface_consistency.errors import DataError, UndefinedMetricWarning, UnscoredWarning
from surface_consistency.report._names import rank
from surface_consistency.report.run import StudyRun
from surface_consistency.runs.files import write_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["GROUPINGS", "Signed", "stacked", "study_tables", "write_tables"]

GROUPINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "overall": (),
    "by_type": ("types",),
    "by_category": ("categories",),
    "by_relation": ("relation",),
}
"""Name of each table of metrics to the columns that group it besides model and template."""

_CLUSTERS: Final = ("fact_id", "subject_id")
_SINGULAR: Final = {"types": "type", "categories": "category"}
_USED: Final = ("template", "relation", "categories", "types", "first_correct", "second_correct")


class Signed(Protocol):
    """A run, as far as tables name it."""

    @property
    def label(self) -> str:
        """Name of the run."""

    @property
    def signature(self) -> str:
        """What made it, in one line."""


def study_tables(
    runs: Sequence[StudyRun],
    *,
    cluster: str = "fact_id",
    n_resamples: int = 10_000,
    seed: int = 0,
) -> "dict[str, pd.DataFrame]":
    """Compute the tables of one or several runs.

    Args:
        runs: The runs, their labels distinct.
        cluster: Column whose values are resampled as a whole: "fact_id", or "subject_id" for
            coarser clusters.
        n_resamples: Resamples of the intervals.
        seed: Seed of the resampling.

    Returns:
        "overall" (by model and template), "by_type", "by_category" and "by_relation" (by model,
        template and that), each with the columns of `paired_by`; then one table for each name in
        the runs' checks, such as "noise_floor", with a column `model`. Rates are fractions.

    Raises:
        ValueError: If there are no runs, two of one label, or `cluster` is another column.
        DataError: If a run holds no pair, a pair without a value of `cluster`, or a check that is
            named as a table of metrics.

    Notes:
        Numbers equal `paired_by(outcomes, by=["model", "template", "types"], ...)` and so on. A
        pair counts in each of its types and categories, or under "none" where it has no such
        label. Missing verdicts and undefined rates do not warn: `n_missing` counts the former, the
        latter are NaN.
    """
    _check_runs(runs, cluster)
    frame = _outcomes(runs, cluster)
    order = {run.label: place for place, run in enumerate(runs)}
    tables = {
        name: _grouped(frame, columns, order, cluster, n_resamples, seed)
        for name, columns in GROUPINGS.items()
    }
    names = dict.fromkeys(name for run in runs for name in run.checks)
    return tables | {
        name: stacked(runs, {r.label: r.checks.get(name) for r in runs}) for name in names
    }


def write_tables(
    tables: "Mapping[str, pd.DataFrame]",
    folder: str | os.PathLike[str],
    *,
    runs: Sequence[Signed],
) -> list[Path]:
    """Write tables as CSV files that `pandas.read_csv` loads without options.

    Args:
        tables: As from `study_tables`.
        folder: Where to write; made when absent. Files of the same names are replaced.
        runs: What the tables were made from; their signatures go into `SOURCES.txt`.

    Returns:
        The files written: `<name>.csv` for each table, then `SOURCES.txt`.
    """
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in tables.items():
        written.append(home / f"{name}.csv")
        write_text(written[-1], table.to_csv(index=False, lineterminator="\n"))
    written.append(home / "SOURCES.txt")
    write_text(written[-1], "".join(f"{run.label}\t{run.signature}\n" for run in runs))
    return written


def stacked(
    runs: Sequence[StudyRun], tables: "Mapping[str, pd.DataFrame | None]"
) -> "pd.DataFrame":
    """Put one table of each run, by its label, below each other with the column `model` first.

    Rows of a table that names models itself keep theirs, save the run's own, which gets its label.
    """
    import pandas as pd

    parts = []
    for run in runs:
        table = tables.get(run.label)
        if table is None:
            continue
        labels = [run.label] * len(table)
        if "model" in table:
            labels = [run.label if m == run.manifest.model else m for m in table["model"]]
        rest = table.drop(columns="model", errors="ignore")
        rest.insert(0, "model", pd.Series(labels, index=rest.index, dtype="object"))
        parts.append(rest)
    return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)


def _check_runs(runs: Sequence[StudyRun], cluster: str) -> None:
    """Refuse what would make empty or ambiguous tables."""
    if cluster not in _CLUSTERS:
        raise ValueError(f"cluster must be one of {', '.join(_CLUSTERS)}; got {cluster!r}")
    if not runs:
        raise ValueError("runs is empty; give at least one run")
    label, times = Counter(run.label for run in runs).most_common(1)[0]
    if times > 1:
        raise ValueError(
            f"{times} runs have the label {label!r}; give each its own (`load_runs` does)"
        )
    for run in runs:
        clash = next((name for name in run.checks if name in GROUPINGS), None)
        if clash is not None:
            raise DataError(
                f"run {run.label!r} has a check named {clash!r}, which is the name of a table of "
                "metrics; rename the file"
            )
        if run.outcomes.empty:
            raise DataError(
                f"run {run.label!r} holds no pair, so there is nothing to report; leave it out, or "
                "score it again with `surface-consistency score`"
            )
        if run.outcomes[cluster].isna().any():
            n_without = int(run.outcomes[cluster].isna().sum())
            raise DataError(
                f"run {run.label!r} has {n_without} pairs without {cluster}, so they belong to no "
                "cluster; use cluster='fact_id'"
            )


def _outcomes(runs: Sequence[StudyRun], cluster: str) -> "pd.DataFrame":
    """Join the outcomes of all runs under their labels."""
    import pandas as pd

    columns = list(dict.fromkeys([*_USED, cluster]))
    return pd.concat(
        [run.outcomes[columns].assign(model=run.label) for run in runs], ignore_index=True
    )


def _grouped(
    frame: "pd.DataFrame",
    columns: tuple[str, ...],
    order: Mapping[str, int],
    cluster: str,
    n_resamples: int,
    seed: int,
) -> "pd.DataFrame":
    """Compute the metrics by model, template and these columns; sort the rows for reading."""
    from surface_consistency.metrics.paired_groups import paired_by

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        table = paired_by(
            frame,
            by=["model", "template", *columns],
            cluster=cluster,
            n_resamples=n_resamples,
            rng=seed,
        )
    table = table.rename(columns=_SINGULAR)
    keys = [_SINGULAR.get(column, column) for column in columns]
    places = [
        (rank("template", template), *map(rank, keys, values), order[model])
        for template, model, *values in zip(
            *(table[column] for column in ("template", "model", *keys)), strict=True
        )
    ]
    rows = sorted(range(len(table)), key=places.__getitem__)
    return table.iloc[rows].reset_index(drop=True)
