"""Fixtures of models that look up facts."""

from tests.models.conftest import prompts, shot_prompts, tiny_models  # noqa: F401 - fixtures
