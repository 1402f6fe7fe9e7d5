"""Fixtures of all tests."""

import os
from pathlib import Path

import pytest

from surface_consistency.schemas import DataSource, GenerationParams, RunManifest

os.environ["HF_HUB_OFFLINE"] = "1"

SHARED_VARIABLE = "SURFACE_CONSISTENCY_SHARED"


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Folder of outside data: `golden/`, `data/`, `papers/`; tests that need it skip without it."""
    default = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get(SHARED_VARIABLE, default))
    if not (folder / "golden").is_dir():
        pytest.skip(f"no outside data in {folder}; set {SHARED_VARIABLE} to its folder")
    return folder


@pytest.fixture
def manifest() -> RunManifest:
    """Settings of a run of the fake runner."""
    return RunManifest(
        study="redirectqa",
        model="fake",
        data=DataSource(id="sample", revision=None, digest="0" * 64, n_questions=2),
        prompts=None,
        params=GenerationParams(),
        runner={"runner": "fake"},
        package_version="0.1.0",
        created_at="2026-01-01T00:00:00Z",
    )
