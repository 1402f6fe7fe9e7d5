"""Importing the package's runners loads no model library."""

import subprocess
import sys

CODE = """
import pkgutil, sys
from importlib import import_module
import surface_consistency.models as package
names = [module.name for module in pkgutil.iter_modules(package.__path__)]
names.remove("encoders")  # Vectors need numpy.
for name in names:
    import_module(f"{package.__name__}.{name}")
heavy = {"torch", "transformers", "datasets", "tokenizers", "pandas", "numpy", "scipy"}
print(len(names), sorted(heavy & set(sys.modules)))
import surface_consistency.studies.mechanism.ablation as room
for name in room.__all__:
    getattr(room, name)
print(len(room.__all__), sorted({"torch", "transformers"} & set(sys.modules)))
"""


def test_runners_load_models_only_when_made():
    """Every module here can be imported without torch or transformers."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)

    runners, ablation = done.stdout.splitlines()
    n_modules, heavy = runners.split(maxsplit=1)
    assert int(n_modules) >= 15
    assert heavy == "[]"
    n_names, heavy = ablation.split(maxsplit=1)
    assert int(n_names) >= 10
    assert heavy == "[]"
