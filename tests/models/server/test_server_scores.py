"""Log-probabilities from servers: a local server replays a model, or says what is wrong."""

import pytest

from surface_consistency.errors import RunnerError
from surface_consistency.models import MultipleChoiceRunner, OpenAICompatibleRunner
from surface_consistency.models.options import option_scores
from surface_consistency.schemas import GenerationParams, Prompt
from surface_consistency.schemas.scoring import ScoringRequest
from tests.models.server.fake_server import FakeServer

pytest.importorskip("httpx")
pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]

OPTIONS = (" London", " Sierra Leone", " no", "ß😀x", " 東京")


def served(script):
    """A server that answers each body of a request with what the script makes of it."""

    def answer(number, body):
        told = script(body)
        return (told[0], {}, told[1]) if isinstance(told, tuple) else (200, {}, told)

    return FakeServer(answer)


def echo(tokens, values, best=None, **others):
    """A completion that repeats its prompt."""
    told = {"tokens": tokens, "token_logprobs": values, "top_logprobs": best, **others}
    return {"model": "m", "choices": [{"text": "".join(tokens), "logprobs": told}]}


def runner(url, **options):
    options = {"first_wait": 0.01, "timeout": 5.0, "max_retries": 1, **options}
    return OpenAICompatibleRunner("m", base_url=url, **options)


def score(told, request=None, **options):
    request = request or ScoringRequest(id="q", context="A b", continuation=" cd")
    with served(lambda body: told) as server:
        (scored,) = runner(server.url, **options).score([request])
    return scored


@pytest.fixture(scope="module")
def model(tiny_models):
    """A tiny model, scored on this machine, and the same model behind a protocol."""
    torch = pytest.importorskip("torch")
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    from surface_consistency.models import TransformersRunner

    local = TransformersRunner(tiny_models("llama"), device="cpu")
    tokenizer, network = local._encoder.tokenizer, local._engine.model

    def tell(text):
        ids = tokenizer(text)["input_ids"]
        with torch.inference_mode():
            logits = network(input_ids=torch.tensor([ids])).logits[0]
        ids.append(int(logits[-1].argmax()))
        told = logits.log_softmax(-1)
        values = [None, *(float(told[n, token]) for n, token in enumerate(ids[1:]))]
        best = [None, *(float(row.max()) for row in told)]
        return ids, [tokenizer.decode([token]) for token in ids], values, best

    letters = {letter: byte for byte, letter in bytes_to_unicode().items()}

    def as_bytes(token):
        told = bytes(letters[letter] for letter in tokenizer.convert_ids_to_tokens(token))
        return "bytes:" + "".join(chr(b) if b < 128 else f"\\x{b:x}" for b in told)

    tell.as_bytes = as_bytes
    return local, tell


def echoing(tell, *, as_bytes=False):
    def script(body):
        assert (body["echo"], body["logprobs"], body["max_tokens"]) == (True, 1, 1)
        ids, texts, values, best = tell(body["prompt"])
        if as_bytes:
            pairs = zip(ids, texts, strict=True)
            texts = [tell.as_bytes(i) if "�" in text else text for i, text in pairs]
        return echo(texts, values, [b if b is None else {"x": b} for b in best])

    return script


def vllm(tell):
    def script(body):
        assert body["prompt_logprobs"] == 0
        assert "echo" not in body
        ids, texts, values, best = tell(body["prompt"])
        entries = [
            {str(i): {"logprob": v, "rank": 1 if v == b else 7, "decoded_token": t}}
            for i, t, v, b in zip(ids, texts, values, best, strict=True)
        ]
        choice = {"text": texts[-1], "prompt_logprobs": [None, *entries[1:-1]]}
        return {"model": "m", "choices": [choice]}

    return script


