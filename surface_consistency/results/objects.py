"""Read rows inside one JSON object: tables that pandas wrote, lists under a name, lists of ids."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from surface_consistency.errors import ColumnNotFoundError, DataError
from surface_consistency.reading import first_names, shown
from surface_consistency.results.columns import USUAL, ResultColumns
from surface_consistency.results.names import is_task
from surface_consistency.results.rows import Cells, Flat, Flats
from surface_consistency.rows.readers import Place

_LISTS: Final = (
    *("results", "data", "rows", "samples", "records", "items", "instances", "examples"),
    *("predictions", "details", "evaluations", "scores"),
)
_NAMES: Final = [name for names in USUAL.values() for name in names]
_REMEDY: Final = "write its rows as a list of objects, such as [{'item': 'q1', 'score': 1}]"
_LABEL: Final = "row_label"
"""Column of the labels of rows that may be only their positions."""

_ERROR: Final = re.compile(r"std_?err|standard_?error|\bci_?(low|high|upper|95)")
_COUNT: Final = re.compile(r"n|count|total|((n|num|total)_)?(samples|questions|items|examples)")
_MEAN: Final = ("acc", "accuracy", "exact_match", "em")
"""Names of scores that are 0 or 1 for a single item."""


def holds_rows(row: Cells) -> bool:
    """Return whether an object has no item, but has a list of objects under a usual name."""
    return bool(_lists(row)) and not _has(_scalars(row), USUAL["item"])


def rows_within(row: Cells, place: Place, given: ResultColumns) -> list[Cells]:
    """Find the rows in one object.

    Args:
        row: The object.
        place: Its place, for messages.
        given: The columns that the user names; an object that has them is a row.

    Returns:
        The rows, or only the object if it is a row. Model and task of the object are added to rows
        without them.

    Raises:
        ColumnNotFoundError: If it is not a row and contains no rows, or several lists or layouts
            match.
        DataError: If it could either be a row or contain rows; or if it is a summary.
    """
    scalars, lists = _scalars(row), _lists(row)
    is_item = _has(scalars, (*given.item, *USUAL["item"]))
    named = filter(None, (given.score, given.prediction))
    is_row = _has(scalars, (*USUAL["score"], *USUAL["prediction"], *named)) and not lists
    if is_item and lists:
        raise DataError(f"{place} could be one row, or contain rows under {lists[0]}; {_REMEDY}")
    if is_item or (is_row and _has(row, USUAL["item"])):
        return [row]
    is_row = is_row and any(isinstance(row[name], str) for name in scalars)
    rows = [row] if is_row else _rows(row, place, given)
    if not _has(scalars, USUAL["prediction"]) and (is_row or not rows):
        inner = {str(n): cell if isinstance(cell, dict) else {} for n, cell in row.items()}
        _reject_summary({"": {name: row[name] for name in scalars}, **inner}, place)
    if not rows:
        raise ColumnNotFoundError(
            f"{place} is one object with the fields {first_names(list(row))}, in which no rows are "
            f"found; {_REMEDY}"
        )
    context = {name: row[name] for name in (*USUAL["model"], *USUAL["task"]) if name in scalars}
    return [{**context, **one} for one in rows]


def _rows(row: Cells, place: Place, given: ResultColumns) -> list[Cells] | None:
    """Find rows by the shape of an object; None if it has none of the shapes, or several."""
    cells, names, data = list(row.values()), row.get("columns"), row.get("data")
    if isinstance(names, list) and isinstance(data, list):
        labels = [str(label) for label in row.get("index") or ()]
        if len({*labels}) < len(data):
            labels = [str(number) for number in range(len(data))]
        if not all(isinstance(one, list) and len(one) == len(names) for one in data):
            return None
        rows = [dict(zip(names, one, strict=True)) for one in data]
        return _named(dict(zip(labels, rows, strict=False)), place, given)
    if len(cells) > 1 and any(cell in (0, 1) for cell in cells) and all(map(_is_label, cells)):
        if _has(row, _NAMES) or any("@" in name for name in row):
            return None
        _reject_summary({name: {} for name in row}, place)
        return [{"item": name, "score": cell} for name, cell in row.items()]
    lists = [cell for cell in cells if _is_rows(cell)]
    if lists:
        usual = [row[name] for name in _lists(row)] or lists
        return usual[0] if len(usual) == 1 else None
    if all(isinstance(cell, dict) and cell for cell in cells):
        by_column, by_row = _has(row, _NAMES), all(_has(cell, _NAMES) for cell in cells)
        if by_column and not by_row:
            inner = dict.fromkeys(label for cell in cells for label in cell)
            columns = {n: {name: row[name].get(n) for name in row} for n in inner}
            return _named(columns, place, given)
        if by_row and not by_column:
            return _named(row, place, given)
    parts = [row[name] for name in _LISTS if isinstance(row.get(name), dict)]
    return _rows(parts[0], place, given) if len(parts) == 1 else None


def _named(rows: Mapping[str, Cells], place: Place, given: ResultColumns) -> list[Cells]:
    """Use the labels of rows as items if no column names the items.

    Labels that are the positions of the rows, the default in a frame, become a column that the user
    may name.
    """
    if any(_has(one, (*given.item, *USUAL["item"])) for one in rows.values()):
        return list(rows.values())
    _reject_summary(rows, place)
    column = _LABEL if {*rows} == {*map(str, range(len(rows)))} else "item"
    return [{column: name, **one} for name, one in rows.items()]


def _reject_summary(rows: Mapping[str, Cells], place: Place) -> None:
    """Reject means by task, model or run, which are detected from labels and fields."""
    for label, one in rows.items():
        fields = {str(name).partition(",")[0].casefold(): cell for name, cell in one.items()}
        numbers = {n: one for n, one in fields.items() if isinstance(one, int | float)}
        means = {n for n in {*numbers} & {*USUAL["score"]} if not _is_label(numbers[n])}
        is_mean = not (label and means.isdisjoint(_MEAN)) or any(map(_COUNT.fullmatch, fields))
        has_error = any(map(_ERROR.search, fields))
        if has_error or (means and is_mean) or is_task(label):
            raise DataError(
                f"{place} is a summary ({first_names([*filter(None, [label]), *one])}): it "
                "contains one score per task, model or run, not one per item; use the file of "
                "samples, which lm-eval writes with --log_samples; or, if these are items, "
                f"{_REMEDY}"
            )


def _is_label(cell: object) -> bool:
    """Return whether a value is a correctness label, or marks a missing one."""
    return cell in (0, 1, None) or cell != cell


def _scalars(row: Cells) -> list[str]:
    """List the fields with one value."""
    return [name for name, cell in row.items() if not isinstance(cell, list | dict)]


def _lists(row: Cells) -> list[str]:
    """List the fields with objects under a usual name of rows."""
    return [name for name in _LISTS if _is_rows(row.get(name))]


def _has(columns: Iterable[object], wanted: Iterable[str]) -> bool:
    """Return whether columns contain one of the wanted names, in any spelling."""
    return not {*map(_folded, columns)}.isdisjoint(map(_folded, wanted))


def _folded(name: object) -> str:
    """Normalize a name: no case, no separators, no filter of lm-evaluation-harness."""
    return "".join(filter(str.isalnum, str(name).partition(",")[0])).casefold()


def _is_rows(cell: object) -> bool:
    """Return whether a value is a list of objects that is not empty."""
    return isinstance(cell, list) and bool(cell) and all(isinstance(one, dict) for one in cell)


def swe_bench(row: Cells, place: Place) -> Flats | None:
    """Read the report of a run of SWE-bench, which lists instances by their outcome.

    An empty patch is a blank answer, which is incorrect. An instance whose tests were not run,
    because of an error or because it was not submitted, has no score.
    """
    lists = {
        name.removesuffix("_ids"): {*map(str, cell)}
        for name, cell in row.items()
        if isinstance(cell, list) and all(isinstance(one, str) for one in cell)
    }
    if "resolved" not in lists:
        return None
    for name, cell in row.items():
        if name.endswith("_ids") and cell is not None and name.removesuffix("_ids") not in lists:
            raise ValueError(f"{name} is {shown(cell)}, which is not a list of instances")
    if lists.keys().isdisjoint(("unresolved", "completed", "submitted", "generated", "failed")):
        raise DataError(
            f"{place.source} lists only the resolved instances of SWE-bench, so the number of "
            "others is not known; use the report of the run, which has unresolved_ids"
        )
    errors = {
        one: f"{name.replace('_', ' ')}, as SWE-bench reports"
        for name in ("incomplete", "no_logs", "pending", "error")
        for one in lists.get(name, set()) - lists["resolved"]
    }
    ids = set().union(*(lists[name] for name in lists if name not in _OTHER_LISTS))
    texts = dict.fromkeys(lists.get("empty_patch", set()) | lists.get("no_generation", set()), "")
    parts = [{"id": n, "error": errors.get(n), "prediction": texts.get(n)} for n in sorted(ids)]
    return [Flat(part, {"resolved": part["id"] in lists["resolved"]}, {}) for part in parts]


_OTHER_LISTS: Final = ("unstopped_containers", "unremoved_images")


def evalplus(row: Cells, place: Place) -> Flats | None:
    """Read results of evalplus or BigCodeBench by task; several solutions are its repeats."""
    if not isinstance(row["eval"], Mapping):
        return None
    flats = []
    for task, solutions in row["eval"].items():
        for repeat, one in enumerate(solutions):
            statuses = {name: one.get(f"{name}_status") for name in ("base", "plus")}
            statuses["passed"] = one.get("status")
            scores = {name: _PASSED[end] for name, end in statuses.items() if end is not None}
            if "plus" in scores:
                scores["plus"] &= scores["base"]
            parts = {"id": task, "repeat": repeat, "prediction": one.get("solution")}
            flats.append(Flat(parts, scores, {}))
    return flats


_PASSED: Final = {"pass": True, "fail": False, "timeout": False}
