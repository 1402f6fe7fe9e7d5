"""Tests of log-probabilities: one text at a time, a bigram table, lm-evaluation-harness."""

import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from pydantic import ValidationError

from surface_consistency.errors import RunnerError, RunnerOutOfMemoryError
from surface_consistency.models import FakeRunner, MultipleChoiceRunner, TransformersRunner
from surface_consistency.models.options import option_scores
from surface_consistency.schemas import GenerationParams, Message, Prompt
from surface_consistency.schemas.scoring import ScoredText, ScoringRequest
from tests.made_scores import Scoring

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

CLOSE = 1e-4 if torch.cuda.is_available() else 1e-5
"""What two orders of the same sums may differ by: a GPU picks its kernel by the batch."""

OPTIONS = (" London", " Sierra Leone", " yes", " no", "ß😀x")


def requests_of(prompts, *, n=16):
    asked = [
        ScoringRequest(id=f"{number}/{option}", context=prompt.text, continuation=option)
        for number, prompt in enumerate(prompts[:n])
        for option in OPTIONS
    ]
    whole = [
        ScoringRequest(id=f"{bos} {number}", continuation=prompt.text, bos=bos)
        for number, prompt in enumerate(prompts[:n])
        for bos in ("eos", "none")
    ]
    return asked + whole


def by_one(runner, request):
    """Score one request by one forward pass without padding, cache or batch."""
    tokenizer, model = runner._encoder.tokenizer, runner._engine.model
    context = tokenizer(request.context)["input_ids"] if request.context else []
    ids = tokenizer(request.context + request.continuation)["input_ids"]
    if request.bos == "eos":
        ids, context = [tokenizer.eos_token_id, *ids], [tokenizer.eos_token_id]
    with torch.inference_mode():
        given = torch.tensor([ids], device=model.device)
        reference = model(input_ids=given).logits[0].double().log_softmax(-1).cpu()
    # Tokens of context and text differ after their common prefix.
    shared = next(
        (n for n, (one, other) in enumerate(zip(context, ids, strict=False)) if one != other),
        min(len(context), len(ids)),
    )
    scored = range(shared, len(ids))
    return ids[shared:], [None if n == 0 else reference[n - 1, ids[n]].item() for n in scored]


@pytest.mark.parametrize("family", ["gpt_neox", "llama", "bloom", "mistral", "mamba"])
def test_scores_equal_those_of_one_text_at_a_time(tiny_models, shot_prompts, family):
    runner = TransformersRunner(tiny_models(family), batch_size=16)
    requests = requests_of(shot_prompts)
    scored = {score.request_id: score for score in runner.score(requests)}
    assert scored.keys() == {request.id for request in requests}
    for request in requests:
        score = scored[request.id]
        ids, expected = by_one(runner, request)
        assert list(score.token_ids) == ids
        assert score.boundary == "clean"
        for reference, one in zip(score.log_probabilities, expected, strict=True):
            assert (reference is None) == (one is None)
            assert reference is None or reference == pytest.approx(one, abs=CLOSE)


def test_scores_of_a_model_with_a_bigram_table_equal_the_table(tiny_models):
    runner = TransformersRunner(tiny_models("gpt2"))
    model, tokenizer = runner._engine.model, runner._encoder.tokenizer
    n = model.config.vocab_size
    table = np.random.default_rng(0).normal(size=(n, n))
    # A replacement of the network: the logits after a token are a row of the table.
    rows = torch.tensor(table, dtype=torch.float32)
    runner._engine = _Bigrams(rows)
    text = "In what city was PPK born?"
    request = ScoringRequest(id="a", context="Q: ", continuation=text, vocabulary_moments=True)
    (score,) = runner.score([request])
    ids = tokenizer(f"Q: {text}")["input_ids"]
    logs = table - np.log(np.exp(table).sum(axis=1, keepdims=True))
    expected = [logs[before, after] for before, after in pairwise(ids)]
    known = [value for value in score.log_probabilities if value is not None]
    assert known == pytest.approx(expected[-len(known) :], abs=1e-5)
    assert score.log_probability == pytest.approx(math.fsum(known))
    # The moments are sums over the vocabulary, one for each token.
    means = (np.exp(logs) * logs).sum(axis=1)
    spreads = np.sqrt((np.exp(logs) * (logs - means[:, None]) ** 2).sum(axis=1))
    before = ids[-len(known) - 1 : -1]
    assert score.vocabulary_means == pytest.approx(means[before], abs=1e-5)
    assert score.vocabulary_deviations == pytest.approx(spreads[before], abs=1e-5)


