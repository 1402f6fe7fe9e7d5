"""Formatting of numbers for pages, terminals, figures and JSON.

Only this module converts fractions to percentages.
"""

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

import pandas as pd

from surface_consistency.tables.table import Column, Table
from surface_consistency.text import one_line

UNDEFINED: Final = "–"
"""Text of an undefined value."""

_HARD_SPACE = "\u00a0"
_SMALL_P = 0.001
_SMALL_STAR: Final = 0.01
"""In tables in the form of a paper, smaller p-values have an asterisk."""
_ROUNDING: Final = 1e-12
"""Smaller numbers are rounding errors of 0."""
TERMINAL: Final = 80
"""Width of a terminal, in characters."""
VERDICT_NAMES: Final = {True: "correct", False: "incorrect", None: "not scored"}
"""Names of correctness labels, 1, 0 and missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A number with its interval, as part of a sentence or a list."""

    value: float
    """The number; NaN if it is undefined."""

    low: float | None = None
    """Lower bound; None without interval."""

    high: float | None = None
    """Upper bound; None without interval."""

    kind: Literal["rate", "difference", "number", "decimal", "count", "p_value"] = "rate"
    """Its format: percent, points with sign, plain, three decimals, integer, or a p-value."""

    tone: Literal["plain", "lost", "strong"] = "plain"
    """Its emphasis: none, that of a loss (the saturated colour), or bold."""

    signed: bool = True
    """Whether a difference above zero has a plus sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link to another file in the folder of the page, as part of a sentence."""

    text: str
    """Text of the link."""

    href: str
    """Relative path of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The record of the result that a sentence reports; a part of the sentence without text.

    Pages and results list these records, so that a program can check each sentence against the
    tables.
    """

    kind: Literal["difference", "rate", "equivalence", "count", "test", "none"]
    """Kind of the result: a difference, an estimate, equivalence, a number of things, the p-value
    of a test; or that nothing can be inferred."""

    quantity: str
    """The estimated quantity, such as "accuracy of gpt2"."""

    column: str = ""
    """Column of the estimate in the tables; its bounds are `<column>_low` and `<column>_high`."""

    estimate: float | None = None
    """The estimate as a fraction, or the number of things."""

    low: float | None = None
    """Lower bound of the interval."""

    high: float | None = None
    """Upper bound of the interval."""

    p: float | None = None
    """P-value of the test, corrected if the sentence reports a corrected one."""

    direction: int | None = None
    """1 or -1 if the estimate is claimed to be above or below `null`, 0 if it is not significantly
    different from it; None if it is not compared with it."""

    null: float | None = None
    """The value that the estimate is compared with."""

    margin: float | None = None
    """The equivalence margin."""

    confidence: float = 0.95
    """Level of the interval and of the decision."""

    scope: Mapping[str, str] = field(default_factory=dict)
    """Labels of the row of the table, such as {"model": "gpt2"}, and names of conditions."""

    n: int | None = None
    """Number of observations."""

    n_clusters: int | None = None
    """Number of clusters."""


Part = str | Value | Link | Claim
"""A part of a sentence: text, a number, a link, or a record."""


def is_missing(value: object) -> bool:
    """Return whether a cell is missing.

    Args:
        value: Any value; lists are never missing.

    Returns:
        True for None, NaN and pandas' missing values.
    """
    # The type stubs of pandas have no function for all scalars.
    return value is None or (pd.api.types.is_scalar(value) and bool(pd.isna(value)))  # type: ignore[call-overload]


