"""Markdown of results and data set cards, in which texts from files are never markup.

In every text that is not code GitHub replaces mentions, issues, commits and addresses by links,
also after a backslash. Therefore a label is a code span, as is each word of a sentence that is
neither plain letters nor a number.

References:
    GitHub Flavored Markdown 0.29, sections 4.10 (tables), 6.3 (code spans) and 6.9 (autolinks).
"""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from surface_consistency.tables.latex import table_cells
from surface_consistency.tables.numbers import UNDEFINED
from surface_consistency.tables.table import Table
from surface_consistency.text import one_line, printable

_MOST_CHARACTERS: Final = 200
_LETTERS: Final = r"[^\W\d_]+(?:[-'’][^\W\d_]+)*"
_NUMBER: Final = r"[−+±-]?\d[\d,]*(?:\.\d+)?%?"
_PART: Final = rf"(?:{_LETTERS}|{_NUMBER})"
_PLAIN: Final = re.compile(
    rf"""["“‘'(]*{_PART}(?:[/–]{_PART})*["”’']*\)?[.,;:]?|\[?{_NUMBER}\]?\)?[.,;:]?|\(?%\)?|[±<>=–−]|"""
)
_COMMIT: Final = re.compile(r"\W*[0-9a-fA-F]{7,}\W*")
_BLOCK: Final = re.compile(r"[^\w(\"“‘'].*|\d+[.)]")


class Markdown(str):
    """A text that is Markdown already."""

    __slots__ = ()


def markdown_code(text: str) -> Markdown:
    """Write a text from a file, such as a label, as a code span.

    Args:
        text: Any text.

    Returns:
        The code span. Line breaks, tabs and control characters are escapes; "" is "".

    Examples:
        >>> markdown_code("@octocat"), markdown_code("a`b")
        ('`@octocat`', '``a`b``')
    """
    shown = printable(one_line(text))
    if not shown:
        return Markdown()
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    is_stripped = shown[0] == shown[-1] == " " and not shown.isspace()
    pad = " " if is_stripped or "`" in (shown[0], shown[-1]) else ""
    return Markdown(f"{fence}{pad}{shown}{pad}{fence}")


def markdown_text(text: str) -> Markdown:
    """Write a sentence that may contain labels, so that no part of it is markup.

    Args:
        text: The sentence. `Markdown` is returned unchanged.

    Returns:
        The sentence. Words of letters, numbers and intervals are plain; successive other words are
        a code span.

    Examples:
        >>> markdown_text("The accuracy of gpt_4 is 75.0 % (95 % CI 60.5 to 89.2).")
        'The accuracy of `gpt_4` is 75.0 % (95 % CI 60.5 to 89.2).'
    """
    if isinstance(text, Markdown):
        return text
    words = printable(one_line(text)).strip().split(" ")
    is_block = _BLOCK.fullmatch(words[0]) is not None
    marks = [not (place == 0 and is_block) and _is_plain(one) for place, one in enumerate(words)]
    parts = []
    for is_plain, group in groupby(zip(marks, words, strict=True), key=lambda pair: pair[0]):
        part = " ".join(word for _, word in group)
        start, core, end = "", part, ""
        inner = part.lstrip("(")
        if not is_plain and (label := inner.rstrip(".,;:)")):
            start, core, end = part[: -len(inner)], label, inner[len(label) :]
        parts.append(part if is_plain else f"{start}{markdown_code(core)}{end}")
    return Markdown(" ".join(parts))


def markdown_rows(heads: Sequence[str], rows: Iterable[Sequence[str]], rules: str = "") -> str:
    """Write a table from its headings and rows.

    Args:
        heads: Headings, set by `markdown_text`.
        rows: Cells, set by `markdown_text` unless they are `Markdown`.
        rules: "r" or "l" per column: whether it is flush right; "" if no column is.

    Returns:
        The table, without a final line feed.
    """
    cells = [[markdown_text(cell).replace("|", r"\|") for cell in row] for row in (heads, *rows)]
    rule = ["---:" if one == "r" else "---" for one in rules or "l" * len(heads)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:]))


def markdown_table(table: Table) -> str:
    """Write a table.

    Args:
        table: The table.

    Returns:
        Its headings and rows; labels are code spans of at most 200 characters.
    """
    heads, rows = table_cells(table)
    is_label = [column.kind == "label" for column in table.columns]
    return markdown_rows(heads, ([*map(_cell, row, is_label)] for row in rows))


def _cell(text: str, is_label: bool) -> Markdown:
    """Write a cell: a label as code, a number with its interval unchanged."""
    if not is_label or text == UNDEFINED:
        return Markdown(text.replace("*", r"\*"))
    shown = printable(text)
    is_long = len(shown) > _MOST_CHARACTERS
    return markdown_code(shown[: _MOST_CHARACTERS - 1] + "…" if is_long else shown)


def _is_plain(word: str) -> bool:
    """Return whether a word cannot contain markup, at any position."""
    return _PLAIN.fullmatch(word) is not None and _COMMIT.fullmatch(word) is None
