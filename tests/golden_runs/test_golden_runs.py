"""Every study gives the outcomes, tables, checks and page numbers that it gave when pinned.

`make.py` says what the runs are; `expected/` holds what they gave. Files are compared by the name
of their columns, numbers within 1e-12. What a study may give besides, or under another name, is
told below and nowhere else; patterns are of `fnmatch`.
"""

import csv
import io
import math
import re
import sys
from fnmatch import fnmatch

import pytest

from tests.golden_runs.files import EXPECTED, visible_text
from tests.golden_runs.make import RUNS

pytestmark = pytest.mark.filterwarnings(
    "ignore::surface_consistency.errors.SurfaceConsistencyWarning"
)

ALL = "*"

ADDED: dict[str, set[str]] = {
    "audit*/checks/*/noise_floor.csv": {ALL},
    "audit_sweep/tables/contrasts.csv": {ALL},
    "*/tables/same_answer.csv": {ALL},
    "audit*/tables/*.csv": {"clustered_mcnemar_p_value_holm"},
}
"""Columns by pattern of file; `ALL` for a file that is new as a whole."""

_PAIRED_NAMES = {
    f"{before}{old}{end}": f"{before}{new}{end}"
    for old, new in (
        ("short_accuracy", "first_accuracy"),
        ("long_accuracy", "second_accuracy"),
        ("alignment", "consistency"),
    )
    for before in ("", "observed_")
    for end in ("", "_low", "_high")
}

RENAMED: dict[str, dict[str, str]] = {
    "audit*": {"variant": "topology"},
    "slaq/tables/recall.csv": _PAIRED_NAMES,
    "slaq/tables/momentum.csv": {
        "null_low": "null_probability_low",
        "null_high": "null_probability_high",
    },
    "slaq/*/corrected.csv": _PAIRED_NAMES,
    "slaq/tables/overall.csv": _PAIRED_NAMES | {"n_topics": "n_clusters"},
    "slaq/tables/by_*.csv": _PAIRED_NAMES | {"n_topics": "n_clusters"},
}
"""New names of pinned columns by pattern of file."""

MOVED: dict[str, tuple[str, str]] = {
    "audit*/tables/*by_variant.csv": ("by_variant", "by_topology"),
    "audit*/tables/by_cell.csv": ("by_cell", "by_condition"),
}
"""Part of a pinned file's name and what stands in its place now, by pattern of file."""

REORDERED: set[str] = {"redirectqa/checks/*/noise_floor.csv"}
"""Patterns of files whose columns stand in another order."""

RESORTED: dict[str, tuple[str, ...]] = {"audit*/checks/*/lookups.csv": ("database", "state")}
"""Columns that name a row, by pattern of files whose rows stand in another order."""

TOLERANCE = 1e-12

_NUMBER = r"[-+−]?\d+(?:\.\d+)?"
_WITH_INTERVAL = re.compile(
    rf"({_NUMBER})(?: ?(?:%|points))? ?\[({_NUMBER}),? ({_NUMBER})\]", re.UNICODE
)


@pytest.fixture(scope="module", params=sorted(RUNS))
def made(request, tmp_path_factory):
    """The name of a golden run, and what it gives now."""
    return request.param, RUNS[request.param](tmp_path_factory.mktemp(request.param))


def pinned(name):
    """The files of a run, as text, under the names that they have now."""
    home = EXPECTED / name
    found = {
        path.relative_to(home).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(home.rglob("*.*"))
        if path.is_file()
    }
    for file in list(found):
        for old, new in allowed(f"{name}/{file}", MOVED):
            found[file.replace(old, new)] = found.pop(file)
    return found


def allowed(file, table):
    """Gather what a mapping by pattern says of a file."""
    return [value for pattern, value in table.items() if fnmatch(file, pattern)]


