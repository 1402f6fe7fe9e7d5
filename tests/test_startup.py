"""How little is loaded before anything is done, and how much processor time that takes."""

import os
import subprocess
import sys

import pytest

HEAVY = ("numpy", "pandas", "torch", "transformers", "datasets", "pyarrow", "pydantic", "scipy")
HELP_SECONDS = 0.15
COMPARE_SECONDS = 0.6


def loaded_by(*words):
    """Heavy modules that a command line loads in a fresh interpreter."""
    code = (
        "import sys\n"
        "from surface_consistency.cli import main\n"
        "main(sys.argv[1:])\n"
        f"print('LOADED', *(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    return set(done.stdout.rpartition("LOADED")[2].split())


@pytest.mark.parametrize(
    "words",
    [(), ("--help",), ("-h",), ("--version",), ("run",), ("run", "--help"), ("analyse", "--help")],
)
def test_lists_of_commands_load_nothing_that_computes(words):
    assert loaded_by(*words) == set()


def test_compare_loads_no_model_library_and_no_records(tmp_path):
    """Its options are read and its table is computed without pydantic and scipy."""
    file = tmp_path / "verdicts.csv"
    file.write_text("fact_id,a,b\n1,1,0\n2,1,1\n3,0,0\n")

    loaded = loaded_by("compare", str(file), "--first", "a", "--second", "b")

    # pyarrow belongs to pandas, which imports it where it is installed.
    assert loaded - {"pyarrow"} == {"numpy", "pandas"}


def seconds(*words):
    """Least processor time of three starts, the interpreter's own included."""
    times = []
    for _ in range(3):
        before = os.times()
        subprocess.run(
            [sys.executable, "-m", "surface_consistency.cli", *words],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        after = os.times()
        times.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    return min(times)


def seconds_of(code):
    """Least processor time of three starts of Python on some code."""
    code = f"{code}; import os; t = os.times(); print(t.user + t.system)"
    return min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(3)
    )


@pytest.mark.slow
def test_help_starts_at_once():
    """A busy machine, on which Python itself starts slowly, is allowed its share."""
    limit = max(HELP_SECONDS, 8 * seconds_of("pass"))

    assert seconds("--help") < limit
    assert seconds("run", "--help") < limit


@pytest.mark.slow
def test_compare_of_a_hundred_rows_is_quick(tmp_path):
    """On an idle core most of the 0.6 s goes to pandas; a busy one is allowed its share."""
    file = tmp_path / "verdicts.csv"
    rows = [f"{fact},{fact % 2},{int(fact % 3 > 0)}" for fact in range(100)]
    file.write_text("\n".join(["fact_id,a,b", *rows]) + "\n")

    taken = seconds("compare", str(file), "--first", "a", "--second", "b")

    assert taken < max(COMPARE_SECONDS, 1.6 * seconds_of("import pandas"))
