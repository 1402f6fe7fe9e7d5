import dataclasses
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

from surface_consistency import metrics

HEAVY = ("pandas", "scipy", "torch", "transformers", "datasets", "pydantic")
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(metrics.__path__, f"{metrics.__name__}.")
)


def test_metrics_import_is_light():
    """Importing the metrics loads numpy only."""
    code = (
        "import sys, surface_consistency.metrics\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", [metrics.__name__, *MODULES])
def test_all_is_sorted_and_names_what_is_there(name):
    module = importlib.import_module(name)

    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)
    own = {
        key
        for key, value in vars(module).items()
        if not key.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }
    assert own <= set(module.__all__)


# Helpers of the other modules of their folder.
HELPERS = {"checked_orders", "slot_counts"}

# Parts of results, which no one makes but the functions that return them.
RESULT_PARTS = {"FeaturePrediction", "MomentumCurve", "MomentumPoint", "PositionPoint"}


@pytest.mark.parametrize("name", [name for name in MODULES if "._" not in name])
def test_functions_classes_and_constants_of_modules_are_exported(name):
    """All but the types of options, which are generic aliases, can be imported from the package."""
    module = importlib.import_module(name)

    aliases = {
        public for public in module.__all__ if hasattr(getattr(module, public), "__origin__")
    }

    assert set(module.__all__) - aliases - HELPERS <= set(metrics.__all__)


@pytest.mark.parametrize("name", metrics.__all__)
def test_public_functions_and_classes_are_documented(name):
    """Every public function says what it takes, gives, refuses and rests on, with an example."""
    member = getattr(metrics, name)
    if not isinstance(member, type) and not inspect.isfunction(member):
        return
    text = member.__doc__
    if name.endswith("Result") or name in RESULT_PARTS:
        source = inspect.getsource(member)
        assert text
        assert dataclasses.is_dataclass(member)
        assert source.count('"""') >= 2 * (1 + len(dataclasses.fields(member)))
        return

    sections = ["Args:", "Raises:", "References:", "Examples:"]
    if not isinstance(member, type):
        sections += ["Returns:", "Notes:"]
    assert [section for section in sections if section not in text] == []
