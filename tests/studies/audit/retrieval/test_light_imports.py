"""Importing the retrievers loads no library that only some of them need."""

import subprocess
import sys

CODE = """
import pkgutil, sys
from importlib import import_module
import surface_consistency.studies.audit.retrieval as package
for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
    import_module(module.name)
heavy = {"torch", "transformers", "sentence_transformers", "bm25s", "rapidfuzz", "scipy",
         "datasets"}
print(sorted(heavy & set(sys.modules)))
"""


def test_retrievers_load_their_libraries_only_when_made():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
