"""What a golden run gave, as the text of the files that are pinned."""

import html
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path

import numpy as np
import pandas as pd

EXPECTED = Path(__file__).parent / "expected"
KEYS = ("model", "pair_id")

_DATE = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(T[\d:.+-]+)?")

MAIN_SECTIONS = ("numbers", "groups", "template-1", "template-2")
"""Anchors of the parts of a page that hold the main tables."""


@dataclass(frozen=True, kw_only=True)
class GoldenRun:
    """What one or several runs gave, whoever made them."""

    tables: dict[str, pd.DataFrame]
    """By the path of their file below the run's folder, without its ending: "outcomes",
    "tables/overall", "checks/ada/noise_floor"."""

    page: str | None = None
    """The page as HTML."""

    full_page: str | None = None
    """The same page as it is written to its file, with every sentence."""

    texts: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Write everything as text."""
        for name, table in self.tables.items():
            self.texts[f"{name}.csv"] = as_csv(table, sort=name == "outcomes")
        if self.page is not None:
            parts = main_sections(self.page) or [self.page]
            self.texts["page.txt"] = "".join(map(visible_text, parts))
        if self.full_page is not None:
            self.texts["page_full.txt"] = whole_text(self.full_page)


def as_csv(table: pd.DataFrame, *, sort: bool = False) -> str:
    """Write a table: floats in full, several labels of a cell separated by ";"."""
    plain = table.copy()
    for column in plain:
        if plain[column].map(lambda cell: isinstance(cell, list | tuple | np.ndarray)).any():
            plain[column] = [";".join(map(str, cell)) for cell in plain[column]]
    if sort:
        plain = plain.sort_values(list(KEYS), kind="stable")
    return plain.to_csv(index=False, lineterminator="\n")


def visible_text(page: str) -> str:
    """Strip a page to its text, a line a cell or paragraph, without pictures and what is folded."""
    page = re.sub(r"(?s)<(style|script|svg|head|details)\b.*?</\1>", "", page)
    page = re.sub(
        r"</?(p|t[dhr]|li|h\d|div|section|table|caption|summary|dd|dt)\b[^>]*>", "\n", page
    )
    lines = html.unescape(re.sub(r"<[^>]*>", "", page)).splitlines()
    return "\n".join(line for line in (" ".join(one.split()) for one in lines) if line) + "\n"


def whole_text(page: str) -> str:
    """Strip a page to its text, also what is folded, without pictures, dates and versions.

    Command, signature and footer are left out, since they tell when and where it was made.
    """
    from surface_consistency import __version__

    page = re.sub(r'(?s)<h3 class="block">Make it again</h3>.*?</section>', "</section>", page)
    page = re.sub(r"(?s)<footer>.*?</footer>", "", page)
    text = visible_text(re.sub(r"</?details[^>]*>", "\n", page))
    return _DATE.sub("DATE", text).replace(__version__, "VERSION")


def main_sections(page: str) -> list[str]:
    """Find the parts of a page that hold the main tables."""
    sections = re.findall(r'(?s)<section aria-labelledby="([^"]*)">(.*?)</section>', page)
    return [part for name, part in sections if name in MAIN_SECTIONS]


def page_numbers(page) -> str:
    """Write the numbers with an interval that stand on a page of values, a line each."""
    return "".join(f"{line}\n" for line in _intervals(page))


def _intervals(value) -> Iterator[str]:
    """Find numbers with an interval in blocks, tables and sentences."""
    from surface_consistency.report.page import Value
    from surface_consistency.report.table import Table

    if isinstance(value, Value):
        if value.low is not None:
            yield _interval(value.value, value.low, value.high, value.kind)
    elif isinstance(value, Table):
        for column in value.columns:
            if column.low is not None:
                for row in value.frame.to_dict("records"):
                    yield _interval(row[column.key], row[column.low], row[column.high], column.kind)
    elif is_dataclass(value):
        for item in fields(value):
            yield from _intervals(getattr(value, item.name))
    elif isinstance(value, Mapping):
        yield from _intervals(list(value.values()))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _intervals(item)


def _interval(number, low, high, kind) -> str:
    """Write a number as pages do: rates and differences in percent, others as they are."""
    factor, places = (100, 1) if kind in ("rate", "difference") else (1, 2)
    if any(bound is None or math.isnan(bound) for bound in (number, low, high)):
        return "–"
    shown = (f"{factor * one:.{places}f}" for one in (number, low, high))
    return "{} [{}, {}]".format(*shown)
