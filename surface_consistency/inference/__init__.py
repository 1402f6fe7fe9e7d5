"""Prompts to generations: runners, the run log, and what asks them."""

from surface_consistency.inference.fake import FakeRunner
from surface_consistency.inference.generate import RunSummary, run_prompts
from surface_consistency.inference.openai_compatible import OpenAICompatibleRunner
from surface_consistency.inference.predictions import read_predictions
from surface_consistency.inference.registry import available_runners, load_runner
from surface_consistency.inference.runner import BatchPlanner, Runner
from surface_consistency.inference.stored import StoredRunner
from surface_consistency.inference.transformers_runner import TransformersRunner
from surface_consistency.runs.log import RunLog, read_generations

__all__ = [
    "BatchPlanner",
    "FakeRunner",
    "OpenAICompatibleRunner",
    "RunLog",
    "RunSummary",
    "Runner",
    "StoredRunner",
    "TransformersRunner",
    "available_runners",
    "load_runner",
    "read_generations",
    "read_predictions",
    "run_prompts",
]