class _Bigrams:
    """An engine whose logits after a token are a row of a table."""

    keeps_cache = False
    without_grad = staticmethod(torch.inference_mode)

    def __init__(self, rows):
        self._rows = rows
        self.vocabulary = len(rows)
        self.model = SimpleNamespace(device=torch.device("cpu"))

    def score(self, batch, n_last):
        width = max(map(len, batch.suffixes))
        ids = [[0] * (width - len(row)) + list(row) for row in batch.suffixes]
        return self._rows[torch.tensor(ids)][:, -n_last:]

    def clear_cache(self):
        pass


def test_options_that_differ_in_the_last_token_share_a_forward_pass(tiny_models):
    runner = TransformersRunner(tiny_models("llama"))
    read = []
    plain = runner._engine.score
    runner._engine.score = lambda batch, n_last: (
        read.append(len(batch.suffixes)) or plain(batch, n_last)
    )
    requests = [
        ScoringRequest(id=option, context="Q: Is Chad in Peru? A:", continuation=option)
        for option in ("!", "?", ".")
    ]
    assert len(list(runner.score(requests))) == 3
    assert read == [1]


def test_a_token_over_the_boundary_is_part_of_the_continuation(tiny_models):
    runner = TransformersRunner(tiny_models("gpt_neox"))
    texts = {"clean": ("Q: In what", " city"), "moved": ("Q: In what ", "city")}
    requests = [ScoringRequest(id=n, context=a, continuation=b) for n, (a, b) in texts.items()]
    scores = {score.request_id: score for score in runner.score(requests)}
    assert {name: score.boundary for name, score in scores.items()} == {n: n for n in texts}
    assert scores["moved"].token_ids == scores["clean"].token_ids
    assert scores["moved"].log_probability == pytest.approx(scores["clean"].log_probability)


def test_greedy_continuations_are_detected(tiny_models):
    runner = TransformersRunner(tiny_models("qwen2"))
    prompt = Prompt(id="q", text="Q: In what city was PPK born? A:")
    (written,) = runner.generate([prompt], GenerationParams(max_new_tokens=3, stop=()))
    first = runner._encoder.tokenizer(prompt.text + written.text)["input_ids"]
    greedy, other = (
        next(runner.score([ScoringRequest(id="r", context=prompt.text, continuation=text)]))
        for text in (written.text, " Chad")
    )
    if first[-len(greedy.token_ids) :] == list(greedy.token_ids):
        assert greedy.is_greedy
    assert not other.is_greedy


def test_log_probabilities_equal_those_of_lm_evaluation_harness(tiny_models, shot_prompts):
    huggingface = pytest.importorskip("lm_eval.models.huggingface")
    runner = TransformersRunner(tiny_models("gpt_neox"), batch_size=1, reuse_prefix=False)
    tokenizer, model = runner._encoder.tokenizer, runner._engine.model
    harness = huggingface.HFLM(pretrained=model, tokenizer=tokenizer, batch_size=1)
    requests = [item for item in requests_of(shot_prompts, n=6) if item.bos != "none"]
    asked = [SimpleNamespace(args=(item.context, item.continuation)) for item in requests]
    theirs = harness.loglikelihood(asked, disable_tqdm=True)
    ours = {score.request_id: score for score in runner.score(requests)}
    for request, (log_likelihood, is_greedy) in zip(requests, theirs, strict=True):
        score = ours[request.id]
        # The harness sums tokens in 32 bits: an error of a few units in the last place at 700.
        assert score.log_probability == pytest.approx(log_likelihood, rel=1e-6, abs=1e-5)
        assert score.is_greedy == is_greedy


def test_errors_name_the_request_and_the_remedy(tiny_models):
    runner = TransformersRunner(tiny_models("gpt_neox"))
    broken, slow = (TransformersRunner(tiny_models("llama")) for _ in range(2))
    with torch.no_grad():
        broken._engine.model.lm_head.weight[7] = float("nan")
    slow._encoder.tokenizer = SimpleNamespace(is_fast=False)

    for own, message, request in (
        (runner, r"no begin token .* request 'r'.*bos=\"eos\"", {"continuation": "a text"}),
        (runner, r"request 'r' has .* accepts 512: shorten", {"context": "Q: " * 600}),
        (broken, r"for request 'r' are NaN", {"context": "Q:"}),
        (slow, r"save it as a fast tokenizer", {"context": "a"}),
    ):
        with pytest.raises(RunnerError, match=message):
            list(own.score([ScoringRequest(**{"id": "r", "continuation": " a", **request})]))


