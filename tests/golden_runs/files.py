"""Conversion of the results of golden runs to text, and comparison with the expected files."""

import csv
import html
import io
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import scipy
from packaging.version import Version

EXPECTED = Path(__file__).parent / "expected"
"""Expected numbers: one folder of CSV files per run."""

WORDING = Path(__file__).parent / "wording"
"""Expected text of one page per study; `python -m tests.golden_runs.make --wording` rewrites it."""

TOLERANCE = 1e-12 if Version(scipy.__version__) >= Version("1.15") else 1e-10
"""Relative and absolute tolerance; scipy before 1.15 computes t quantiles to ten digits."""

LOOSE = {
    # Differences of nearly equal terms: a partial correlation of similar columns, a flat fit.
    "frequency_others": 1e-9,
    "memorisation_coefficients": 1e-9,
    # 32-bit numbers.
    "mechanism/": 1e-4,
}
"""Tolerances of values that depend on the processor, by a part of "<run>/<file>, column".
The numbers of a page are rounded, so its text is the same."""

KEYS = ("model", "pair")

_DATE = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(T[\d:.+-]+)?")


@dataclass(frozen=True, kw_only=True)
class GoldenRun:
    """The results of one run or of several runs."""

    tables: dict[str, pd.DataFrame]
    """Tables by the path of their file in the folder of the run, without the suffix: "outcomes",
    "tables/overall", "checks/ada/noise_floor"."""

    page: str | None = None
    """The page as HTML; None if the run writes no page."""

    texts: dict[str, str] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Write the tables as text."""
        for name, table in self.tables.items():
            self.texts[f"{name}.csv"] = as_csv(table, sort=name == "outcomes")


def as_csv(table: pd.DataFrame, *, sort: bool = False) -> str:
    """Return a table as CSV with floats in full precision; ";" separates the labels of a cell."""
    plain = table.copy()
    for column in plain:
        if plain[column].map(lambda cell: isinstance(cell, list | tuple | np.ndarray)).any():
            plain[column] = [";".join(map(str, cell)) for cell in plain[column]]
    if sort:
        plain = plain.sort_values(list(KEYS), kind="stable")
    return plain.to_csv(index=False, lineterminator="\n")


def visible_text(page: str) -> str:
    """Return the text of a page, one line per cell or paragraph, without figures and details."""
    page = re.sub(r"(?s)<(style|script|svg|head|details)\b.*?</\1>", "", page)
    page = re.sub(
        r"</?(p|t[dhr]|li|h\d|div|section|table|caption|summary|dd|dt)\b[^>]*>", "\n", page
    )
    lines = html.unescape(re.sub(r"<[^>]*>", "", page)).splitlines()
    return "\n".join(line for line in (" ".join(one.split()) for one in lines) if line) + "\n"


def values_of(chart: str) -> str:
    """Return the values in the tooltips of a chart, one per line."""
    values = re.findall(r"(?s)<title>(.*?)</title>", chart)
    return "\n".join(["", *values, ""]) if values else ""


def whole_text(page: str) -> str:
    """Return the text of a page with its details and the values of charts; dates are replaced.

    The command, the signature and the footer are excluded because they depend on the time and the
    machine.
    """
    from surface_consistency import __version__

    page = re.sub(r'(?s)<h3 class="block">Reproduce</h3>.*?</section>', "</section>", page)
    page = re.sub(r"(?s)<footer>.*?</footer>", "", page)
    page = re.sub(r"(?s)<svg\b.*?</svg>", lambda found: values_of(found[0]), page)
    text = visible_text(re.sub(r"</?details[^>]*>", "\n", page))
    return _DATE.sub("DATE", text).replace(__version__, "VERSION")


def pinned(name):
    """Return the expected files of a run, as text."""
    home = EXPECTED / name
    return {
        path.relative_to(home).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(home.rglob("*.*"))
        if path.is_file()
    }


def is_same(found, wanted, column):
    """Return whether two cells have the same value within the tolerance of their column."""
    if found == wanted:
        return True
    tolerance = next((tolerance for part, tolerance in LOOSE.items() if part in column), TOLERANCE)
    try:
        return math.isclose(float(found), float(wanted), rel_tol=tolerance, abs_tol=tolerance)
    except ValueError:
        return False


def differences(file, found, wanted):
    """Return one line per difference of a table from its expected text."""
    found_rows, rows = (list(csv.DictReader(io.StringIO(text))) for text in (found, wanted))
    found_columns, columns = (next(csv.reader(io.StringIO(text))) for text in (found, wanted))
    if found_columns != columns:
        return [f"{file}: columns {found_columns} where {columns} are pinned"]
    if len(found_rows) != len(rows):
        return [f"{file}: {len(found_rows)} rows where {len(rows)} are pinned"]
    return [
        f"{file} row {place + 1}, {name}: {found_row[name]!r} where {row[name]!r} is pinned"
        for place, (found_row, row) in enumerate(zip(found_rows, rows, strict=True))
        for name in columns
        if not is_same(found_row[name], row[name], f"{file}, {name}")
    ]
