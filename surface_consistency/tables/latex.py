"""Tables in LaTeX, for results and for pages."""

import re
import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from surface_consistency.tables.numbers import format_cell, is_numeric
from surface_consistency.tables.table import Column, Table
from surface_consistency.text import one_line, printable

_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "−": "$-$",
    "–": "--",
    "±": r"$\pm$",
    "∞": r"$\infty$",
    "ρ": r"$\rho$",
    "Δ": r"$\Delta$",
    "\u00a0": "~",
    "`": r"\textasciigrave{}",
    '"': r"\char34{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}
"""LaTeX of special characters."""

_WIDTH: Final = 68
"""Maximum width of a table in characters of normal size, about the text width of an article."""

_GAP: Final = 2
"""Width of the gap between two columns, in characters."""

_HEADING: Final = 10
"""Width of the lines of a broken heading, in characters, if the cells below it are narrower."""

_LIGATURE: Final = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=,)(?=,)")
"""Positions between characters that TeX joins to a dash or a quotation mark."""


def table_cells(table: Table) -> tuple[list[str], list[list[str]]]:
    """Write the headings and cells of a table.

    Args:
        table: The table.

    Returns:
        The headings with their units, and the rows; each text is on one line.
    """
    rows = [
        [one_line(" ".join(filter(None, format_cell(row, one)))) for one in table.columns]
        for row in table.frame.to_dict("records")
    ]
    return [heading(column) for column in table.columns], rows


def heading(column: Column) -> str:
    """Write the heading of a column.

    Args:
        column: The column.

    Returns:
        Its title, with the unit in parentheses if there is one.
    """
    return f"{column.title} ({column.unit})" if column.unit else column.title


def latex_text(text: str) -> str:
    r"""Escape a text for LaTeX, so that no part of it is markup.

    Args:
        text: The text.

    Returns:
        The text on one line, with special characters escaped. Line breaks, tabs and control
        characters are escapes such as `\n`, and `--` is two hyphens.
    """
    parts = _LIGATURE.split(printable(one_line(text)))
    return "{}".join("".join(_LATEX.get(mark, mark) for mark in part) for part in parts)


def latex_table(table: Table, *, caption: str, label: str) -> str:
    r"""Write a table in LaTeX.

    Args:
        table: The table. Columns of numbers are flush right; neighbouring columns of one group
            share a heading. A table that is wider than the text of an article has headings of
            several lines and, if this is not sufficient, smaller type and narrow gaps.
        caption: Caption, as plain text.
        label: Label for references.

    Returns:
        A `table` environment. It needs `\usepackage{booktabs}` and, for labels that are not ASCII,
        a Unicode engine.
    """
    heads, rows = table_cells(table)
    first, *lines = map(_line, (heads, *rows))
    widths = [max(map(len, cells)) for cells in zip([""] * len(heads), *rows, strict=True)]
    setup = []
    if _width([[head] for head in heads], widths) > _WIDTH:
        broken = [_broken(head, width) for head, width in zip(heads, widths, strict=True)]
        if (width := _width(broken, widths)) > _WIDTH:
            size = r"\scriptsize" if width > 1.45 * _WIDTH else r"\footnotesize"
            setup = [size + r"\setlength{\tabcolsep}{2pt}"]
        first = " & ".join(map(_stacked, broken)) + r" \\"
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(caption)}}}",
            rf"\label{{{label}}}",
            *setup,
            rf"\begin{{tabular}}{{{''.join('lr'[is_numeric(one)] for one in table.columns)}}}",
            r"\toprule",
            *_group_lines(table.columns),
            first,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _broken(text: str, width: int) -> list[str]:
    """Break a heading into lines that are at most as wide as the cells below it or `_HEADING`."""
    return textwrap.wrap(text, max(width, _HEADING), break_long_words=False, break_on_hyphens=False)


def _width(headings: Sequence[Sequence[str]], widths: Sequence[int]) -> int:
    """Return the width of a table in characters, by the lines of its headings and its cells."""
    parts = zip(headings, widths, strict=True)
    return sum(max([width, *map(len, lines)]) + _GAP for lines, width in parts)


def _stacked(lines: Sequence[str]) -> str:
    """Write a heading of several lines."""
    return r"\shortstack{" + r"\\".join(map(_start, lines)) + "}"


def _line(cells: Sequence[str]) -> str:
    """Write a row."""
    return " & ".join([_start(cells[0]), *map(latex_text, cells[1:])]) + r" \\"


def _start(text: str) -> str:
    """Escape the start of a line, which TeX must not read as an argument of the line break."""
    return "{}" * text.lstrip().startswith(("[", "*")) + latex_text(text)


def _group_lines(columns: Sequence[Column]) -> list[str]:
    """Write the headings that neighbouring columns share, each with a rule; none without groups."""
    spans = [(title, len(list(part))) for title, part in groupby(columns, lambda one: one.group)]
    if not any(title for title, _ in spans):
        return []
    cells, rules, end = [], "", 0
    for title, span in spans:
        end += span
        cells.append(rf"\multicolumn{{{span}}}{{c}}{{{latex_text(title)}}}")
        rules += rf"\cmidrule(lr){{{end - span + 1}-{end}}}" if title else ""
    return [" & ".join(cells) + r" \\", rules]