def test_scores_do_not_depend_on_batches_parts_or_memory(tiny_models, shot_prompts, monkeypatch):
    """Batches that do not fit are halved; a single text that does not fit is an error."""
    runner = TransformersRunner(tiny_models("gpt_neox"), batch_size=16)
    requests = requests_of(shot_prompts, n=8)
    plain = runner._engine.score

    def room_for(most):
        def score(batch, n_last):
            if len(batch.suffixes) > most:
                raise torch.OutOfMemoryError("no room")
            return plain(batch, n_last)

        monkeypatch.setattr(runner._engine, "score", score)

    def found(asked=requests, by=runner):
        return {score.request_id: score.log_probability for score in by.score(asked)}

    expected = pytest.approx(found(), abs=1e-4, nan_ok=True)
    assert found(requests[::-1], runner.rebatched(3)) == expected
    with monkeypatch.context() as patch:
        patch.setattr("surface_consistency.models._token_scores._LOGITS", 600 * 40)
        assert found() == expected
    room_for(2)
    assert found() == expected
    room_for(0)
    with pytest.raises(RunnerOutOfMemoryError, match=r"1 text of up to .* smaller batch_size"):
        found()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"token_ids": (1,), "log_probabilities": (0.5,)}, r"at most 0, got 0\.5"),
        ({"token_ids": (1, 2), "log_probabilities": (-0.5,)}, "2 tokens have 1 log-probabilities"),
        ({"log_probabilities": (-0.5, -1.0)}, "without tokens there must be one log-probability"),
        ({"token_ids": (1, 2), "log_probabilities": (-0.5, None)}, "only the first of several to"),
        ({"token_ids": (1,), "log_probabilities": (math.nan,)}, "at most 0, got nan"),
        ({"token_ids": (), "log_probabilities": ()}, "at least one log-probability"),
    ],
)
def test_records_reject_invalid_log_probabilities(fields, message):
    with pytest.raises(ValidationError, match=message):
        ScoredText(request_id="a", **fields)
    none = ScoredText(request_id="a", token_ids=(1,), log_probabilities=(None,))
    assert math.isnan(none.log_probability)


def test_the_most_probable_option_is_the_answer(tiny_models, shot_prompts):
    runner = MultipleChoiceRunner(TransformersRunner(tiny_models("gpt_neox")))
    prompts = [prompt.model_copy(update={"options": OPTIONS}) for prompt in shot_prompts[:5]]
    answers = {item.prompt_id: item for item in runner.generate(prompts, GenerationParams())}
    assert answers.keys() == {prompt.id for prompt in prompts}
    for prompt in prompts:
        answer = answers[prompt.id]
        sums = [score.log_probability for score in answer.scores]
        assert answer.text == OPTIONS[int(np.argmax(sums))]
        assert [score.request_id for score in answer.scores] == ["0", "1", "2", "3", "4"]


def scored_by(table):
    """Return a runner with the log-probability of each continuation in a table."""
    return Scoring(
        lambda asked: {"token_ids": (1,), "log_probabilities": (table[asked.continuation],)}
    )


@pytest.mark.parametrize(
    ("values", "majority", "text"),
    [
        ((-1.0, -2.0, -2.0), False, " a"),
        ((-1.0, -1.0, -2.0), False, None),
        ((-0.1 * 3, -0.3, -2.0), False, None),
        ((-1.0, -1.0, -1.0), False, None),
        ((-math.inf, -math.inf, -math.inf), False, None),
        # With a majority: more probable than all others together, equally, less.
        ((math.log(0.6), math.log(0.2), math.log(0.2)), True, " a"),
        ((math.log(0.5), math.log(0.25), math.log(0.25)), True, None),
        ((math.log(0.4), math.log(0.4), math.log(0.2)), True, ""),
        ((-1.0, -1.0, -math.inf), True, None),
    ],
)
def test_equally_probable_options_are_not_an_answer(values, majority, text):
    runner = MultipleChoiceRunner(
        scored_by(dict(zip((" a", " b", " c"), values, strict=True))), majority=majority
    )
    prompt = Prompt(id="q1", text="Q: Which? A:", options=(" a", " b", " c"))

    answer = next(runner.generate([prompt], GenerationParams()))

    assert answer.text == text
    assert answer.finish_reason == ("tie" if text is None else "stop")
    assert (answer.error is not None) == (text is None)
    assert len(answer.scores) == 3