@pytest.mark.parametrize("way", ["echo", "echo of bytes", "prompt_logprobs"])
def test_a_server_tells_what_the_model_tells(model, shot_prompts, way):
    """Tokens of parts of characters, moved boundaries and greedy continuations among them."""
    local, tell = model
    # Where parts are "�", those of both sides of a boundary cannot be told apart.
    contexts = [
        "東京 is not in",
        "Q: 😀" if "bytes" in way else "Q: 😀:",
        *(prompt.text for prompt in shot_prompts[:3]),
    ]
    requests = [
        ScoringRequest(id=f"{n}/{option}", context=context, continuation=option)
        for n, context in enumerate(contexts)
        for option in OPTIONS
    ]
    ids, texts, _, _ = tell(contexts[0])
    requests.append(ScoringRequest(id="greedy", context=contexts[0], continuation=texts[-1]))
    script = vllm(tell) if way == "prompt_logprobs" else echoing(tell, as_bytes="bytes" in way)
    with served(script) as server:
        asked = runner(server.url, score_by=way.split()[0])
        scored = {score.request_id: score for score in asked.score(requests)}

    assert len(server.requests) == len(requests)
    assert {request["path"] for request in server.requests} == {"/v1/completions"}
    for expected in local.score(requests):
        told = scored[expected.request_id]
        assert told.log_probabilities == pytest.approx(expected.log_probabilities, abs=1e-4)
        for field in ("boundary", "is_greedy", "n_scored", "n_context_tokens"):
            assert getattr(told, field) == getattr(expected, field)
        if way == "prompt_logprobs":
            assert told.token_ids == expected.token_ids
    assert scored["greedy"].is_greedy == (ids[-1] == tell(contexts[0] + texts[-1])[0][-2])


def test_options_are_chosen_by_what_a_server_tells(model):
    local, tell = model
    prompts = [Prompt(id=str(n), text=f"Q: {n} A:", options=OPTIONS[:3]) for n in range(3)]
    with served(echoing(tell)) as server:
        told = list(MultipleChoiceRunner(runner(server.url)).generate(prompts, GenerationParams()))
    expected = list(MultipleChoiceRunner(local).generate(prompts, GenerationParams()))
    assert [answer.text for answer in told] == [answer.text for answer in expected]
    for one, other in zip(told, expected, strict=True):
        by_token = option_scores(OPTIONS[:3], one.scores, "per_token")
        assert by_token == pytest.approx(option_scores(OPTIONS[:3], other.scores, "per_token"))


@pytest.mark.parametrize(
    ("tokens", "texts"),
    [
        (["<s>", "A", " b", " cd", "!"], (" cd",)),
        (["▁A", "▁b", "▁c", "d", "!"], ("▁c", "d")),
        (["A", "b", "cd", "!"], ("cd",)),
        (["A", " b ", "cd", "!"], (" b ", "cd")),
        (["A", " b", " ", "", "cd", "x"], (" ", "", "cd")),
    ],
)
def test_tokens_are_found_in_the_text_however_a_server_writes_them(tokens, texts):
    """A begin token, sentencepiece's spaces, lost spaces, tokens over the boundary, empty ones."""
    values = [None, *(-float(n) for n in range(1, len(tokens)))]
    scored = score(echo(tokens, values))
    start = len(tokens) - 1 - len(texts)
    assert scored.tokens == texts
    assert scored.log_probabilities == tuple(values[start:-1])
    assert scored.boundary == ("moved" if texts[0].startswith(" b") else "clean")
    assert scored.is_greedy is None
    assert scored.token_ids is None


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["A", " b", " xy", "!"], r"request 'q' goes on with ' cd' at character 3, .*with ' xy'"),
        (["Q", " b", " cd", "!"], r"of other tokens than were sent: .* at character 0, .*'Q'"),
        (["A", " b", " c"], r"goes on with 'd' at character 5, and the server with ''"),
        (["<s>", "<s>", "A", " b", " cd"], r"at character 0, and the server with '<s>'"),
        (["A", " b", "�", " cd"], r"goes on with ' cd' at character 3"),
    ],
)
def test_other_tokens_than_were_sent_are_refused(tokens, message):
    with pytest.raises(RunnerError, match=message):
        score(echo(tokens, [None, *[-1.0] * (len(tokens) - 1)]))


def choice(**told):
    return {"choices": [{"text": "x", **told}]}


