"""Every study returns the outcomes, tables and checks of `expected/`, within a tolerance.

The text of one page per study is compared with `wording/`, line by line. `make.py` defines the
runs and writes both.
"""

import re
from difflib import unified_diff
from itertools import islice

import pytest

from tests.golden_runs.files import WORDING, differences, pinned, whole_text
from tests.golden_runs.make import PAGES, RUNS

pytestmark = pytest.mark.filterwarnings(
    "ignore::surface_consistency.errors.SurfaceConsistencyWarning"
)

NEEDS = {
    "mechanism": ("torch", "transformers"),
    "audit": ("surface_consistency_build",),
    "audit_sweep": ("surface_consistency_build",),
}


@pytest.fixture(scope="module", params=sorted(RUNS))
def made(request, tmp_path_factory):
    """Return the name of a golden run and its current result."""
    for library in NEEDS.get(request.param, ()):
        pytest.importorskip(library)
    return request.param, RUNS[request.param](tmp_path_factory.mktemp(request.param))


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
def test_differences_are_listed(found, message):
    listed = differences("f.csv", found, "a,b\nx,0.5\n")

    assert [bool(re.match(message or "", line)) for line in listed] == [True] * bool(message)
