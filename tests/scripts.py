"""Scripts of the checkout, as modules."""

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def load_script(name):
    """Import a file of `scripts/`, whose name has no suffix."""
    loader = SourceFileLoader(name, str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # Data classes look up their module here.
    loader.exec_module(module)
    return module
