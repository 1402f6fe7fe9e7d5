"""The paired table of anyone's verdicts, by group: what `surface-consistency compare` prints.

Two conditions are told by what flips between them, kappa, tests by name and resampled intervals,
which several models have no words for; differences, intervals and p are those of `compare_models`.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import pandas as pd
from pydantic import Field

from surface_consistency.engine.compare.settings import PairSettings
from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.metrics.paired.mcnemar_tests import PairedTest
from surface_consistency.metrics.paired.multiplicity import with_adjusted_p_values
from surface_consistency.metrics.paired.paired_groups import paired_by
from surface_consistency.metrics.paired.paired_tables import PAIRED_RATES
from surface_consistency.metrics.uncertainty.intervals import IntervalMethod, Intervals
from surface_consistency.report.numbers import aligned, json_value
from surface_consistency.schemas._record import Items
from surface_consistency.schemas.settings import Settings
from surface_consistency.text import one_line

if TYPE_CHECKING:
    from surface_consistency.runs.folder import RunFolder

_RATES: Final = ("consistency", "signed_alignment", "flip_rate", "accuracy_difference")
_TITLES: Final = {
    "negative_flip_rate": "lost",
    "positive_flip_rate": "gained",
    "consistency_given_first_correct": "kept of known",
}
_COUNTS: Final = ("both", "first_only", "second_only", "neither", "n")
_CLUSTERED: Final = ("obuchowski", "durkalski")
_OWN: Final = (*_COUNTS, *PAIRED_RATES, "mcnemar", "interval", "n_missing", "n_clusters")


class VerdictColumns(PairSettings):
    """Which verdicts are compared; of two runs `first` and `second` are what to call them."""

    correct: str | None = None
    """Column of the verdict, with one row a verdict."""

    fact: Items[str] = ("fact_id",)
    """Column that tells which verdicts belong together."""

    cluster: str | None = None
    """Column of what intervals take as a whole; fact_id if there by default, of runs what their
    report takes."""

    blank: Literal["missing", "wrong"] = "missing"
    """What a blank verdict counts as."""

    @property
    def conditions(self) -> tuple[str, str]:
        """Both conditions, which files do not tell.

        Raises:
            ValueError: If one of them is not named.
        """
        if self.first is None or self.second is None:
            raise ValueError(
                f"--{'first' if self.first is None else 'second'} is required: the column of a "
                "verdict, or the value of --condition"
            )
        return self.first, self.second


class TableSettings(Settings):
    """How the table is computed."""

    by: Items[str] = ()
    """Column of groups; the page of two runs has all that they know by default."""

    separator: str | None = None
    """What separates several labels in a cell of --by, such as ";"."""

    test: PairedTest = "auto"
    """Form of the test; auto is the t of the interval of the difference, over clusters."""

    interval: IntervalMethod = "auto"
    """How intervals are made; auto also holds near 0 and 1 and takes no draws."""

    confidence: float = Field(default=0.95, gt=0, lt=1)
    """Coverage of the intervals."""

    resamples: int = Field(default=10_000, ge=1)
    """Bootstrap resamples of --interval percentile and bca."""

    seed: int = 0
    """Seed of these resamples."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Verdicts under two conditions, on their way to a table, a text or a page."""

    rates: ClassVar[Sequence[str]] = _RATES
    """Names of `metrics.PAIRED_RATES`."""

    frame: pd.DataFrame
    """One row a pair, as from `read_verdicts`."""

    conditions: tuple[str, str]
    """What the conditions are called."""

    origin: str
    """Where the verdicts came from."""

    by: Sequence[str] = ()
    """Columns that make the groups of the page where the settings name none."""

    notes: Sequence[str] = ()
    """What a reader must know before the numbers, in sentences."""

    def tables(self, settings: TableSettings) -> list[list[dict[str, Any]]]:
        """Compute what is printed: see `compare_verdicts`.

        Args:
            settings: By what and how.

        Returns:
            The rows of each table.
        """
        return [compare_verdicts(self.frame, settings, rates=self.rates)]

    def write_report(self, out: str | os.PathLike[str], settings: TableSettings) -> Path:
        """Write a page of the verdicts, and the run folder that it is made of.

        Args:
            out: Folder of both.
            settings: By what and how.

        Returns:
            The page.

        Raises:
            ColumnNotFoundError: If a column of groups is not there.
            DataError: If there is no pair, or the folder holds a run of a study.
        """
        # The engine is loaded for a page alone: the table on the terminal starts faster without it.
        from surface_consistency.engine.design import ReportSettings
        from surface_consistency.engine.report import report_runs

        by = settings.by or self.by
        folder = self.to_folder(split_labels(self.frame, by, settings.separator), out, by)
        report = ReportSettings(resamples=settings.resamples, bootstrap_seed=settings.seed)
        report_runs([folder.path], out, settings=report)
        return Path(out) / "report.html"

    def to_folder(
        self, frame: pd.DataFrame, out: str | os.PathLike[str], by: Sequence[str]
    ) -> "RunFolder":
        """Make a scored run folder of the verdicts, for `report_runs`.

        Args:
            frame: The frame, its cells of labels split.
            out: Folder of the run.
            by: Columns that make groups.

        Returns:
            The run folder.
        """
        from surface_consistency.engine.compare.verdicts import import_verdicts

        first, second = self.conditions
        return import_verdicts(frame, out, origin=self.origin, first=first, second=second, by=by)


