"""Anyone's verdicts under two conditions, from one file or data set, as the outcomes frame.

Read are CSV, TSV, JSONL, JSON and Parquet files, `datasets.Dataset`, frames and rows, with one row
a pair or one row a fact and condition.
"""

import logging
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal

import pandas as pd

from surface_consistency.analysis.settings import PairSettings
from surface_consistency.errors import DataError, RecordError
from surface_consistency.metrics.outcome_frames import outcomes_frame
from surface_consistency.reading import find_column
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.frame import read_results, table_or_rows
from surface_consistency.results.inputs import ResultSource, inputs_of
from surface_consistency.results.layouts import flat_rows
from surface_consistency.results.samples import is_sample
from surface_consistency.schemas.generations import replace_surrogates

_LOG: Final = logging.getLogger(__name__)
_OURS: Final = ("first_correct", "second_correct")


def read_verdicts(
    source: ResultSource,
    pairs: PairSettings,
    columns: ResultColumns | None = None,
    *,
    missing: Literal["drop", "wrong"] = "drop",
    within: str | Sequence[str] | None = (),
) -> pd.DataFrame:
    """Read verdicts as the outcomes frame.

    Two shapes are read. One row a pair: `first` and `second` are its columns of verdicts. One row
    a fact and condition: `condition` names the column whose values `first` and `second` are, `item`
    what pairs the rows ("item" by default) and `score` their verdicts ("correct"). Files of
    several models are compared by `analysis.compare`.

    Args:
        source: A file; a DataFrame, `datasets.Dataset` or rows. In CSV and TSV all cells are text:
            a label "NA" stays a label, an empty verdict is missing. Columns and conditions may
            differ from their names in case and white space.
        pairs: The two conditions.
        columns: Items, score, cluster, and what to call the conditions (`names`).
        missing: What a blank verdict counts as.
        within: As for `metrics.outcomes_frame`.

    Returns:
        The frame of `metrics.outcomes_frame`. The conditions are called as the columns are; those
        of the columns `first_correct` and `second_correct` as such a file names them.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a named column is not there; the message lists those seen.
        RecordError: If a line is broken, or a text cannot be written.
        DataError: If a file is of no known format, or a data set has several splits; if there are
            several files or clusters, or other than two labels.
        TypeError: If what is given holds no rows, or a row is no mapping.
        ValueError: For what `metrics.outcomes_frame` refuses, cells that are no verdicts among it,
            or if a condition is not named.
    """
    columns = columns or ResultColumns()
    names, condition = pairs.conditions, pairs.condition
    name, frame = _cells(source)
    facts, verdict = columns.item or ("item",), columns.score or "correct"
    if condition is not None and is_sample(dict.fromkeys(map(str, frame))):
        frame = _samples(source, condition, facts, columns)
        facts, verdict = ("item",), "score"
    cluster = _only(columns.cluster, "cluster")
    wanted = names if condition is None else (verdict, *facts)
    frame = _with_near_names(frame, filter(None, [cluster, pairs.pair, condition, *wanted]))
    if condition is not None and condition in frame:
        frame = _with_plain_labels(frame, condition, names)
    try:
        outcomes = outcomes_frame(
            frame,
            first=names[0],
            second=names[1],
            condition=condition,
            score=verdict,
            item=facts[0] if len(facts) == 1 else facts,
            cluster=cluster,
            pair=pairs.pair,
            within=within,
        )
    except ValueError as error:
        text = re.sub("fact(?=[=`])", "item", str(error)).replace("correct=", "score=")
        raise type(error)(f"{name}: {text}") from error
    if missing == "wrong":
        outcomes[list(_OURS)] = outcomes[list(_OURS)].fillna(False)
    return outcomes.assign(**_called(outcomes, names, columns))


