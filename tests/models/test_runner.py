"""The base class of runners, and its defaults."""

import pytest

from surface_consistency.data.redirectqa import load_sample
from surface_consistency.engine.run import run_study
from surface_consistency.errors import RunnerError
from surface_consistency.models.runner import FakeRunner, Runner
from surface_consistency.models.stored import StoredRunner
from surface_consistency.schemas import Generation, GenerationParams, Message, Prompt
from surface_consistency.studies.redirectqa.study import RedirectQAStudy

PARAMS = GenerationParams()


class Echo(Runner):
    name = "echo"

    def fingerprint(self):
        return {"runner": "echo"}

    def generate(self, prompts, params):
        for prompt in reversed(prompts):
            yield Generation(prompt_id=prompt.id, text=prompt.text[: params.max_new_tokens])


def test_a_class_of_ten_lines_is_a_runner():
    runner = Echo()

    answers = list(runner.generate([Prompt(id="q1", text="Paris, France")], PARAMS))

    assert answers[0].text == "Paris, France"


def test_by_default_batches_have_32_prompts_and_stay_as_they_are():
    runner, prompts = Echo(), [Prompt(id=f"q{n}", text=str(n)) for n in range(40)]

    batches = list(runner.plan(prompts, PARAMS))

    assert [len(batch) for batch in batches] == [32, 8]
    assert [prompt for batch in batches for prompt in batch] == prompts
    assert runner.rebatched(1) is runner
    assert (runner.is_stored, StoredRunner({}).is_stored, runner.max_refusals) == (False, True, 20)


@pytest.mark.parametrize(
    ("method", "arguments", "says"),
    [
        ("fits", (Prompt(id="q", text="a"), PARAMS), "so demonstrations cannot be dropped"),
        ("score", ([],), "so options cannot be compared; set `read` to generate"),
        (
            "render",
            (Prompt(id="q", messages=(Message(role="user", content="a"),)),),
            "so answers to conversations cannot be scored",
        ),
    ],
)
def test_methods_that_a_runner_does_not_define_are_refused(method, arguments, says):
    with pytest.raises(RunnerError, match=f"runner 'echo' does not define `{method}`, {says}"):
        getattr(Echo(), method)(*arguments)


def test_a_runner_without_a_fingerprint_cannot_be_made():
    class Nameless(Runner):
        generate = Echo.generate

    with pytest.raises(TypeError, match="fingerprint"):
        Nameless()


def test_an_object_that_is_not_a_runner_is_refused(tmp_path):
    class Plain:
        name = "plain"
        fingerprint = Echo.fingerprint
        generate = Echo.generate

    with pytest.raises(TypeError, match="Plain is not a Runner; derive the class from"):
        run_study(RedirectQAStudy(), load_sample(), Plain(), tmp_path, model="plain")
    assert not list(tmp_path.iterdir())
    assert isinstance(FakeRunner({}), Runner)
