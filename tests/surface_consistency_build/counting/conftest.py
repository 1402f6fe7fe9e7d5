"""Fixtures of counting."""

from tests.surface_consistency_build.made_wiki import built, replay, titled, wiki  # noqa: F401 - fixtures
