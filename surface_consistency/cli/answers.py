"""Read result files of any tool into the frames of `accuracy`, `consistency` and `paired`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from surface_consistency.analysis._columns import (
    answers_of,
    of_study,
    read_scores,
    read_table,
    to_frame,
)
from surface_consistency.analysis.doubts import missing_answers, no_scores
from surface_consistency.analysis.settings import RuleSettings
from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.reading import first_names, shown
from surface_consistency.results.columns import ResultColumns, need_column
from surface_consistency.results.failures import COMMON
from surface_consistency.results.frame import read_results
from surface_consistency.results.run_folders import is_run
from surface_consistency.text import did_you_mean

_OF_PAIRS: Final = ("item", "cluster", "model", "repeat")
"""Columns of a table of pairs that may be named."""


def read_answers(
    sources: Sequence[Path],
    columns: ResultColumns,
    scoring: RuleSettings,
    *,
    by: Sequence[str] = (),
) -> tuple[pd.DataFrame, dict[str, Any], list[str], tuple[str, ...]]:
    """Read result files with one row per answer.

    Args:
        sources: Files or folders of results of any tool, or run folders.
        columns: Names of columns if they are not standard names.
        scoring: Rule that scores the answers, if it replaces the scores of the files.
        by: Columns of groups.

    Returns:
        The frame of `read_results`; the arguments item, cluster, model and repeat for this frame;
        notes on the files; and warnings about the answers, which are printed after the finding.

    Raises:
        DataError: If there are several tasks or metrics that are not groups, or answers without
            scores; otherwise as for `read_results`.
        ValueError: If there is no file, or several clusters are named.
    """
    if not sources:
        raise ValueError("no results are given; pass one or more result files or folders")
    cluster = _only(columns.cluster, "cluster")
    results = read_results(list(sources), columns, has_answers=scoring.rule is not None)
    frame, doubts, notes = answers_of(results, scoring, by)
    if frame["score"].isna().all():
        raise no_scores(frame, notes)
    # Columns with a role are named after it; columns of groups keep the names in the files.
    named = {role: getattr(columns, role) for role in ("task", "model", "form", "metric", "repeat")}
    own = {name: frame[role] for role, name in named.items() if name and name not in frame}
    doubts = (*(text for _, text in missing_answers(frame)), *doubts)
    unused = {"prediction", "error", "content", "file", COMMON}
    frame = frame.assign(**own).drop(columns=unused & {*frame} - {*by})
    if (frame["form"] == "").all():
        frame = frame.drop(columns="form")
    cluster = "item" if (cluster,) == columns.item else cluster
    repeat = "repeat" if frame["repeat"].nunique() > 1 else None
    arguments = {"item": "item", "cluster": cluster, "repeat": repeat}
    return frame, arguments, list(notes), doubts


def read_pairs(
    source: Path,
    columns: ResultColumns,
    given: Mapping[str, Any],
    scoring: RuleSettings,
    *,
    condition: str | None = None,
) -> tuple[pd.DataFrame, dict[str, Any], list[str], tuple[str, ...]]:
    """Read one file with two conditions.

    Args:
        source: The file.
        columns: Names of columns if they are not standard names.
        given: The arguments of `paired`; `first` and `second` name columns of scores, or values of
            `condition`.
        scoring: Rule that scores the answers, if there is one row per item and condition.
        condition: Column of the condition, if there is one row per item and condition.

    Returns:
        A frame with one row per pair, the arguments of `paired` for this frame, notes and warnings.

    Raises:
        ColumnNotFoundError: If a column is not in the file.
        DataError: If the file has no rows, a cell is not a score, an item has several rows per
            condition, a group differs between the conditions, or no item has both conditions.
        ValueError: If `first` or `second` is not named, or an option has no effect.
    """
    scoring.check()
    defaults = {} if condition else {role: f"{role}_correct" for role in ("first", "second")}
    given = defaults | dict(given)
    first, second = (given.get(role) for role in ("first", "second"))
    if condition is None and is_run(source) and scoring.rule is None:
        return to_frame(source, (str(first), str(second)), by=given.get("by", ())), {}, [], ()
    if first == second or first is None or second is None:
        what = "column of scores" if condition is None else f"value of {condition}"
        raise ValueError(f"name the two conditions by `first` and `second`, each a {what}")
    if condition is None:
        return *_score_columns(source, columns, given, scoring), [], ()
    if "pair" in given:
        raise ValueError("`pair` has no effect with `condition`, whose pairs are items; omit it")
    by = given.get("by", ())
    columns = columns.model_copy(update={"form": condition})
    frame, named, notes, doubts = read_answers([source], columns, scoring, by=by)
    frame, more = _side_by_side(frame, condition, (first, second), [*by, named["cluster"]])
    sides = {"first": "first_correct", "second": "second_correct", "pair": "item"}
    return frame, named | sides, [*notes, *more], doubts


def _side_by_side(
    frame: pd.DataFrame, condition: str, values: tuple[str, str], groups: Sequence[str | None]
) -> tuple[pd.DataFrame, list[str]]:
    """Put the scores of an item under two conditions into one row."""
    form, sides = frame.get("form", pd.Series("", frame.index)).astype(str), []
    for role, value in zip(("first", "second"), values, strict=True):
        known = sorted({*form})
        if value not in known:
            raise ColumnNotFoundError(
                f"`{role}={value}` is not a value of column {shown(condition)}"
                f"{did_you_mean(value, known)}; there are {first_names(known)}"
            )
        sides.append(frame[form == value])
    keys = ["task", "model", "metric", "item", "repeat"]
    labels = [name for name in groups if name is not None and name in frame and name not in keys]
    one = sides[0][[*keys, *labels, "score"]].add_suffix("_of_first")
    both = sides[1].merge(one, left_on=keys, right_on=[f"{name}_of_first" for name in keys])
    if both.empty:
        raise DataError(
            f"no item has a row under both {shown(values[0])} and {shown(values[1])}; name the "
            "column that identifies an item by `item`"
        )
    for name in labels:
        differs = both[name].astype(str) != both[f"{name}_of_first"].astype(str)
        if differs.any():
            raise DataError(
                f"column {shown(name)} of item {shown(both.loc[differs, 'item'].iloc[0])} differs "
                f"between {shown(values[0])} and {shown(values[1])}; name a column that is the "
                "same for both"
            )
    notes = []
    if n_alone := len(sides[0]) + len(sides[1]) - 2 * len(both):
        notes.append(f"{n_alone:,} rows under only one of the two conditions are excluded.")
    if n_other := len(frame) - len(sides[0]) - len(sides[1]):
        notes.append(f"{n_other:,} rows with other values of {condition} are excluded.")
    frame = both.assign(
        first_correct=both["score_of_first"], second_correct=both["score"],
        first_condition=values[0], second_condition=values[1],
    )  # fmt: skip
    return frame, notes


def _score_columns(
    source: Path, columns: ResultColumns, given: Mapping[str, Any], scoring: RuleSettings
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read a table with one row per pair and a column of scores per condition."""
    unused = [f"`{name}`" for name in columns.model_fields_set if name not in _OF_PAIRS]
    if unused := sorted([*unused, *(["`rule`"] if scoring.rule else [])]):
        raise ValueError(
            f"{', '.join(unused)} without `condition` has no effect: every row is a pair; omit it, "
            "or name the column of the condition by `condition`"
        )
    named = {role: name for role in _OF_PAIRS if (name := _only(getattr(columns, role), role))}
    table = read_table(source)
    names = list(map(str, table.columns))
    wanted = {**named, **{role: str(given[role]) for role in ("first", "second")}}
    found = {need_column(name, names, role, source.name): name for role, name in wanted.items()}
    table = table.set_axis([found.get(name, name) for name in names], axis=1)
    scores = {
        wanted[role]: read_scores(table[wanted[role]], source) for role in ("first", "second")
    }
    table = table.assign(**scores)
    return of_study(table), named


def _only(values: str | Sequence[str] | None, role: str) -> str | None:
    """Return the one column that may be named."""
    if values is None or isinstance(values, str):
        return values
    if len(values) > 1:
        raise ValueError(f"`{role}` takes one column; got {', '.join(values)}")
    return values[0] if values else None
