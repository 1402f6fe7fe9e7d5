"""Tests that answers and scores of the minimal runner equal those of `TransformersRunner`."""

import json
import shutil
from pathlib import Path

import pytest

from surface_consistency.cli.main import main
from surface_consistency.engine.generate import run_prompts
from surface_consistency.errors import RunnerError
from surface_consistency.models import MinimalRunner, MultipleChoiceRunner, TransformersRunner
from surface_consistency.runs.log import RunLog, read_generations
from surface_consistency.schemas import GenerationParams, Message, Prompt, ScoringRequest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

CLOSE = 1e-4 if torch.cuda.is_available() else 1e-5
"""Tolerance of log-probabilities: a GPU chooses its kernel by the shape of the batch."""

PARAMS = GenerationParams(max_new_tokens=12, stop=("a", "Q:"))
TEMPLATE = (
    "<|endoftext|>{% for turn in messages %}[{{ turn.role }}] {{ turn.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
OPTIONS = (" London", " Sierra Leone", " yes", "ß😀x")


@pytest.fixture(scope="session")
def both(tiny_models):
    """Return the minimal and the fast runner of a family."""
    made = {}

    def make(family):
        if family not in made:
            path = tiny_models(family)
            made[family] = (MinimalRunner(path), TransformersRunner(path))
        return made[family]

    return make


@pytest.fixture(scope="session")
def chatting(tiny_models, tmp_path_factory):
    """Return the folder of a model with a chat template that writes the begin token."""
    folder = tmp_path_factory.mktemp("chat") / "m"
    shutil.copytree(tiny_models("llama"), folder)
    return with_template(folder, TEMPLATE)


def with_template(folder: Path, template: str) -> Path:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template, tokenizer.bos_token = template, "<|endoftext|>"
    tokenizer.save_pretrained(folder)
    return folder


def answers(runner, prompts, params=PARAMS):
    """Return text and ending of each answer by the id of its prompt."""
    found = runner.generate(prompts, params)
    return {one.prompt_id: (one.text, one.finish_reason) for one in found}


@pytest.mark.parametrize("family", ["gpt_neox", "llama", "gpt2", "olmo2", "qwen2", "mistral"])
def test_answers_equal_those_of_the_fast_runner(both, shot_prompts, family):
    minimal, fast = both(family)
    short = [Prompt(id=f"short {n}", text="Q: " * n) for n in range(1, 6)]
    prompts = [*shot_prompts, *short]

    expected = answers(fast, prompts)

    assert {reason for _, reason in expected.values()} == {"stop", "length"}
    assert answers(minimal, prompts) == expected


@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_answers_do_not_depend_on_the_batches(both, shot_prompts, tmp_path, manifest, batch_size):
    minimal, fast = both("llama")
    prompts = shot_prompts[::4]
    with RunLog.open(tmp_path / "log.jsonl", manifest) as log:
        run_prompts(minimal, prompts, PARAMS, log, progress=False, batch_size=batch_size)

    found = {one.prompt_id: one.text for one in read_generations(tmp_path / "log.jsonl")}
    assert found == {name: text for name, (text, _) in answers(fast, prompts).items()}


def test_conversations_and_texts_of_one_batch_equal_those_of_the_fast_runner(
    chatting, shot_prompts
):
    turns = [Message(role="user", content="Who is Chad?"), Message(role="assistant", content="A")]
    turns += [Message(role="user", content="And PPK?")]
    chats = [Prompt(id=f"chat {n}", messages=turns[:n]) for n in (1, 3)]
    minimal, fast = MinimalRunner(chatting), TransformersRunner(chatting)

    assert minimal.render(chats[1]) == fast.render(chats[1])
    assert answers(minimal, [*chats, *shot_prompts[:3]]) == answers(
        fast, [*chats, *shot_prompts[:3]]
    )


@pytest.mark.parametrize("family", ["gpt_neox", "llama", "bloom", "mistral", "mamba"])
def test_log_probabilities_equal_those_of_the_fast_runner(both, shot_prompts, family):
    minimal, fast = both(family)
    texts = [(prompt.text, option) for prompt in shot_prompts[::5] for option in OPTIONS]
    texts += [("Q: In what ", "city"), ("Q: In what", " city")]
    requests = [
        ScoringRequest(id=str(n), context=context, continuation=text)
        for n, (context, text) in enumerate(texts)
    ]

    found = assert_equal_scores(minimal, fast, requests)

    assert {score.boundary for score in found} == {"clean", "moved"}


def test_log_probabilities_of_whole_texts_follow_the_begin_token(chatting, both):
    requests = [
        ScoringRequest(id=str(n), continuation=text)
        for n, text in enumerate(["x", " city of Chad", "Who is Cat Stevens? A:"])
    ]

    assert_equal_scores(MinimalRunner(chatting), TransformersRunner(chatting), requests)
    with pytest.raises(RunnerError, match=r".0. requires the runner transformers"):
        list(both("llama")[0].score(requests))


def assert_equal_scores(minimal, fast, requests):
    """Compare every field that both runners fill; return the scores."""
    expected = {one.request_id: one for one in fast.score(requests)}
    found = {one.request_id: one for one in minimal.score(requests)}
    assert found.keys() == expected.keys()
    for name, score in found.items():
        other = expected[name]
        assert (score.token_ids, score.is_greedy) == (other.token_ids, other.is_greedy)
        assert score.boundary == other.boundary
        assert score.log_probabilities == pytest.approx(other.log_probabilities, abs=CLOSE)
    return found.values()


def test_options_after_a_conversation_are_scored_after_its_rendering(chatting):
    turns = [Message(role="user", content="Who is Chad?")]
    prompt = Prompt(id="c", messages=turns, options=OPTIONS)

    (found,), (expected,) = (
        list(MultipleChoiceRunner(runner).generate([prompt], PARAMS))
        for runner in (MinimalRunner(chatting), TransformersRunner(chatting))
    )

    assert found.text == expected.text
    for one, other in zip(found.scores, expected.scores, strict=True):
        assert one.log_probabilities == pytest.approx(other.log_probabilities, abs=CLOSE)


@pytest.mark.parametrize(
    "change", [{"temperature": 0.5}, {"max_reasoning_tokens": 9}, {"reasoning_opened": True}]
)
def test_unsupported_decoding_raises_an_error(both, shot_prompts, change):
    params = PARAMS.model_copy(update=change)

    with pytest.raises(RunnerError, match="temperature and reasoning limits require"):
        list(both("llama")[0].generate(shot_prompts[:1], params))


@pytest.mark.parametrize("text", ["", "Q: What is the capital of Peru? A: " * 99])
def test_prompts_without_tokens_or_with_too_many_raise_an_error(both, text):
    minimal, prompt = both("llama")[0], Prompt(id="q", text=text)

    with pytest.raises(RunnerError, match="'q' is empty or too long; set fewer new tokens"):
        list(minimal.generate([prompt], PARAMS))


def test_reasoning_is_an_error_and_not_an_answer(tiny_models, tmp_path, both, shot_prompts):
    folder = shutil.copytree(tiny_models("llama"), tmp_path / "m")
    with_template(folder, TEMPLATE.replace("[assistant]", "[assistant]<think>"))
    chat = Prompt(id="c", messages=[Message(role="user", content="Who is Chad?")])
    wrote = answers(both("llama")[0], shot_prompts[:1], PARAMS.model_copy(update={"stop": ()}))
    tag = wrote[shot_prompts[0].id][0][:3]
    tags = PARAMS.model_copy(update={"reasoning_tags": (tag, "</no>")})

    for runner, prompt, params in (
        (MinimalRunner(folder), chat, PARAMS),
        (both("llama")[0], shot_prompts[0], tags),
    ):
        (answer,) = runner.generate([prompt], params)

        assert (answer.text, answer.finish_reason) == (None, "error")
        assert answer.error == "the model reasons before it answers; use the runner transformers"


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.SurfaceConsistencyWarning")
def test_a_study_has_the_same_answers_by_either_runner(tiny_models, tmp_path):
    model, found = str(tiny_models("llama")), {}
    for runner in ("minimal", "transformers"):
        out = tmp_path / runner
        run = ["run", "redirectqa", "--source", "sample", "--limit", "6", "--shots", "1"]
        run += ["--repeat", "2", "--runner", runner, "--model", model]
        assert main([*run, "--setting", "resamples=9", "--out", str(out)]) == 0
        found[runner] = {
            one.prompt_key: one.text for one in read_generations(out / "generations.jsonl")
        }
        assert json.loads((out / "manifest.json").read_text())["runner"]["runner"] == runner

    assert found["minimal"] == found["transformers"]
    assert len(found["minimal"]) > 6