def test_another_option_score_changes_the_comparison():
    scores = [
        ScoredText(request_id="0", token_ids=(1,), log_probabilities=(-1.0,)),
        ScoredText(request_id="1", token_ids=(1, 2, 3), log_probabilities=(-0.5, -0.5, -0.5)),
    ]
    options = (" a", " a longer one")
    assert option_scores(options, scores, "sum") == [-1.0, -1.5]
    assert option_scores(options, scores, "per_token") == [-1.0, -0.5]
    assert option_scores(options, scores, "per_character") == [-1.0, -1.5 / 12]
    stored = [ScoredText(request_id="0", log_probabilities=(-1.0,))]
    with pytest.raises(RunnerError, match="cannot be divided by tokens"):
        option_scores((" a",), stored, "per_token")


def test_scores_do_not_depend_on_decoding_settings(tiny_models, shot_prompts):
    """Penalties, forbidden tokens and temperature do not change log-probabilities."""
    requests = requests_of(shot_prompts, n=2)
    plain = {s.request_id: s for s in TransformersRunner(tiny_models("llama")).score(requests)}
    runner = TransformersRunner(tiny_models("llama"))
    settings = runner._engine.model.generation_config
    settings.update(
        repetition_penalty=1.7, temperature=0.3, top_k=2, suppress_tokens=[5, 6, 7], do_sample=True
    )
    for score in runner.score(requests):
        assert score == plain[score.request_id]


def test_a_token_with_masked_logits_has_probability_zero(tiny_models):
    """Masked logits are minus infinity, which is a score; another option is the answer."""
    runner = TransformersRunner(tiny_models("llama"))
    (token,) = runner._encoder.tokenizer("x")["input_ids"]
    plain = runner._engine.score

    def masked(batch, n_last):
        logits = plain(batch, n_last).clone()
        logits[..., token] = -math.inf
        return logits

    runner._engine.score = masked
    (ruled_out,) = runner.score([ScoringRequest(id="x", context="Q:", continuation="x")])
    assert ruled_out.log_probability == -math.inf
    assert ruled_out.is_greedy is False
    prompt = Prompt(id="q", text="Q:", options=("x", "y"))
    for majority in (False, True):
        (answer,) = MultipleChoiceRunner(runner, majority=majority).generate(
            [prompt], GenerationParams()
        )
        assert answer.text == "y"


def test_error_names_a_continuation_without_tokens(tiny_models):
    from tokenizers import normalizers

    runner = TransformersRunner(tiny_models("llama"))
    tokenizer = runner._encoder.tokenizer
    before = tokenizer.backend_tokenizer.normalizer
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("\u200b", "")
    try:
        with pytest.raises(RunnerError, match=r"continuation '\\u200b' of request 'z' has no tok"):
            list(runner.score([ScoringRequest(id="z", context="a", continuation="\u200b")]))
    finally:
        tokenizer.backend_tokenizer.normalizer = before


def test_conversations_are_scored_after_the_chat_template(tiny_models):
    inner = TransformersRunner(tiny_models("gpt_neox"))
    inner._encoder.tokenizer.chat_template = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
    )
    asked = Prompt(
        id="c", messages=(Message(role="user", content="Chad?"),), options=("Peru", "Chad")
    )
    (answer,) = MultipleChoiceRunner(inner).generate([asked], GenerationParams())
    rendered = inner.render(asked)
    assert rendered == "<user>Chad?<assistant>"
    (score,) = inner.score(
        [ScoringRequest(id="x", context=rendered, continuation="Peru", bos="none")]
    )
    assert answer.scores[0].log_probability == pytest.approx(score.log_probability, abs=1e-5)


def test_runners_and_prompts_without_options_raise_an_error():
    runner = MultipleChoiceRunner(scored_by({}))
    plain = Prompt(id="q", text="a")

    with pytest.raises(
        RunnerError, match="'fake' does not define `score`, which prompts with options need"
    ):
        MultipleChoiceRunner(FakeRunner({"q": "a"}))
    with pytest.raises(RunnerError, match=r"prompt 'q' has no options"):
        list(runner.generate([plain], GenerationParams()))
    with pytest.raises(ValueError, match="option_score must be one of sum, per_token, per_cha"):
        MultipleChoiceRunner(runner, option_score="best")
    assert plain.key != plain.model_copy(update={"options": (" b", " c")}).key
    with pytest.raises(ValidationError, match="no option twice"):
        Prompt(id="q", text="a", options=(" b", " b"))