def is_same(found, wanted):
    """Whether two cells hold one value."""
    if found == wanted:
        return True
    try:
        return math.isclose(float(found), float(wanted), rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except ValueError:
        return False


def differences(file, found, wanted):
    """Tell where a table differs from its pinned text."""
    found_rows, rows = (list(csv.DictReader(io.StringIO(text))) for text in (found, wanted))
    found_columns, columns = (next(csv.reader(io.StringIO(text))) for text in (found, wanted))
    names = {old: new for renamed in allowed(file, RENAMED) for old, new in renamed.items()}
    expected = [names.get(column, column) for column in columns]
    added = set().union(*allowed(file, ADDED))
    own = [column for column in found_columns if column not in added or column in expected]
    is_free = any(fnmatch(file, pattern) for pattern in REORDERED)
    if (sorted(own) != sorted(expected)) if is_free else (own != expected):
        return [f"{file}: columns {own} where {expected} are pinned"]
    for keys in allowed(file, RESORTED):
        found_rows, rows = (
            sorted(part, key=lambda row: [row[key] for key in keys]) for part in (found_rows, rows)
        )
    if len(found_rows) != len(rows):
        return [f"{file}: {len(found_rows)} rows where {len(rows)} are pinned"]
    return [
        f"{file} row {place + 1}, {new}: {found_row[new]!r} where {row[old]!r} is pinned"
        for place, (found_row, row) in enumerate(zip(found_rows, rows, strict=True))
        for old, new in zip(columns, expected, strict=True)
        if not is_same(found_row[new], row[old])
    ]


def with_intervals(text):
    """Read the numbers that stand with an interval."""
    plain = text.replace("−", "-").replace("+", "").replace("\u00a0", " ")
    return set(_WITH_INTERVAL.findall(" ".join(plain.split())))


def test_files_are_those_that_were_pinned(made):
    name, run = made
    new = {
        file
        for file in run.texts
        if any(ALL in columns for columns in allowed(f"{name}/{file}", ADDED))
    }

    assert set(run.texts) - new == set(pinned(name))


def test_values_are_those_that_were_pinned(made):
    name, run = made

    found = [
        line
        for file, wanted in pinned(name).items()
        if file.endswith(".csv") and file in run.texts
        for line in differences(f"{name}/{file}", run.texts[file], wanted)
    ]

    assert not found, f"{len(found)} differ:\n" + "\n".join(found[:20])


def test_the_page_shows_the_pinned_numbers_with_their_intervals(made):
    name, run = made
    if name == "compare":
        assert run.page is None
        return
    wanted = with_intervals(pinned(name)["page.txt"])

    assert len(wanted) >= 10
    assert not wanted - with_intervals(visible_text(run.page))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ("a,b\nx,0.5\n", None),
        ("a,b\nx,0.50000000000000001\n", None),
        ("a,b\nx,0.500000001\n", "f.csv row 1, b: '0.500000001' where '0.5' is pinned"),
        ("a,b\nx,\n", "f.csv row 1, b: '' where '0.5' is pinned"),
        ("b,a\n0.5,x\n", r"f.csv: columns \['b', 'a'\]"),
        ("a,b,c\nx,0.5,1\n", r"f.csv: columns \['a', 'b', 'c'\]"),
        ("a,b\nx,0.5\nx,0.5\n", "f.csv: 2 rows where 1 are pinned"),
    ],
)
def test_differences_are_told(found, message):
    told = differences("f.csv", found, "a,b\nx,0.5\n")

    assert [bool(re.match(message or "", line)) for line in told] == [True] * bool(message)


def test_named_changes_of_columns_are_allowed(monkeypatch):
    monkeypatch.setitem(ADDED, "*.csv", {"c"})
    monkeypatch.setitem(RENAMED, "f.csv", {"b": "d"})
    monkeypatch.setattr(sys.modules[__name__], "REORDERED", {"f.csv"})

    assert not differences("f.csv", "c,d,a\n1,0.5,x\n", "a,b\nx,0.5\n")
    assert differences("f.csv", "c,d,a\n1,0.6,x\n", "a,b\nx,0.5\n")
