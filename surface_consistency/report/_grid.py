"""A data frame as an HTML table: rates in percent with their intervals, labels in words."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal

from surface_consistency.report._markup import Html, data_text, join, tag
from surface_consistency.report._names import display
from surface_consistency.report._numbers import count, interval, number, p_value, percent

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["grid", "signature_lines"]

_Kind = Literal["label", "count", "rate", "difference", "p_value", "number"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """How one column of a frame is shown."""

    name: str
    title: str
    kind: _Kind
    group: str = ""


_METRICS: Final = (
    _Column(name="n", title="pairs", kind="count", group="scored"),
    _Column(name="n_clusters", title="clusters", kind="count", group="scored"),
    _Column(name="consistency", title="all", kind="rate", group="consistent, %"),
    _Column(
        name="consistency_given_first_correct",
        title="canonical right",
        kind="rate",
        group="consistent, %",
    ),
    _Column(
        name="consistency_given_first_incorrect",
        title="canonical wrong",
        kind="rate",
        group="consistent, %",
    ),
    _Column(name="first_accuracy", title="canonical", kind="rate", group="right, %"),
    _Column(name="second_accuracy", title="redirect", kind="rate", group="right, %"),
    _Column(name="accuracy_difference", title="difference", kind="difference", group="right, %"),
    _Column(name="both", title="both", kind="count", group="pairs right under"),
    _Column(name="first_only", title="canonical only", kind="count", group="pairs right under"),
    _Column(name="second_only", title="redirect only", kind="count", group="pairs right under"),
    _Column(name="neither", title="neither", kind="count", group="pairs right under"),
    _Column(name="mcnemar_p_value", title="McNemar p", kind="p_value", group="test"),
)
_HIDDEN: Final = frozenset(
    {
        "flip_rate",
        "mcnemar_method",
        "mcnemar_statistic",
        "n_missing",
        "n_undefined",
        "negative_flip_rate",
        "positive_flip_rate",
        "signed_alignment",
    }
)
_RATE_ENDS: Final = (
    "rate",
    "accuracy",
    "share",
    "consistency",
    "alignment",
    "disagreement",
    "probability",
    "recall",
    "f1",
)
_SIGNED_ENDS: Final = ("signed_alignment", "difference", "slope")


def grid(frame: "pd.DataFrame", *, caption: str, sources: Sequence[str]) -> Html:
    """Build a table with its caption and the signatures of the runs behind it.

    Columns of paired metrics stand at the right under common heads; what follows from another
    column there, such as the flip rate, is left to the CSV files.
    """
    columns = _columns(frame)
    records = frame.to_dict("records")
    bodies = (
        _body(list(rows), columns) for _, rows in groupby(records, lambda row: row[columns[0].name])
    )
    table = tag("table", tag("caption", caption), _head(columns), *bodies)
    return tag(
        "div",
        tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption),
        signature_lines(sources),
        class_="grid",
    )


def _columns(frame: "pd.DataFrame") -> list[_Column]:
    """Decide what is shown of a frame, in order: labels, other numbers, paired metrics."""
    names = [str(name) for name in frame.columns]
    metrics = _METRICS if "consistency" in names else ()
    skipped = {column.name for column in metrics} | (_HIDDEN if metrics else set())
    rest = [
        _other(name, frame[name])
        for name in names
        if name not in skipped and not _is_bound(name, names)
    ]
    rest.sort(key=lambda column: column.kind != "label")
    return [*rest, *(column for column in metrics if column.name in names)]


def _is_bound(name: str, names: Sequence[str]) -> bool:
    """Tell whether a column is one end of another column's interval."""
    stem = name.removesuffix("_low").removesuffix("_high")
    return stem != name and {stem, f"{stem}_low", f"{stem}_high"} <= set(names)


def _other(name: str, values: "pd.Series[Any]") -> _Column:
    """Describe a column that is no paired metric by its name and type."""
    title = name.replace("_", " ")
    if values.dtype.kind not in "iuf":
        return _Column(name=name, title=title, kind="label")
    if name.endswith(_SIGNED_ENDS):
        return _Column(name=name, title=f"{title}, %", kind="difference")
    if name.endswith(_RATE_ENDS):
        return _Column(name=name, title=f"{title}, %", kind="rate")
    if name.endswith("p_value"):
        return _Column(name=name, title=title.replace("p value", "p"), kind="p_value")
    if name == "n" or name.startswith("n_"):
        return _Column(name=name, title=title.removeprefix("n "), kind="count")
    return _Column(name=name, title=title, kind="number")


def _head(columns: Sequence[_Column]) -> Html:
    """Build the head: common heads above, column titles below."""
    heads = []
    for group, members in groupby(columns, lambda column: column.group):
        span = list(members)
        if group:
            heads.append(tag("th", group, scope="colgroup", colspan=str(len(span)), class_="group"))
            continue
        heads.extend(tag("th", c.title, scope="col", rowspan="2", class_=c.kind) for c in span)
    lower = [tag("th", c.title, scope="col", class_=c.kind) for c in columns if c.group]
    return tag("thead", tag("tr", *heads), tag("tr", *lower))


def _body(rows: Sequence[dict[Any, Any]], columns: Sequence[_Column]) -> Html:
    """Build the rows that share their first value, which stands once beside them."""
    lines = []
    for place, row in enumerate(rows):
        first = _first_cell(row, columns[0], len(rows)) if place == 0 else Html("")
        lines.append(tag("tr", first, *_cells(row, columns[1:])))
    return tag("tbody", *lines)


def _first_cell(row: dict[Any, Any], column: _Column, n_rows: int) -> Html:
    """Build the head of a block of rows."""
    scope = "row" if n_rows == 1 else "rowgroup"
    return tag("th", _shown(row, column), scope=scope, rowspan=str(n_rows), class_=column.kind)


def _cells(row: dict[Any, Any], columns: Sequence[_Column]) -> Iterator[Html]:
    """Build the other cells of a row; labels are heads of their row."""
    for column in columns:
        if column.kind == "label":
            yield tag("th", _shown(row, column), scope="row", class_="label")
        else:
            yield tag("td", _shown(row, column), class_=column.kind)


def _shown(row: dict[Any, Any], column: _Column) -> Html:
    """Write one value, with its interval where the row has one."""
    value = row[column.name]
    if column.kind == "label":
        return data_text(display(column.name, value) if isinstance(value, str) else value)
    if column.kind in ("rate", "difference"):
        signed = column.kind == "difference"
        low, high = (float(row.get(f"{column.name}_{end}", math.nan)) for end in ("low", "high"))
        bounds = interval(low, high, signed=signed)
        point = percent(float(value), signed=signed)
        return join([point, " ", tag("span", bounds, class_="bounds")]) if bounds else join([point])
    write = {"count": count, "p_value": p_value, "number": number}[column.kind]
    return join([write(float(value))])


def signature_lines(sources: Sequence[str]) -> Html:
    """Print the signatures of runs below a table, folded away."""
    lines = [tag("p", signature, class_="source") for signature in sources]
    made = "Made from 1 run" if len(lines) == 1 else f"Made from {len(lines)} runs"
    return tag("details", tag("summary", made), *lines, class_="sources") if lines else join([])
