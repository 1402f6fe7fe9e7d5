"""Prompts to generations: runners, and what asks them."""

from typing import TYPE_CHECKING

from surface_consistency._lazy import attach

if TYPE_CHECKING:
    from surface_consistency.inference.fake import FakeRunner
    from surface_consistency.inference.generate import RunSummary, run_prompts
    from surface_consistency.inference.openai_compatible import OpenAICompatibleRunner
    from surface_consistency.inference.predictions import read_predictions
    from surface_consistency.inference.registry import available_runners, load_runner
    from surface_consistency.inference.runner import BatchPlanner, Rebatchable, Runner
    from surface_consistency.inference.stored import StoredRunner
    from surface_consistency.inference.transformers_runner import TransformersRunner

__all__ = [
    "BatchPlanner",
    "FakeRunner",
    "OpenAICompatibleRunner",
    "Rebatchable",
    "RunSummary",
    "Runner",
    "StoredRunner",
    "TransformersRunner",
    "available_runners",
    "load_runner",
    "read_predictions",
    "run_prompts",
]

_MODULES = {
    "fake": "FakeRunner",
    "generate": "RunSummary run_prompts",
    "openai_compatible": "OpenAICompatibleRunner",
    "predictions": "read_predictions",
    "registry": "available_runners load_runner",
    "runner": "BatchPlanner Rebatchable Runner",
    "stored": "StoredRunner",
    "transformers_runner": "TransformersRunner",
}

__getattr__, __dir__ = attach(
    __name__, {name: module for module, names in _MODULES.items() for name in names.split()}
)
