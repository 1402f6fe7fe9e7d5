"""A runner that answers every prompt with "London", and a run of it."""

import shutil
import warnings

import pytest

from surface_consistency.cli.main import main
from surface_consistency.models import Runner
from surface_consistency.schemas import Generation


class London(Runner):
    name = "london"

    def __init__(self, model=None):
        self.model = model

    def fingerprint(self):
        return {"runner": "london", "model": self.model}

    def generate(self, prompts, params):
        for prompt in prompts:
            yield Generation(prompt_id=prompt.id, text="London")


RUN = ["run", "redirectqa", "--source", "sample", "--limit", "2", "--repeat", "2"]
RUN += ["--runner", "tests.london:London", "--setting", "resamples=50"]


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A scored run on the sample."""
    folder = tmp_path_factory.mktemp("london") / "run"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main([*RUN, "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def folder(scored, tmp_path):
    """A copy of the run that a test can damage."""
    return shutil.copytree(scored, tmp_path / "run")