NONE_TOLD = (
    r"tells no log-probabilities of prompts \(asked for by 'echo'\); ask with "
    r"score_by='prompt_logprobs' .*`read=generate`, or take a server that tells them"
)
REFUSED = {"error": {"message": "echo and logprobs are not supported together"}}
BY_PROMPT = {"score_by": "prompt_logprobs"}
TOKENS = ["A", " b", " cd", "!"]
OTHERS = [{"7": {"logprob": -1.0, "rank": 2, "decoded_token": text}} for text in (" b", " ce")]


@pytest.mark.parametrize(
    ("told", "options", "message"),
    [
        (choice(logprobs=None), {}, NONE_TOLD),
        (echo(["x"], [-1.0]), {}, "tells no log-probabilities of prompts"),
        (choice(), BY_PROMPT, "no log-probabilities of prompts .* ask with score_by='echo'"),
        ((400, REFUSED), {}, "request 'q' was not scored: .*not supported together.*, or read ans"),
        ({"choices": []}, {}, "was not scored: gave up after 2 attempts: a damaged answer: no `c"),
        (echo(TOKENS[:3], [None, -1.0]), {}, "3 tokens have 2 log-probabilities"),
        (
            choice(prompt_logprobs=[None, {"7": -1.0}]),
            BY_PROMPT,
            "an entry of `prompt_logprobs` is",
        ),
        (choice(prompt_logprobs=[None, *OTHERS]), BY_PROMPT, "were sent: request 'q' goes on"),
        *(
            (
                echo(TOKENS, [None, -1.0, value, -1.0]),
                {},
                f"' cd' of request 'q' .* {told}, which is",
            )
            for value, told in ((float("nan"), "nan"), (0.7, "0.7"), (None, "none"))
        ),
    ],
)
def test_a_server_without_log_probabilities_is_refused(told, options, message):
    with pytest.raises(RunnerError, match=message):
        score(told, **options)


def test_rounding_above_probability_one_is_none():
    assert score(echo(["A b", " cd", "!"], [None, 1e-6, -1.0])).log_probability == 0.0


@pytest.mark.parametrize(
    ("tokens", "bos", "message"),
    [
        (["A", " b", "!"], "model", r'puts no begin token .*; ask with bos="none"'),
        (["<s>", "A", " b", "!"], "none", r'puts a begin token .*; ask with bos="model"'),
        (["<s>", "A", " b", "!"], "eos", r'cannot be asked with bos="eos"'),
    ],
)
def test_another_begin_than_was_asked_for_is_refused(tokens, bos, message):
    request = ScoringRequest(id="q", continuation="A b", bos=bos)
    with pytest.raises(RunnerError, match=message):
        score(echo(tokens, [None, *[-1.0] * (len(tokens) - 1)]), request)


def test_a_whole_text_is_scored_from_where_its_begin_says():
    whole = ScoringRequest(id="q", continuation="A b", bos="none")
    told = score(echo(["A", " b", "!"], [None, -1.5, -9.0]), whole)
    assert told.log_probabilities == (None, -1.5)
    after_begin = score(
        echo(["<s>", "A", " b", "!"], [None, -2.0, -1.5, -9.0]),
        whole.model_copy(update={"bos": "model"}),
    )
    assert after_begin.log_probabilities == (-2.0, -1.5)


def test_a_continuation_without_tokens_of_its_own_is_refused():
    request = ScoringRequest(id="q", context="A b", continuation=" ")
    with pytest.raises(RunnerError, match="request 'q' goes on with ' ' at character 3"):
        score(echo(["A", " b", "", "!"], [None, -1.0, -1.0, -1.0]), request)


def test_what_cannot_be_scored_is_refused_before_anything_is_sent():
    url = "http://127.0.0.1:1/v1"
    with pytest.raises(RunnerError, match=r"text_as_chat sends texts as turns"):
        list(runner(url, text_as_chat=True).score([]))
    with pytest.raises(ValueError, match="score_by is one of echo, prompt_logprobs, got 'x'"):
        runner(url, score_by="x")
