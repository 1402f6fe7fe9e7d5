"""Tests of the base class of runners with its defaults, and of the runner without a model."""

from functools import partial, wraps

import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine.run import run_study
from surface_consistency.errors import RunnerError
from surface_consistency.models.options import MultipleChoiceRunner
from surface_consistency.models.runner import FakeRunner, Runner
from surface_consistency.models.stored import StoredRunner
from surface_consistency.schemas import Generation, GenerationParams, Message, Prompt
from surface_consistency.schemas.scoring import ScoredText
from surface_consistency.studies.redirectqa.study import RedirectQAStudy

PARAMS = GenerationParams()
CHAT = Prompt(id="c", messages=(Message(role="user", content="x"),))


class Echo(Runner):
    name = "echo"

    def fingerprint(self):
        return {"runner": "echo"}

    def generate(self, prompts, params):
        for prompt in reversed(prompts):
            yield Generation(prompt_id=prompt.id, text=prompt.text[: params.max_new_tokens])


@pytest.mark.parametrize(
    ("handler", "texts"),
    [(lambda prompt: f"{prompt.id}!", ["a!", "b!"]), ({"a": "by id", "x": "by text"}, None)],
)
def test_the_fake_runner_answers_by_function_or_by_id_before_text(handler, texts):
    runner = FakeRunner(handler)

    answers = list(runner.generate([Prompt(id="a", text="x"), Prompt(id="b", text="x")]))

    assert [answer.prompt_id for answer in answers] == runner.asked == ["a", "b"]
    assert [answer.text for answer in answers] == (texts or ["by id", "by text"])
    assert FakeRunner(handler, name="m").fingerprint() == {"runner": "fake", "name": "m"}


def fixed(prompt):
    return "x"


def test_a_fake_runner_without_a_name_is_identified_by_its_handler_or_by_itself():
    known = [fixed, str, {"q": "a"}, {"q": "b"}]
    others = [lambda prompt, text=text: text for text in "ab"]
    others += [partial(fixed), fixed.__call__, wraps(fixed)(lambda prompt: "y"), {1: "a", "q": "a"}]
    runners = [FakeRunner(handler) for handler in (*known, *known, *others, *others)]

    names, again = ([one.fingerprint()["name"] for one in runners] for _ in range(2))
    assert names == again
    assert names[:4] == names[4:8]
    assert names[0] == f"{__name__}.fixed"
    assert len({*names}) == len(known) + 2 * len(others)


def test_the_fake_runner_rejects_invalid_prompts_and_handlers():
    with pytest.raises(RunnerError, match=r"'mine' has no text for prompt 'c'; add its id"):
        list(FakeRunner({"x": "by text"}, name="mine").generate([CHAT]))
    with pytest.raises(TypeError, match=r"`handler` must be a function .* got str"):
        FakeRunner("London")


def test_by_default_batches_have_32_prompts_and_are_not_changed():
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
        ("score", ([],), "which prompts with options need; set `read` to generate"),
        ("render", (CHAT,), "so answers to conversations cannot be scored"),
    ],
)
def test_methods_that_a_runner_does_not_define_raise_an_error(method, arguments, says):
    with pytest.raises(RunnerError, match=f"runner 'echo' does not define `{method}`, {says}"):
        getattr(Echo(), method)(*arguments)


class Scorer(Runner):
    """Scores a text by its length and does not define `generate`."""

    name = "scorer"
    n_left_out = 0

    def fingerprint(self):
        return {"runner": "scorer"}

    def score(self, requests):
        for request in requests[self.n_left_out :]:
            value = -float(len(request.continuation))
            yield ScoredText(request_id=request.id, log_probabilities=[value])


def test_a_runner_without_generate_chooses_an_option():
    prompt = Prompt(id="q", text="Q: x A:", options=(" longer", " short"))

    (answer,) = MultipleChoiceRunner(Scorer()).generate([prompt], PARAMS)

    assert answer.text == " short"


def test_a_runner_without_generate_raises_an_error_without_options(tmp_path):
    message = r"'scorer' does not define `generate`, which prompts without options need \(\d+, such"
    with pytest.raises(RunnerError, match=message):
        run_study(RedirectQAStudy(), load_redirectqa("sample"), Scorer(), tmp_path, model="m")
    assert not list(tmp_path.iterdir())


def test_scores_under_other_ids_raise_an_error():
    runner, prompt = Scorer(), Prompt(id="q", text="Q:", options=(" a", " b"))
    runner.n_left_out = 1

    with pytest.raises(RunnerError, match=r"'scorer' returned log-probabilities of 1 texts for 2"):
        list(MultipleChoiceRunner(runner).generate([prompt], PARAMS))


def test_objects_that_are_not_runners_raise_an_error(tmp_path):
    class Nameless(Runner):
        generate = Echo.generate

    class Plain:
        name = "plain"
        fingerprint = Echo.fingerprint
        generate = Echo.generate

    with pytest.raises(TypeError, match="fingerprint"):
        Nameless()
    with pytest.raises(TypeError, match="Plain is not a Runner; derive the class from"):
        run_study(RedirectQAStudy(), load_redirectqa("sample"), Plain(), tmp_path, model="plain")
    assert not list(tmp_path.iterdir())
