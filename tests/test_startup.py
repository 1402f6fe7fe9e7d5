"""Modules that are imported at the start; `bench_import.py` measures the time."""

import pkgutil
import subprocess
import sys

import pytest

import surface_consistency
from surface_consistency.plugins import STUDIES

HEAVY = (
    *("numpy", "pandas", "torch", "transformers", "datasets", "pyarrow", "pydantic", "scipy"),
    *("scipy.stats", "matplotlib", "jinja2", "rapidfuzz", "tqdm"),
)


def loaded_by(*words, statement="from surface_consistency.cli.main import main; main(words)"):
    """Return the large modules that a command line or a statement imports in a new interpreter."""
    code = (
        f"import sys\nwords = sys.argv[1:]\n{statement}\n"
        f"print('LOADED', *(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    return set(done.stdout.rpartition("LOADED")[2].split())


def imports_of(*names):
    """Import all modules of some subpackages."""
    modules = [
        info.name
        for info in pkgutil.walk_packages(surface_consistency.__path__, "surface_consistency.")
        if info.name.split(".")[1] in names
    ]
    return len(modules), f"import {', '.join(modules)}"


def test_imports_load_only_required_modules():
    """Metrics, records, matching and prompts work without model libraries."""
    n_light, light = imports_of(
        *("metrics", "schemas", "matching", "errors", "taxonomy", "text", "plugins")
    )

    assert n_light > 50
    assert loaded_by(statement="import surface_consistency") == set()
    assert loaded_by(statement="import surface_consistency as sc; sc.metrics, sc.schemas") == set()
    assert not loaded_by(statement=light) & {"torch", "transformers", "datasets", "matplotlib"}
    records = loaded_by(statement=imports_of("schemas", "text")[1])
    assert not records & {"pandas", "scipy.stats", "torch", "datasets", "matplotlib"}
    mcnemar = "from surface_consistency.metrics import mcnemar"
    assert not loaded_by(statement=mcnemar) & {"pandas", "scipy.stats", "torch"}
    statement = """import importlib, pkgutil
import surface_consistency.models as package
for info in pkgutil.iter_modules(package.__path__):
    if info.name != "encoders":  # Vectors need numpy.
        importlib.import_module(f"{package.__name__}.{info.name}")
assert not {"numpy", "pandas", "tokenizers", "scipy"} & set(sys.modules)
import surface_consistency.studies.mechanism.ablation as ablation
assert len([getattr(ablation, name) for name in ablation.__all__]) >= 4"""
    assert not loaded_by(statement=statement) & {"torch", "transformers", "datasets"}


@pytest.mark.parametrize(
    "words",
    [(), ("--help",), ("-h",), ("--version",), ("run",), ("run", "--help"), ("analyse", "--help")],
)
def test_lists_of_commands_do_not_import_computing_modules(words):
    assert loaded_by(*words) == set()


@pytest.mark.parametrize("study", STUDIES.names())
def test_options_of_a_study_import_only_pydantic(study):
    assert loaded_by("run", study, "--help") == {"pydantic"}


def test_paired_does_not_import_model_libraries(tmp_path):
    file = tmp_path / "verdicts.csv"
    file.write_text("item,a,b\n1,1,0\n2,1,1\n3,0,0\n")

    loaded = loaded_by("paired", str(file), "--first", "a", "--second", "b")

    # pyarrow belongs to pandas, which imports it where it is installed.
    assert loaded - {"pyarrow", "scipy.stats"} == {"numpy", "pandas", "pydantic", "scipy"}