def compare_verdicts(
    frame: pd.DataFrame,
    settings: TableSettings | None = None,
    *,
    rates: Sequence[str] = _RATES,
) -> list[dict[str, Any]]:
    """Compute the paired table of each group of an outcomes frame, ready for JSON.

    Args:
        frame: The outcomes frame, as from `read_verdicts`; clusters are its `fact_id`.
        settings: By what and how; None for one row of all pairs.
        rates: Names of `metrics.PAIRED_RATES`.

    Returns:
        One mapping a group: its labels by column, then both, first_only, second_only, neither, n,
        the rates (accuracy_difference being that of the second less that of the first), mcnemar
        (statistic, p_value, method, and p_value_holm, corrected for the number of groups), interval
        (for each of the rates its two bounds), n_missing, n_clusters. Undefined numbers are None,
        the test of a group without scored pairs among them.

    Raises:
        ColumnNotFoundError: If a column of `by` is not there; the message lists those seen.
        ValueError: If a pair stands twice in a group, a column of `by` has the name of a key of the
            result, or the test is for clusters and there are none.
    """
    settings = settings or TableSettings()
    keys = list(settings.by)
    for key in keys:
        if key in _OWN:
            raise ValueError(f"by column {key!r} has the name of a key of the result; rename it")
    split = split_labels(frame, keys, settings.separator)
    if settings.test in _CLUSTERED and frame["fact_id"].is_unique:
        raise ValueError(
            f"test={settings.test!r} is for pairs that share clusters, but every pair is a cluster "
            "of its own; name the column of clusters, or take a test for independent pairs"
        )
    rows = paired_by(
        split,
        by=keys,
        pair_id="pair_id",
        rates={name: PAIRED_RATES[name] for name in rates},
        test=settings.test,
        intervals=Intervals(
            level=settings.confidence,
            method=settings.interval,
            n_resamples=settings.resamples,
            rng=settings.seed,
        ),
    )
    records = with_adjusted_p_values(rows).to_dict(orient="records")
    return [_as_object(row, keys, rates) for row in records]


