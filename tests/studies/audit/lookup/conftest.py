"""Fixtures of models that look facts up."""

from tests.models.conftest import prompts, shot_prompts, tiny_models  # noqa: F401 - fixtures
