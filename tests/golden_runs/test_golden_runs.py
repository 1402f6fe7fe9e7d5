"""Every study returns the outcomes, tables and checks of `expected/`, within `TOLERANCE`.

The text of one page per study is compared with `wording/`, line by line. `make.py` defines the
runs and writes both.
"""

import csv
import io
import math
import re
from difflib import unified_diff
from itertools import islice

import pytest
import scipy
from packaging.version import Version

from tests.golden_runs.files import EXPECTED, WORDING, whole_text
from tests.golden_runs.make import PAGES, RUNS

pytestmark = pytest.mark.filterwarnings(
    "ignore::surface_consistency.errors.SurfaceConsistencyWarning"
)

TOLERANCE = 1e-12 if Version(scipy.__version__) >= Version("1.15") else 1e-10
"""Before 1.15 scipy inverts Student's t, of which the intervals are, to ten digits."""

LOOSE = {
    # Terms that nearly cancel: a partial correlation of columns that are nearly one, a flat fit.
    "frequency_others": 1e-9,
    "memorisation_coefficients": 1e-9,
    # Numbers of 32 bits.
    "mechanism/": 1e-4,
}
"""What another processor gives less exactly, by a part of "<run>/<file>, column".
The numbers of a page are rounded, so its text is the same."""

NEEDS = {
    "mechanism": ("torch", "transformers"),
    "audit": ("surface_consistency_build",),
    "audit_sweep": ("surface_consistency_build",),
}


@pytest.fixture(scope="module", params=sorted(RUNS))
def made(request, tmp_path_factory):
    """The name of a golden run, and what it gives now."""
    for library in NEEDS.get(request.param, ()):
        pytest.importorskip(library)
    return request.param, RUNS[request.param](tmp_path_factory.mktemp(request.param))


def pinned(name):
    """The files of a run, as text."""
    home = EXPECTED / name
    return {
        path.relative_to(home).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(home.rglob("*.*"))
        if path.is_file()
    }


def is_same(found, wanted, place):
    """Whether two cells hold one value; the place is that of `LOOSE`."""
    if found == wanted:
        return True
    near = next((near for part, near in LOOSE.items() if part in place), TOLERANCE)
    try:
        return math.isclose(float(found), float(wanted), rel_tol=near, abs_tol=near)
    except ValueError:
        return False


def differences(file, found, wanted):
    """Tell where a table differs from its pinned text."""
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


def test_files_and_values_are_those_that_were_pinned(made):
    name, run = made
    files = pinned(name)

    assert set(run.texts) == set(files)
    found = [
        line
        for file, wanted in files.items()
        for line in differences(f"{name}/{file}", run.texts[file], wanted)
    ]
    assert not found, f"{len(found)} differ:\n" + "\n".join(found[:20])


def test_the_wording_of_a_page_is_unchanged(made):
    """Every sentence, cell and setting, in its order."""
    name, run = made
    if name in PAGES:
        wanted = (WORDING / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        found = whole_text(run.page).splitlines()
        assert not list(
            islice(unified_diff(wanted, found, "pinned", "found", lineterm="", n=1), 60)
        )


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
