"""Fixtures of all tests."""

import gc
import hashlib
import os
import shutil
from pathlib import Path

import filelock
import hypothesis
import pytest

from surface_consistency.engine import toy_models
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas import DataSource, GenerationParams

os.environ["HF_HUB_OFFLINE"] = "1"

# Tests do not have a deadline, because machines can be slow. Examples are fixed, so that only
# changes cause failures. The weekly workflow uses `--hypothesis-profile=thorough`, which draws new
# examples.
hypothesis.settings.register_profile(
    "any_machine", deadline=None, max_examples=50, derandomize=True
)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=1_000)
hypothesis.settings.load_profile("any_machine")

DATA_FILES = Path(__file__).resolve().parent / "data" / "files"


collect_ignore = ["extension"]
"""A separate package that a test installs."""


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection, which otherwise visits all of them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def data_files() -> Path:
    """Folder of third-party files, listed in its `README.md`; not in the sdist."""
    if not DATA_FILES.is_dir():
        pytest.fail(f"folder {DATA_FILES} not found; run the tests in a clone of the repository")
    return DATA_FILES


@pytest.fixture(scope="session", autouse=True)
def _shared_toys(request, tmp_path_factory):
    """Train each toy model once per run of the tests, for all workers."""
    train, home = toy_models._train, tmp_path_factory.getbasetemp()
    home = home.parent if hasattr(request.config, "workerinput") else home

    def train_once(examples, target, settings, vocabulary, recipe):
        stored = home / f"toy-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
        with filelock.FileLock(f"{stored}.lock"):
            if not (stored / toy_models._RECIPE).is_file():
                train(examples, stored, settings, vocabulary, recipe)
        shutil.copytree(stored, target, dirs_exist_ok=True)
        return target

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy_models, "_train", train_once)
        yield train


@pytest.fixture(scope="module")
def trained_anew(_shared_toys):
    """Train new toy models for the tests of a module, without sharing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy_models, "_train", _shared_toys)
        yield


@pytest.fixture
def manifest() -> RunManifest:
    """Settings of a run of the fake runner."""
    return RunManifest(
        study="redirectqa",
        model="fake",
        data=DataSource(id="sample", revision=None, digest="0" * 64, n_questions=2),
        decoding={"answers": GenerationParams().model_dump(mode="json")},
        runner={"runner": "fake"},
        package_version="0.1.0",
        created_at="2026-01-01T00:00:00Z",
    )