def comparison_text(
    rows: Iterable[Mapping[str, Any]], *, first: str = "first", second: str = "second"
) -> str:
    """Set the rows of `compare_verdicts` as a plain text table.

    Args:
        rows: The rows.
        first: Name of the first condition.
        second: Name of the second condition.

    Returns:
        One line a group below a header: pairs, clusters, cells, rates with their intervals, the
        accuracy of the second condition less that of the first, p, for several groups also after
        Holm's correction, and the form of the test. Undefined numbers are "-".
    """
    table = [_cells(row, first, second) for row in rows]
    if not table:
        return "no group"
    left_out = {"missing"} if all(row["missing"] == "0" for row in table) else set()
    left_out |= {"Holm"} if len(table) == 1 else set()
    table = [{k: cell for k, cell in row.items() if k not in left_out} for row in table]
    header = list(table[0])
    lines = [header, *([row[name] for name in header] for row in table)]
    n_labels = header.index("n")
    return "\n".join(aligned(lines, [place >= n_labels for place in range(len(header))], rule=""))


def split_labels(
    frame: pd.DataFrame, columns: Sequence[str], separator: str | None
) -> pd.DataFrame:
    """Read cells that hold several labels.

    Args:
        frame: The outcomes frame.
        columns: Columns of labels.
        separator: What parts the labels of a cell, such as ";"; None where a cell is one label.

    Returns:
        The frame with lists of labels, or None for empty cells without a separator.

    Raises:
        ColumnNotFoundError: If a column is not there; the message lists those seen.
        DataError: If a cell holds what makes no group; names column and cell.
    """
    result = frame.copy(deep=False)
    for column in columns:
        if column not in frame.columns:
            raise ColumnNotFoundError(
                f"by={column!r} is not among the columns, which are {list(frame.columns)}"
            )
        labels = [_labels(value, separator) for value in frame[column].array]
        for label in chain.from_iterable(one if isinstance(one, list) else [one] for one in labels):
            if isinstance(label, Mapping | list | set):
                raise DataError(
                    f"column {column!r} holds {str(label)[:60]!r}, a {type(label).__name__}, which "
                    "makes no group; name a column of texts or numbers, or of lists of them"
                )
        result[column] = pd.Series(labels, index=frame.index, dtype=object)
    return result


def _labels(value: object, separator: str | None) -> object:
    """Return the labels of a cell; an empty one has none."""
    if not isinstance(value, str):
        return value
    if separator is None:
        return value or None
    return [part.strip() for part in value.split(separator) if part.strip()]


def _as_object(row: Mapping[Any, Any], keys: list[str], rates: Sequence[str]) -> dict[str, Any]:
    """Return one group as JSON has it."""
    test = ("statistic", "p_value", "method", "p_value_holm")
    return {
        **{key: json_value(row[key]) for key in keys},
        **{name: int(row[name]) for name in _COUNTS},
        **{name: json_value(row[name]) for name in rates},
        "mcnemar": {name: json_value(row[f"mcnemar_{name}"]) for name in test},
        "interval": {
            name: [json_value(row[f"{name}_low"]), json_value(row[f"{name}_high"])]
            for name in rates
        },
        **{name: int(row[name]) for name in ("n_missing", "n_clusters")},
    }


def _cells(row: Mapping[str, Any], first: str, second: str) -> dict[str, str]:
    """Return the cells of one line by column."""
    counts = ("n", "n_clusters", *_COUNTS[:4])
    titles = ("n", "clusters", "both", f"{first} only", f"{second} only", "neither")
    line = {key: one_line(str(value)) for key, value in row.items() if key not in _OWN}
    line |= {title: str(row[key]) for title, key in zip(titles, counts, strict=True)}
    for name, (low, high) in row["interval"].items():
        title = _TITLES.get(name, name.replace("_", " "))
        if name == "accuracy_difference":
            title = f"{second} - {first}"
        line[title] = f"{_number(row[name])} [{_number(low)}, {_number(high)}]"
    test = row["mcnemar"]
    line["p"] = _number(test["p_value"], ".3g")
    line["Holm"] = _number(test["p_value_holm"], ".3g")
    line["test"] = "-" if test["p_value"] is None else test["method"]
    line["missing"] = str(row["n_missing"])
    return line


def _number(value: float | None, form: str = ".3f") -> str:
    """Set a rate, or a p-value."""
    return "-" if value is None else format(value, form)
