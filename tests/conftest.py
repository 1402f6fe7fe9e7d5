"""Fixtures of all tests."""

import os
from pathlib import Path

import pytest

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
