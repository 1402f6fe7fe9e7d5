"""Tables of a page: headings as a view, rows as markup, because a page may have thousands of rows.

The style sheet sets the common properties of the cells of a column. Numbers are flush right, cells
with `dir` contain text, and the bar below an interval has the colour of its row. The script sorts
rows by their text.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from markupsafe import Markup, escape

from surface_consistency.clusters import FEW_CLUSTERS
from surface_consistency.report.charts import View
from surface_consistency.report.colours import model_style
from surface_consistency.report.layout import CELLS, Scale, nice_scale, square_cells
from surface_consistency.report.page import MosaicPlot
from surface_consistency.tables.latex import latex_table
from surface_consistency.tables.numbers import format_cell, is_missing, is_numeric, tick_text
from surface_consistency.tables.table import Column, Table

_UNITS: Final = {"rate": " %", "difference": " points"}
_BAR: Final = 84
_TINY: Final = 28
_SHORT: Final = 28
_BROKEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff]"
)
_LONG_WORD: Final = re.compile(r"(\S{18,})")
_SEAMS: Final = re.compile(r"(?<=[/_.:=@+-])(?=\w)")


def table_view(table: Table, models: Sequence[str]) -> View:
    """Make the view of a table.

    Args:
        table: The table.
        models: Labels of the models of the page.

    Returns:
        The values of the template.
    """
    columns = list(table.columns)
    scales = {column.key: _bar_scale(table, column) for column in columns}
    rows = list(_rows(table, scales, models))
    bars = ", ".join(
        f"{column.title} {tick_text(scale.low, column.kind in _UNITS)} to "
        f"{tick_text(scale.high, column.kind in _UNITS)}{_UNITS.get(column.kind, '')}"
        for column in columns
        if (scale := scales[column.key]) is not None
    )
    has_few = table.cluster_column is not None and any(_is_few(table))
    notes = (table.note, f"Grey rows have fewer than {FEW_CLUSTERS} clusters." if has_few else "")
    spans = [(title, len(list(group))) for title, group in groupby(columns, lambda c: c.group)]
    return {
        "table": table,
        "groups": spans if any(title for title, _ in spans) else [],
        "heads": [_head(column) for column in columns],
        "off_phones": [place for place, one in enumerate(columns, 1) if not one.on_phones],
        "rows": rows,
        "note": " ".join(filter(None, notes)),
        "bars": bars and f"Bars: {bars}.",
        "latex": table.label and latex_table(table, caption=table.caption, label=table.label),
    }


def _head(column: Column) -> View:
    """Make the view of the heading of a column."""
    rises = column.direction == "lower" or column.kind in ("label", "p_value")
    return {
        "title": column.title,
        "unit": f"{column.unit}{' [interval]' if column.low else ''}".strip(),
        "css": " ".join(["n"] * is_numeric(column) + ["phone-off"] * (not column.on_phones)),
        "first": "ascending" if rises else "descending",
    }


def _is_few(table: Table) -> list[bool]:
    """Return for each row whether it has few clusters."""
    if table.cluster_column is None:
        return [False] * len(table.frame)
    return (table.frame[table.cluster_column] < FEW_CLUSTERS).tolist()


def _rows(
    table: Table, scales: Mapping[str, Scale | None], models: Sequence[str]
) -> Iterator[Markup]:
    """Yield the rows of a table as markup."""
    places = {label: place for place, label in enumerate(models)}
    for row, is_few in zip(table.frame.to_dict("records"), _is_few(table), strict=True):
        index = None if table.model is None else places.get(str(row.get(table.model)))
        hue, shape = model_style(index or 0)
        css = " ".join([f"m{hue}"] * (index is not None) + ["few"] * is_few)
        cells = "".join(
            _model_cell(models[index], shape)
            if index is not None and column.key == table.model
            else _cell(row, column, scales[column.key], shape)
            for column in table.columns
        )
        yield Markup(f'<tr class="{css}">{cells}</tr>' if css else f"<tr>{cells}</tr>")


def _model_cell(label: str, shape: str) -> str:
    """Render the cell of a model with its marker."""
    css = ' class="short"' if len(label) <= _SHORT else ""
    marker = f'<svg class="marker"><use href="#k-{shape}"/></svg>'
    return f'<td dir="auto"{css}>{marker}{soft(label)}</td>'


def _cell(row: Mapping[Any, Any], column: Column, scale: Scale | None, shape: str) -> str:
    """Render a cell."""
    text, interval = format_cell(row, column)
    match column.kind:
        case "square":
            return _square_cell([row[name] for name in column.cells or ()], text)
        case "label":
            return f'<td dir="auto">{soft(text)}</td>'
        case "verdict" if not is_missing(row[column.key]):
            css, sign = ("ok", "✓") if row[column.key] else ("no", "✗")
            return f'<td dir="auto" class="{css}">{sign} {text}</td>'
        case "verdict":
            return f'<td dir="auto">{text}</td>'
    text = text.replace("<", "&lt;")
    if not interval:
        return f"<td>{text}</td>"
    bar = ""
    if scale is not None:
        ends = (0.0, row[column.low], row[column.high], row[column.key])
        zero, low, high, value = (_short(_BAR * scale.share(float(end))) for end in ends)
        bar = (
            f'<svg><path d="M{zero} 0V9"/><path d="M{low} 4.5H{high}"/>'
            f'<use href="#b-{shape}" x="{value}"/></svg>'
        )
    return f"<td>{text} <i>{interval}</i>{bar}</td>"


def _square_cell(values: Sequence[Any], text: str) -> str:
    """Render a small mosaic plot; rows are sorted by its proportion of flips."""
    counts = [0 if is_missing(value) else int(value) for value in values]
    named: dict[str, Any] = dict(zip(CELLS, counts, strict=True))
    paths = ""
    for cell in square_cells(MosaicPlot(title=text, model=None, **named)):
        left, top = _short(_TINY * cell.x), _short(_TINY * cell.y)
        right = _short(_TINY * (cell.x + cell.width))
        bottom = _short(_TINY * (cell.y + cell.height))
        paths += f'<path d="M{left} {top}H{right}V{bottom}H{left}Z"/>'
    flips = f"{(counts[1] + counts[2]) / sum(counts):.4g}" if any(counts) else ""
    return (
        f'<td data-v="{flips}"><svg class="tiny" role="img"><title>{text}</title>{paths}</svg></td>'
    )


def _short(length: float) -> str:
    """Write a length to a tenth of a pixel."""
    return f"{length:.1f}".removesuffix(".0")


def _bar_scale(table: Table, column: Column) -> Scale | None:
    """Choose the scale of the bars of a column; None for a column without intervals."""
    if column.low is None or column.high is None or not is_numeric(column):
        return None
    values = table.frame[[column.key, column.low, column.high]].to_numpy(dtype=float).ravel()
    known = [float(value) for value in values if math.isfinite(value)]
    if not known:
        return None
    if column.kind == "difference":
        end = nice_scale(0.0, max(0.01, *map(abs, known)), n_ticks=4).high
        return Scale(low=-end, high=end, ticks=(0.0,))
    scale = nice_scale(min(0.0, *known), max(0.01, *known), n_ticks=5)
    return nice_scale(scale.low, 1.0) if column.kind == "rate" and scale.high > 1 else scale


def clean(value: object) -> object:
    """Replace characters that are not allowed in HTML, such as NUL and unpaired surrogates.

    Args:
        value: Any value; markup and values that are not texts are returned unchanged.

    Returns:
        The value.
    """
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return _BROKEN.sub("\ufffd", value.replace("\r\n", "\n").replace("\r", "\n"))


def soft(value: object) -> Markup:
    """Allow line breaks in long words after punctuation, such as the slash of a model's name.

    Args:
        value: The text.

    Returns:
        The text as markup.
    """
    pieces = _LONG_WORD.split(str(clean(str(value))))
    for place in range(1, len(pieces), 2):
        pieces[place] = Markup("<wbr>").join(_SEAMS.split(pieces[place]))
    return Markup("").join(map(escape, pieces))