def json_value(value: object) -> object:
    """Convert a cell to a value that JSON can contain.

    Args:
        value: Any cell: a label, a number of Python or numpy, a list.

    Returns:
        None for missing, undefined and infinite values; a list for arrays and tuples; text for
        other types.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if is_missing(value) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, list | tuple):
        return [json_value(one) for one in value]
    return value if isinstance(value, str | int | float) else str(value)


def is_numeric(column: Column) -> bool:
    """Return whether a column is aligned to the right.

    Args:
        column: The column.

    Returns:
        False for labels, correctness labels and squares.
    """
    return column.kind not in ("label", "verdict", "square")


def format_number(value: float | None, kind: str = "rate", *, signed: bool = True) -> str:
    """Write a number without its unit.

    Args:
        value: The number; rates and differences as fractions.
        kind: "rate" in percent with one decimal; "difference" in points, with its sign; "number"
            with about three digits; "decimal" with three decimals, such as a correlation; "count"
            with thousands separators; "p_value" with two or three decimals, or "< 0.001".
        signed: Whether differences above zero have a plus sign.

    Returns:
        The text, with a minus sign instead of a hyphen; `UNDEFINED` for None and NaN. Numbers below
        1e-12, which are rounding errors of 0, are 0.

    Raises:
        ValueError: If the kind is unknown.

    Examples:
        >>> format_number(0.17349), format_number(-0.082, "difference")
        ('17.3', '−8.2')
        >>> format_number(14489, "count"), format_number(0.5821, "number"), format_number(None)
        ('14,489', '0.58', '–')
        >>> format_number(0.1 + 0.2 - 0.3, "number")
        '0.00'
        >>> [format_number(0.925 + noise, "number") for noise in (-1e-16, 1e-16)]
        ['0.93', '0.93']
        >>> [format_number(0.0005 + noise, "difference") for noise in (-6e-16, 6e-16)]
        ['+0.1', '+0.1']
        >>> format_number(-0.0004, "decimal"), format_number(0.1746, "decimal")
        ('0.000', '0.175')
        >>> format_number(1_400_000_000_001, "number"), format_number(2**63, "count")
        ('1,400,000,000,001', '9,223,372,036,854,775,808')
    """
    if value is None or is_missing(value):
        return UNDEFINED
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    # The last bits of a sum depend on its order; they must not determine how a half is rounded.
    if kind in ("rate", "difference", "decimal"):
        value = round(float(value), 12)
    elif kind == "number" and value != int(value):
        value = float(f"{value:.12g}")
    match kind:
        case "rate":
            text = f"{100 * value:.1f}"
        case "difference":
            text = f"{100 * value:+.1f}" if signed else f"{100 * value:.1f}"
        case "count":
            text = f"{round(value):,}"
        case "p_value":
            if value < _SMALL_P:
                return f"< {_SMALL_P}"
            text = f"{value:.2f}" if value >= 0.0995 else f"{value:.3f}"
        case "number":
            text = _plain(value)
        case "decimal":
            text = f"{value:.3f}"
        case _:
            raise ValueError(
                "kind must be one of rate, difference, number, decimal, count and p_value; got "
                f"{kind!r}"
            )
    if not any(digit in "123456789" for digit in text):
        text = text.lstrip("+-")
    return text.replace("-", "−", 1) if text.startswith("-") else text


def _plain(value: float) -> str:
    """Write a number without unit: integers with thousands separators, others with three digits."""
    size = abs(value)
    if size < _ROUNDING:
        return "0.00"
    if size >= 2 and value == int(value):
        return f"{int(value):,}"
    if size >= 1000:
        return f"{value:,.0f}"
    if size >= 100:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.0995 else f"{value:.2g}"


def format_interval(
    low: float | None, high: float | None, kind: str = "rate", *, signed: bool = True
) -> str:
    """Write an interval in square brackets.

    Args:
        low: Lower bound; None or NaN without one.
        high: Upper bound.
        kind: As for `format_number`.
        signed: As for `format_number`.

    Returns:
        The text, with no-break spaces; empty if a bound is missing.

    Examples:
        >>> format_interval(-0.153, 0.0102, "difference").split()
        ['[−15.3,', '+1.0]']
    """
    if is_missing(low) or is_missing(high):
        return ""
    bounds = (format_number(bound, kind, signed=signed) for bound in (low, high))
    return f"[{f',{_HARD_SPACE}'.join(bounds)}]"


def format_value(value: Value) -> tuple[str, str]:
    """Write a number of a sentence with its unit, and its interval.

    Args:
        value: The number.

    Returns:
        The number, such as "17.3 %", "−8.2 points", "p = 0.039" or "1,080"; and the interval, empty
        without one. Spaces in them are no-break spaces.

    Examples:
        >>> [text.split() for text in format_value(Value(value=0.173, low=0.121, high=0.231))]
        [['17.3', '%'], ['[12.1,', '23.1]']]
    """
    text = format_number(value.value, value.kind, signed=value.signed)
    if text != UNDEFINED:
        match value.kind:
            case "rate":
                text += " %"
            case "difference":
                text += " points"
            case "p_value":
                text = f"p {text}" if text.startswith("<") else f"p = {text}"
    interval = format_interval(value.low, value.high, value.kind, signed=value.signed)
    return text.replace(" ", _HARD_SPACE), interval


def value_text(value: Value) -> str:
    """Write a number of a sentence with its unit and interval.

    Args:
        value: The number.

    Returns:
        Number and interval as in `format_value`, with a space between them.
    """
    return " ".join(filter(None, format_value(value)))


def tick_text(value: float, is_share: bool = True) -> str:
    """Write a value of an axis.

    Args:
        value: The value.
        is_share: Whether it is shown in percent.

    Returns:
        The text, without trailing zeros.
    """
    text = f"{100 * value if is_share else value:.6g}"
    return text.replace("-", "−", 1) if float(text) else "0"


def span_text(counts: Sequence[int]) -> str:
    """Write a count, or the range of several counts.

    Args:
        counts: The counts; the text is empty without any.

    Returns:
        The text, such as "12" or "12–40".
    """
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def interval_value(
    row: Mapping[Any, Any],
    name: str,
    *,
    kind: Literal["rate", "difference", "number", "decimal"] = "rate",
    tone: Literal["plain", "lost", "strong"] = "plain",
) -> Value:
    """Return a number of a row of a table with its interval.

    Args:
        row: The row: `<name>`, and `<name>_low` and `<name>_high` if there is an interval.
        name: Name of the number.
        kind: How it is formatted.
        tone: Its emphasis.

    Returns:
        The number.
    """
    bounds = [row.get(f"{name}_{end}") for end in ("low", "high")]
    known = all(bound is not None and not math.isnan(bound) for bound in bounds)
    low, high = (float(bound) if known else None for bound in bounds)  # type: ignore[arg-type]
    return Value(value=float(row[name]), low=low, high=high, kind=kind, tone=tone)


def sentence_text(parts: Sequence[Part]) -> str:
    """Write a sentence for the terminal.

    Args:
        parts: Words and numbers.

    Returns:
        The sentence, each number with its unit and interval.
    """
    words = []
    for part in parts:
        if isinstance(part, Link):
            words.append(f"{part.text} ({part.href})")
        elif isinstance(part, str):
            words.append(part)
        elif isinstance(part, Value):
            words.append(value_text(part))
    return "".join(words)


def claim_records(parts: Sequence[Part]) -> list[dict[str, object]]:
    """List the records of sentences, for JSON.

    Args:
        parts: Words, numbers and records.

    Returns:
        A dictionary per record, with its `text`: the text between it and the next record.
        Successive records without a text between them have the text after the last of them.
    """
    records: list[dict[str, object]] = []
    text, end = "", len(parts)
    for place, part in reversed([*enumerate(parts)]):
        if isinstance(part, Claim):
            own = sentence_text(parts[place:end]).replace(_HARD_SPACE, " ").strip()
            text, end = own or text, place
            record = {one.name: json_value(getattr(part, one.name)) for one in fields(part)[:-3]}
            counts = {"scope": dict(part.scope), "n": part.n, "n_clusters": part.n_clusters}
            records.insert(0, {"text": text} | record | counts)
    return records


def format_cell(row: Mapping[Any, Any], column: Column) -> tuple[str, str]:
    """Write a cell of a table.

    Args:
        row: The row, by column of the frame.
        column: Description of the column.

    Returns:
        The text; and its interval or the number that follows it, empty without one. A paired square
        is written as its four counts, with slashes.
    """
    if column.kind == "square":
        counts = [row[name] for name in column.cells or ()]
        return "/".join(format_number(count, "count") for count in counts), ""
    value = row[column.key]
    if column.kind == "verdict":
        return VERDICT_NAMES[None if is_missing(value) else bool(value)], ""
    if column.kind != "label":
        low, high = (None if name is None else row[name] for name in (column.low, column.high))
        text, after = format_number(value, column.kind), format_interval(low, high, column.kind)
        if column.star is not None and row[column.star] < _SMALL_STAR:
            text += "*"
        if column.beside is not None and text != UNDEFINED:
            name, kind, form = column.beside
            after = form.format(format_number(row[name], kind)).replace(" ", _HARD_SPACE)
        return text, after
    if is_missing(value):
        return UNDEFINED, ""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return str(column.labels.get(value, value)), ""
    return ", ".join(str(column.labels.get(item, item)) for item in value) or UNDEFINED, ""


def table_text(table: Table, *, brief: bool = False) -> str:
    """Format a table for the terminal.

    Args:
        table: The table.
        brief: Whether to omit the columns that narrow screens do not show.

    Returns:
        The caption, a line of headings with their units, one line per row, and the note; without a
        line feed at the end.
    """
    columns = [one for one in table.columns if one.on_phones or not brief]
    heads = [
        f"{column.title} ({column.unit})" if column.unit else column.title for column in columns
    ]
    rows = [
        [
            one_line(" ".join(filter(None, format_cell(row, column))).replace(_HARD_SPACE, " "))
            for column in columns
        ]
        for row in table.frame.to_dict("records")
    ]
    is_right = [is_numeric(column) for column in columns]
    return "\n".join(filter(None, [table.caption, *aligned([heads, *rows], is_right), table.note]))


def fitted_text(tables: Iterable[Table]) -> str:
    """Format the first of several tables whose width is at most 80 characters.

    Args:
        tables: The same table with decreasing numbers of columns, at least one.

    Returns:
        The text of that table, or of the last one if all are wider.
    """
    for table in tables:
        text = table_text(table)
        lines = text.splitlines()[1 : len(table.frame) + 3]
        if max(map(text_width, lines)) <= TERMINAL:
            break
    return text


def aligned(rows: Sequence[Sequence[str]], is_right: Sequence[bool], rule: str = "-") -> list[str]:
    """Align rows of text in columns.

    Args:
        rows: The rows, the headings first; all of one length.
        is_right: Whether each column is aligned to the right.
        rule: Character of the line below the headings; "" for no line.

    Returns:
        The lines, with two spaces between columns.
    """
    widths = [max(map(text_width, cells)) for cells in zip(*rows, strict=True)]
    rules = [[rule * width for width in widths]] if rule else []
    lines = []
    for row in [rows[0], *rules, *rows[1:]]:
        blanks = [" " * (width - text_width(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = zip(row, blanks, is_right, strict=True)
        lines.append(
            "  ".join(b + cell if right else cell + b for cell, b, right in cells).rstrip()
        )
    return lines


def text_width(text: str) -> int:
    """Return the number of columns that a text occupies in a terminal or in a monospaced font.

    Args:
        text: The text.

    Returns:
        The sum over characters: 1 for most, 2 for wide ones, 0 for combining marks.
    """
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )
