"""The protocols: what counts as a runner."""

from surface_consistency.models.runner import BatchPlanner, FakeRunner, Runner
from surface_consistency.models.stored import StoredRunner
from surface_consistency.models.transformers_runner import TransformersRunner
from surface_consistency.schemas import Generation, GenerationParams, Prompt


class Echo:
    name = "echo"

    def fingerprint(self):
        return {"runner": "echo"}

    def generate(self, prompts, params):
        for prompt in reversed(prompts):
            yield Generation(prompt_id=prompt.id, text=prompt.text[: params.max_new_tokens])


def test_a_class_of_ten_lines_is_a_runner():
    runner = Echo()

    answers = list(runner.generate([Prompt(id="q1", text="Paris, France")], GenerationParams()))

    assert isinstance(runner, Runner)
    assert not isinstance(runner, BatchPlanner)
    assert answers[0].text == "Paris, France"


def test_runners_of_the_package_satisfy_the_protocol():
    """What is shipped is held to the protocol that users are held to."""
    assert isinstance(FakeRunner({}), Runner)
    assert isinstance(StoredRunner({}), Runner)
    for member in ("name", "fingerprint", "generate", "plan"):
        assert hasattr(TransformersRunner, member)


def test_an_object_without_a_member_is_no_runner():
    class Nameless:
        fingerprint = Echo.fingerprint
        generate = Echo.generate

    assert not isinstance(Nameless(), Runner)