def _called(
    outcomes: pd.DataFrame, names: tuple[str, str], columns: ResultColumns
) -> dict[str, str]:
    """Say what the conditions are called."""
    keys = ("first_condition", "second_condition")
    if len(columns.names) not in (0, 2):
        raise DataError(
            f"`names` names the two conditions; got {', '.join(columns.names)}: give two, or none"
        )
    own = [outcomes[key].unique() for key in keys]
    if not columns.names and names == _OURS and all(len(one) == 1 for one in own):
        return dict(zip(keys, (str(one[0]) for one in own), strict=True))
    return dict(zip(keys, columns.names or names, strict=True))


def _only(values: Sequence[str], flag: str) -> str | None:
    """Return the one column that may be named."""
    if len(values) > 1:
        raise DataError(f"--{flag} takes one column of two conditions; got {', '.join(values)}")
    return values[0] if values else None


def _cells(source: ResultSource) -> tuple[str, pd.DataFrame]:
    """Read a source as one table, by columns where that can be; say what it is called."""
    first, *others = inputs_of(source, ResultColumns())
    if others:
        raise DataError(
            f"{source} are several files; give one that holds both conditions, or compare the "
            "files as models, without `first` and `second`"
        )
    table, rows = table_or_rows(first)
    if table is None:
        cells = [flat.row() for flat in flat_rows(rows, Path(first.name), [])[1]]
        names = dict.fromkeys(name for row in cells for name in row)
        table = pd.DataFrame(
            {name: pd.Series([row.get(name) for row in cells], dtype=object) for name in names}
        )
    if table.empty:
        raise DataError(f"{first.name} holds no rows, so no verdicts; check how it was written")
    _refuse_surrogates(first.name, table)
    return first.name, table


def _refuse_surrogates(name: str, table: pd.DataFrame) -> None:
    """Refuse half a surrogate pair, which JSON can spell and no file in UTF-8 can hold."""
    for column in table.columns[table.dtypes.map(pd.api.types.is_object_dtype)]:
        for row, text in enumerate(table[column], start=1):
            if isinstance(text, str) and not text.isascii() and replace_surrogates(text) != text:
                raise RecordError(
                    f"{name}: row {row:,}: column {column!r} holds half a surrogate pair, "
                    f"{text[:60]!r}, which cannot be written; replace it in the file"
                )


def _with_near_names(frame: pd.DataFrame, wanted: Iterable[str]) -> pd.DataFrame:
    """Give columns the names by which they are asked for, from which they differ in writing."""
    columns = list(map(str, frame.columns))
    near = {own: name for name in wanted if (own := find_column(name, columns)) is not None}
    return frame.set_axis([near.get(name, name) for name in columns], axis=1)


def _with_plain_labels(frame: pd.DataFrame, condition: str, names: tuple[str, str]) -> pd.DataFrame:
    """Read labels of conditions that differ in white space or case alone; say what is left out."""
    near = {name.strip().casefold(): name for name in names}
    labels = {label: label for label in frame[condition].dropna().unique()}
    if len(near) == len(names):
        labels |= {one: near.get(str(one).strip().casefold(), one) for one in {*labels} - {*names}}
    there = {*map(str, labels.values())}
    others = [label for label in map(str, labels.values()) if label not in names]
    if others and there >= {*names}:
        _LOG.warning(
            "left out: rows whose %s is %s; to compare all of them, name the column by `model`",
            condition,
            ", ".join(map(repr, others[:5])) + (" or others" if len(others) > 5 else ""),
        )
    return frame.assign(**{condition: frame[condition].map(labels)})


def _samples(
    source: ResultSource, condition: str, facts: Sequence[str], columns: ResultColumns
) -> pd.DataFrame:
    """Read samples of the harness, of one metric."""
    wanted = () if columns.score is None else (columns.score,)
    named = ResultColumns(item=tuple(facts), form=condition, metrics=wanted)
    frame = read_results(source, named).frame
    metrics = list(dict.fromkeys(frame["metric"]))
    if len(metrics) > 1:
        raise DataError(
            f"the samples hold scores by {', '.join(metrics)}: choose one by `score`, in Python "
            "`score`"
        )
    return frame.rename(columns={"form": condition})
