"""Tests of the lookup of runners by name."""

import sys

import pytest

from surface_consistency.errors import MissingDependencyError, RunnerError
from surface_consistency.models.registry import GROUP, load_runner
from surface_consistency.models.runner import FakeRunner
from surface_consistency.models.stored import StoredRunner
from surface_consistency.plugins import importable
from tests.distributions import install

MODULE = """
from surface_consistency.models import Runner
from surface_consistency.schemas import Generation

class Loud(Runner):
    name = "loud"
    def __init__(self, model, *, times=1):
        self.model, self.times = model, times
    def fingerprint(self):
        return {"runner": self.name, "model": self.model}
    def generate(self, prompts, params):
        for prompt in prompts:
            yield Generation(prompt_id=prompt.id, text=prompt.text.upper() * self.times)

class Mute:
    name = "mute"

class Torn(Loud):
    def __init__(self, model):
        raise KeyError(model)

class Nameless(Runner):
    def generate(self, prompts, params):
        return iter(())

ready = Loud("built in")
nothing = None
"""


@pytest.fixture
def third_party(tmp_path, monkeypatch):
    """Put a package on the path, with a distribution that registers a runner."""
    (tmp_path / "loudpkg.py").write_text(MODULE)
    install(tmp_path, "loud_Runners", GROUP, {"loud": "loudpkg:Loud"})
    monkeypatch.syspath_prepend(str(tmp_path))
    with importable(
        *(f"loudpkg:{name}" for name in ("Loud", "Mute", "Nameless", "Torn", "nothing", "ready"))
    ):
        yield tmp_path
    sys.modules.pop("loudpkg", None)


def test_built_in_runners_are_found_by_name():
    assert isinstance(load_runner("fake", model={"q": "x"}), FakeRunner)
    assert isinstance(load_runner("stored", model={"q": "x"}), StoredRunner)
    assert isinstance(load_runner("surface-consistency:stored", model={}), StoredRunner)


@pytest.mark.parametrize("spec", ["loud", "loud-runners:loud", "Loud.Runners:loud", "loudpkg:Loud"])
def test_third_party_runners_are_found(third_party, spec):
    runner = load_runner(spec, model="m", options={"times": 2})

    assert (runner.name, runner.model, runner.times) == ("loud", "m", 2)


def test_a_runner_instance_is_returned_unchanged(third_party):
    assert load_runner("loudpkg:ready").model == "built in"
    with pytest.raises(RunnerError, match="'loudpkg:ready' is an instance and accepts no model"):
        load_runner("loudpkg:ready", model="m")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nope", "'nope' not found; available: .*minimal, .*stored.*module:attribute"),
        (
            "loud-runners:nope",
            r"runner 'loud-runners:nope' not found; available: .*loud_Runners:loud",
        ),
        ("loudpkg:Mute", r"returned a Mute, which is not a Runner; derive its class from"),
        ("loudpkg:nothing", r"'loudpkg:nothing' is a NoneType; expected a runner, or a class"),
        ("loudpkg:Loud", r"runner 'loudpkg:Loud' needs a model \(`model`\), such as a hub id"),
    ],
)
def test_load_runner_rejects_objects_that_are_not_runners(third_party, spec, message):
    with pytest.raises(RunnerError, match=message):
        load_runner(spec)


def test_error_names_a_runner_that_cannot_be_created(third_party):
    with pytest.raises(RunnerError, match="'loudpkg:Torn' cannot be created: KeyError") as raised:
        load_runner("loudpkg:Torn", model="m")
    assert isinstance(raised.value.__cause__, KeyError)
    with pytest.raises(RunnerError, match=r"'loudpkg:Nameless' cannot be created: .*fingerprint"):
        load_runner("loudpkg:Nameless")


def test_error_of_a_runner_without_torch_names_the_extra(third_party, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"'minimal' needs torch, .*\[inference\]"):
        load_runner("minimal", model="m")


def test_load_runner_rejects_options_and_models_of_other_types(third_party):
    with pytest.raises(RunnerError, match=r"unexpected keyword argument 'dtype'; it accepts"):
        load_runner("loud", model="m", options={"dtype": "auto"})
    with pytest.raises(RunnerError, match=r"runner 'fake' cannot be created: .*handler"):
        load_runner("fake", model="a name")
