"""How little is loaded before anything is done; `bench_import.py` says how long that takes."""

import subprocess
import sys

import pytest

from surface_consistency.plugins import STUDIES

HEAVY = ("numpy", "pandas", "torch", "transformers", "datasets", "pyarrow", "pydantic", "scipy")


def loaded_by(*words):
    """Heavy modules that a command line loads in a fresh interpreter."""
    code = (
        "import sys\n"
        "from surface_consistency.cli.main import main\n"
        "main(sys.argv[1:])\n"
        f"print('LOADED', *(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    return set(done.stdout.rpartition("LOADED")[2].split())


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--help",),
        ("-h",),
        ("--version",),
        ("run",),
        ("run", "--help"),
        ("analyse", "--help"),
    ],
)
def test_lists_of_commands_load_nothing_that_computes(words):
    assert loaded_by(*words) == set()


@pytest.mark.parametrize("study", STUDIES.names())
def test_options_of_a_study_load_pydantic_alone(study):
    assert loaded_by("run", study, "--help") == {"pydantic"}


def test_compare_loads_no_model_library(tmp_path):
    file = tmp_path / "verdicts.csv"
    file.write_text("fact_id,a,b\n1,1,0\n2,1,1\n3,0,0\n")

    loaded = loaded_by("compare", str(file), "--first", "a", "--second", "b")

    # pyarrow belongs to pandas, which imports it where it is installed.
    assert loaded - {"pyarrow"} == {"numpy", "pandas", "pydantic", "scipy"}
