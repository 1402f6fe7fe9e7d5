"""Does a language model answer the same fact alike under two conditions?

Schemas, datasets, matchers, paired metrics with intervals, and a reference inference runner. The
names below are loaded on first use, so `import surface_consistency` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from surface_consistency.data.popqa import load_popqa
    from surface_consistency.data.redirectqa import load_redirectqa
    from surface_consistency.data.slaq import load_slaq
    from surface_consistency.inference.fake import FakeRunner
    from surface_consistency.inference.openai_compatible import OpenAICompatibleRunner
    from surface_consistency.inference.runner import Runner
    from surface_consistency.inference.transformers_runner import TransformersRunner
    from surface_consistency.matching.rules import match
    from surface_consistency.metrics.mcnemar_tests import mcnemar
    from surface_consistency.metrics.paired_groups import paired_by
    from surface_consistency.metrics.paired_tables import PairedTable, paired_table
    from surface_consistency.studies.redirectqa import score_predictions

_HOMES = {
    "FakeRunner": "inference.fake",
    "OpenAICompatibleRunner": "inference.openai_compatible",
    "PairedTable": "metrics.paired_tables",
    "Runner": "inference.runner",
    "TransformersRunner": "inference.transformers_runner",
    "load_popqa": "data.popqa",
    "load_redirectqa": "data.redirectqa",
    "load_slaq": "data.slaq",
    "match": "matching.rules",
    "mcnemar": "metrics.mcnemar_tests",
    "paired_by": "metrics.paired_groups",
    "paired_table": "metrics.paired_tables",
    "score_predictions": "studies.redirectqa",
}

__all__ = [
    "FakeRunner",
    "OpenAICompatibleRunner",
    "PairedTable",
    "Runner",
    "TransformersRunner",
    "load_popqa",
    "load_redirectqa",
    "load_slaq",
    "match",
    "mcnemar",
    "paired_by",
    "paired_table",
    "score_predictions",
]


def __getattr__(name: str) -> object:
    """Load a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
