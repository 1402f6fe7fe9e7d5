"""What a golden run gave, as the text of the files that are pinned."""

import html
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

EXPECTED = Path(__file__).parent / "expected"
"""The numbers: one folder of CSV files per run."""

WORDING = Path(__file__).parent / "wording"
"""The text of one page per study, which `python -m tests.golden_runs.make --wording` rewrites."""

KEYS = ("model", "pair")

_DATE = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(T[\d:.+-]+)?")


@dataclass(frozen=True, kw_only=True)
class GoldenRun:
    """What one or several runs gave, whoever made them."""

    tables: dict[str, pd.DataFrame]
    """By the path of their file below the run's folder, without its ending: "outcomes",
    "tables/overall", "checks/ada/noise_floor"."""

    page: str | None = None
    """The page as HTML; None if the run writes no page."""

    texts: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Write the tables as text."""
        for name, table in self.tables.items():
            self.texts[f"{name}.csv"] = as_csv(table, sort=name == "outcomes")


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


def values_of(chart: str) -> str:
    """Return the values that a chart tells who points at a mark, one a line."""
    values = re.findall(r"(?s)<title>(.*?)</title>", chart)
    return "\n".join(["", *values, ""]) if values else ""


def whole_text(page: str) -> str:
    """Strip a page to its text with what is folded and the values of charts, without dates.

    Command, signature and footer are left out, since they tell when and where it was made.
    """
    from surface_consistency import __version__

    page = re.sub(r'(?s)<h3 class="block">Reproduce</h3>.*?</section>', "</section>", page)
    page = re.sub(r"(?s)<footer>.*?</footer>", "", page)
    page = re.sub(r"(?s)<svg\b.*?</svg>", lambda found: values_of(found[0]), page)
    text = visible_text(re.sub(r"</?details[^>]*>", "\n", page))
    return _DATE.sub("DATE", text).replace(__version__, "VERSION")
