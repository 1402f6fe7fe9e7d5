"""The runner without a model."""

import pytest

from surface_consistency.errors import RunnerError
from surface_consistency.models.runner import FakeRunner
from surface_consistency.schemas import Message, Prompt


def test_fake_runner_answers_by_function():
    runner = FakeRunner(lambda prompt: f"{prompt.id}!")

    answers = list(runner.generate([Prompt(id="a", text="x"), Prompt(id="b", text="y")]))

    assert [(answer.prompt_id, answer.text) for answer in answers] == [("a", "a!"), ("b", "b!")]
    assert runner.asked == ["a", "b"]


def test_fake_runner_answers_by_id_before_text():
    runner = FakeRunner({"a": "by id", "x": "by text"})

    answers = list(runner.generate([Prompt(id="a", text="x"), Prompt(id="b", text="x")]))

    assert [answer.text for answer in answers] == ["by id", "by text"]


def test_fake_runner_rejects_prompts_it_has_no_text_for():
    chat = Prompt(id="c", messages=(Message(role="user", content="x"),))

    with pytest.raises(RunnerError, match=r"'mine' has no text for prompt 'c'; add its id"):
        list(FakeRunner({"x": "by text"}, name="mine").generate([chat]))


def test_fake_runner_rejects_other_handlers():
    with pytest.raises(TypeError, match=r"`handler` must be a function .* got str"):
        FakeRunner("London")


def test_fake_fingerprint_is_stable():
    assert FakeRunner({}).fingerprint() == {"runner": "fake", "name": "fake"}
