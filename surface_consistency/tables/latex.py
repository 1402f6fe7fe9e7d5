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
            share a heading. A table that is wider than the text of an article has smaller type,
            narrow gaps and headings of several lines.
        caption: Caption, as plain text.
        label: Label for references.

    Returns:
        A `table` environment. It needs `\usepackage{booktabs}` and, for labels that are not ASCII,
        a Unicode engine.
    """
    heads, rows = table_cells(table)
    first, *lines = map(_line, (heads, *rows))
    columns = [[*map(len, cells)] for cells in zip(heads, *rows, strict=True)]
    width, setup = sum(max(widths) + _GAP for widths in columns), []
    if width > _WIDTH:
        size = r"\scriptsize" if width > 1.7 * _WIDTH else r"\footnotesize"
        setup = [size + r"\setlength{\tabcolsep}{2pt}"]
        cells = map(_stacked, heads, [max(widths[1:], default=0) for widths in columns])
        first = " & ".join(cells) + r" \\"
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


def _stacked(text: str, width: int) -> str:
    """Break a heading into lines that are at most as wide as the cells below it."""
    lines = textwrap.wrap(text, max(width, 1), break_long_words=False, break_on_hyphens=False)
    return r"\shortstack{" + r"\\".join(map(latex_text, lines)) + "}"


def _line(cells: Sequence[str]) -> str:
    """Write a row; TeX must not read its start as an argument of the command before it."""
    start = "{}" if cells[0].lstrip().startswith(("[", "*")) else ""
    return start + " & ".join(map(latex_text, cells)) + r" \\"


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
