"""Tests of the runner of servers with a local server that returns planned replies and errors."""

import gc
import json
import random
import re
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from surface_consistency.engine.generate import run_prompts
from surface_consistency.errors import RunnerError, SurfaceConsistencyWarning
from surface_consistency.models import OpenAICompatibleRunner
from surface_consistency.runs.log import RunLog, read_generations
from surface_consistency.schemas import GenerationParams, Message, Prompt
from surface_consistency.web import backoff, retry_after
from tests.models.server.fake_server import FakeServer, reply

pytest.importorskip("httpx")
pytestmark = pytest.mark.enable_socket
PARAMS = GenerationParams()
KEY = "sk-very-secret"
OK = (200, {"set-cookie": "a=b"}, reply("ok"))


@pytest.fixture
def serve():
    """Return a function that starts servers, which are stopped at the end of the test."""
    started = []

    def start(script, **options):
        answer = script if callable(script) else lambda n, body: script
        server = FakeServer(answer, **options)
        started.append(server.__enter__())
        return server

    yield start
    for server in started:
        server.__exit__()


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def prompts(n):
    return [Prompt(id=f"p{i}", text=f"question {i}") for i in range(n)]


def runner(server, **options):
    """Return a function that creates a runner with short waits."""
    return OpenAICompatibleRunner(
        "m", base_url=server.url, **{"first_wait": 0.01, "timeout": 5.0, **options}
    )


def answers(server, n=1, params=PARAMS, **options):
    found = list(runner(server, **options).generate(prompts(n), params))
    assert {g.prompt_id for g in found} == {f"p{i}" for i in range(n)}
    assert not any("cookie" in request["headers"] for request in server.requests)
    return sorted(found, key=lambda g: int(g.prompt_id[1:]))


def test_text_prompts_are_sent_to_completions(serve):
    server = serve(lambda n, body: (200, {}, reply(body["prompt"].upper(), finish="length")))

    [answer] = answers(server)

    assert answer.text == "QUESTION 0"
    assert (answer.finish_reason, answer.n_prompt_tokens, answer.n_new_tokens) == ("length", 3, 2)
    assert server.requests[0]["path"] == "/v1/completions"
    assert server.bodies == [
        {"model": "m", "max_tokens": 15, "temperature": 0.0, "stop": ["\n"], "prompt": "question 0"}
    ]


def test_messages_are_sent_to_chat_completions(serve):
    server = serve((200, {}, reply("yes", chat=True)))
    turns = (Message(role="system", content="short"), Message(role="user", content="hi"))
    params = GenerationParams(stop=(), temperature=0.5, top_p=0.9, seed=7)

    made = runner(server, extra_body={"top_k": 1})
    [answer] = made.generate([Prompt(id="a", messages=turns)], params)
    answers(server, text_as_chat=True, max_tokens_field="max_completion_tokens")

    assert answer.text == "yes"
    assert {request["path"] for request in server.requests} == {"/v1/chat/completions"}
    body, as_chat = server.bodies
    assert body["messages"][1] == {"role": "user", "content": "hi"}
    sent = {"temperature": 0.5, "top_p": 0.9, "seed": 7, "top_k": 1}
    assert {name: body.get(name) for name in (*sent, "stop")} == sent | {"stop": None}
    assert as_chat["messages"] == [{"role": "user", "content": "question 0"}]
    assert as_chat["max_completion_tokens"] == 15


@pytest.mark.parametrize(
    "trouble",
    [
        *((429, {}, b"slow down"), (500, {}, b""), (521, {}, b"down"), (529, {}, b"overloaded")),
        (503, {"retry-after": "0.05"}, b"loading"),
        (429, {"retry-after": "Mon, 01 Jan 99999999999 00:00:00 GMT"}, b""),
        *((200, {}, b'{"choices": [{"te'), (200, {}, b"<html>gateway</html>")),
        *((200, {}, b"[1, 2]"), (200, {}, b"[" * 100_000), (200, {}, b'{"choices": []}')),
        *((200, {}, b'{"choices": [{"text": 5}]}'), (200, {}, b'{"choices": [{"message": "hi"}]}')),
        # The limit applies to the complete request, even if bytes keep arriving.
        *("close", "half", "hang", "drip"),
    ],
    ids=lambda trouble: str(trouble)[:40],
)
def test_temporary_errors_are_retried(serve, trouble):
    """A temporary error causes a second request and has no other effect."""
    server = serve(lambda n, body: trouble if n == 0 else OK)
    start = time.monotonic()

    [answer] = answers(server, timeout=0.4 if trouble in ("hang", "drip") else 5.0)

    assert answer.text == "ok"
    assert len(server.requests) == 2
    assert trouble not in ("hang", "drip") or time.monotonic() - start < 3


@pytest.mark.parametrize(
    ("headers", "options", "waits"),
    [
        # No request is sent during the wait that the server requests.
        ({"Retry-After": "0.6"}, {}, [0.55, 0.0]),
        # A Retry-After of 0 does not end the growing waits.
        ({"Retry-After": "0"}, {"first_wait": 0.08, "max_retries": 2}, [0.04, 0.08]),
    ],
)
def test_waits_follow_retry_after_and_increase(serve, headers, options, waits):
    times = []

    def script(n, body):
        times.append(time.monotonic())
        return OK if "first_wait" not in options and n else (429, headers, b"")

    found = answers(serve(script), n=1 if options else 6, concurrency=1, **options)

    assert {g.text for g in found} == {None if options else "ok"}
    for wait, before, after in zip(waits, times, times[1:], strict=False):
        assert after - before >= wait


MODEL = (200, {}, reply("ok", model="m-0613"))


def two_models(n, body):
    return 200, {}, reply("ok", model=f"m-{n // 3}")


@pytest.mark.parametrize(
    ("script", "options", "message"),
    [
        (
            (429, {"Retry-After": "86400"}, b""),
            {},
            "requests a wait of 86400 s, .* longest_wait = 120",
        ),
        (
            (308, {"location": "https://other"}, b""),
            {},
            r"has moved \(HTTP 308.*give the new address",
        ),
        ((404, {}, b"model not found"), {}, "not served at .*that it serves this model"),
        (two_models, {"concurrency": 1}, "now returns the model name 'm-1', and before 'm-0'"),
        (MODEL, {"served_model": "m-0301"}, "name 'm-0613', and before 'm-0301'"),
        ("close", {"concurrency": 1, "max_retries": 0}, "3 consecutive requests"),
    ],
    ids=["wait", "redirection", "unknown model", "another model", "pinned model", "dead server"],
)
def test_permanent_errors_end_the_run(serve, script, options, message):
    with pytest.raises(RunnerError, match=message):
        answers(serve(script), n=9, **options)


@pytest.mark.parametrize(
    ("trouble", "options", "error", "n_requests"),
    [
        ((400, {}, b"context too long"), {}, "HTTP 400: context too long", 3),
        ((413, {}, b"context too long"), {}, "HTTP 413: context too long", 3),
        ((422, {}, b"context too long"), {}, "HTTP 422: context too long", 3),
        ("close", {"concurrency": 1, "max_retries": 1}, "gave up after 2 attempts", 4),
    ],
)
def test_a_rejected_or_lost_prompt_is_an_error_of_that_prompt(
    serve, trouble, options, error, n_requests
):
    server = serve(lambda n, body: trouble if body["prompt"] == "question 1" else OK)

    good, bad, last = answers(server, n=3, **options)

    assert (good.text, last.text, bad.text) == ("ok", "ok", None)
    assert error in bad.error
    assert len(server.requests) == n_requests


def test_replies_without_an_answer_have_a_separate_finish_reason(serve):
    """A refusal or a filtered reply is not an answer."""
    refusal, cut = reply(None, chat=True), reply("It is", finish="content_filter")
    refusal["choices"][0]["message"]["refusal"] = "I cannot say"
    azure = {"error": {"code": "content_filter", "message": "the prompt was filtered"}}
    replies = [(200, {}, refusal), (200, {}, cut), (400, {}, azure), (200, {}, reply(None))]
    expected = [
        ("refusal", "the model refused: I cannot say"),
        ("content_filter", "withheld the answer: it had written 'It is'"),
        ("content_filter", "the prompt was filtered"),
        ("error", "returned no text"),
    ]

    found = answers(serve(lambda n, body: replies[n]), n=4, concurrency=1)

    for answer, (reason, error) in zip(found, expected, strict=True):
        assert (answer.text, answer.finish_reason) == (None, reason)
        assert error in answer.error


# The error of OpenRouter for a flagged prompt, and of a key without a permission.
FLAGGED = {"reasons": ["violence"], "flagged_input": "How ...", "provider_name": "OpenAI"}


@pytest.mark.parametrize("metadata", [FLAGGED, {"error_type": "content_policy_violation"}])
@pytest.mark.parametrize("status", [200, 403])
def test_a_flagged_prompt_is_filtered_and_the_others_are_answered(serve, status, metadata):
    error = {"error": {"code": 403, "message": "flagged", "metadata": metadata}}
    server = serve(lambda n, body: (status, {}, error) if n == 1 else OK)

    found = answers(server, n=3, concurrency=1)

    assert [one.finish_reason for one in found] == ["stop", "content_filter", "stop"]
    assert "flagged" in found[1].error
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "error",
    [
        {"code": 403, "message": "no permission"},
        {"code": 403, "message": "no permission", "metadata": {"error_type": "permission_denied"}},
        "forbidden",
    ],
)
def test_another_403_ends_the_run(serve, error):
    with pytest.raises(RunnerError, match=r"rejected the request \(HTTP 403"):
        answers(serve((403, {}, {"error": error})), n=3)


def thinking(fields, finish="stop"):
    """Return a chat reply whose message has these fields."""
    return 200, {}, {"choices": [{"message": fields, "finish_reason": finish}]}


PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "Rome? No."}]},
    {"type": "text", "text": "Paris"},
]


# As OpenRouter writes them: reasoning.text, reasoning.summary and reasoning.encrypted.
DETAILS = [
    {"type": "reasoning.text", "text": "Rome? ", "signature": None},
    {"type": "reasoning.summary", "summary": "No."},
    {"type": "reasoning.encrypted", "data": "gAAA"},
]


@pytest.mark.parametrize(
    ("fields", "source"),
    [
        ({"content": "Paris", "reasoning_content": "Rome? No."}, "reasoning_content"),
        ({"content": "Paris", "reasoning": "Rome? No."}, "reasoning"),
        ({"content": "Paris", "reasoning_details": DETAILS}, "reasoning_details"),
        ({"content": "<think>Rome? No.</think>Paris"}, "<think>"),
        ({"content": "Rome? No.</think>\n\nParis"}, "</think>"),
        ({"content": PARTS}, "content"),
        # Truncated by the server.
        ({"content": None, "reasoning_content": "Rome? No."}, None),
        ({"content": "", "reasoning": "Rome? No."}, None),
        ({"content": None, "reasoning": None, "reasoning_details": DETAILS}, None),
        ({"content": "<think>Rome? No."}, None),
    ],
)
def test_reasoning_is_separated_in_every_supported_field(serve, fields, source):
    content = thinking(fields, "stop" if source else "length")

    [answer] = answers(serve(content), text_as_chat=True)

    assert answer.reasoning == "Rome? No."
    if source:
        assert (answer.text, answer.reasoning_source) == ("Paris", source)
    else:
        assert (answer.text, answer.finish_reason) == (None, "unclosed_reasoning")
        assert answer.error == "the reasoning was never closed: the limit of tokens ended it"


def test_a_stop_string_does_not_end_the_reasoning_of_a_server(serve):
    """With a separate limit of reasoning, stop strings are not sent."""
    server = serve((200, {}, reply("<think>\nRome?\n</think>\n\nParis\nQ: x")))

    [answer] = answers(server, params=GenerationParams(max_reasoning_tokens=100))

    assert (answer.text, answer.reasoning) == ("Paris", "Rome?")
    assert (server.bodies[0]["max_tokens"], server.bodies[0].get("stop")) == (115, None)


def logged(made, asked, folder, manifest):
    """Send prompts with a run log."""
    manifest = manifest.model_copy(update={"runner": made.fingerprint()})
    log = folder / "generations.jsonl"
    with RunLog.open(log, manifest, manifest_path=folder / "manifest.json") as opened:
        return run_prompts(made, asked, PARAMS, opened, progress=False)


def test_a_server_that_rejects_every_prompt_ends_the_run(serve, tmp_path, manifest):
    """The error quotes the server and has a remedy; it is raised after a few requests."""
    content = {"error": {"message": "max_tokens 15 of request 17 is too large"}}
    server = serve((400, {}, content), latency=0.01)
    made = runner(server, concurrency=2, max_refusals=6)

    words = r"first 6 prompts and returned the same error.*max_tokens 15.*larger max_refusals"
    with pytest.raises(RunnerError, match=words) as raised:
        logged(made, prompts(300), tmp_path, manifest)

    # The error and its frames still exist, and no further request is sent.
    time.sleep(0.2)
    assert raised.traceback
    assert len(server.requests) <= 10


def test_a_server_that_rejects_some_prompts_receives_all(serve, tmp_path, manifest):
    """Also if the run is resumed and only the rejected prompts are left."""

    def script(n, body):
        too_long = (400, {}, {"error": f"prompt of {n} tokens is too long"})
        return OK if body["prompt"] == "question 3" else too_long

    server = serve(script)
    made = runner(server, concurrency=1, max_refusals=6)

    for _ in range(2):
        logged(made, prompts(30), tmp_path, manifest)

    assert len(server.requests) == 30 + 29


def test_errors_are_sent_again_on_resume_and_refusals_are_not(serve, tmp_path, manifest):
    """The server is repaired before the second start; answers and refusals are unchanged."""
    broken = ["stop", "abort", "content_filter", "insufficient_system_resource", "refusal"]
    ends = {f"question {n}": end for n, end in enumerate(broken)}
    server = serve(lambda n, body: (200, {}, reply("Alder", finish=ends[body["prompt"]])))
    made = runner(server)

    first = logged(made, prompts(5), tmp_path, manifest)
    ends |= {f"question {n}": "stop" for n in (1, 3)}
    second = logged(made, prompts(5), tmp_path, manifest)

    assert (first.n_asked, first.n_errors) == (5, 2)
    assert (second.n_asked, second.n_reused, second.n_errors) == (2, 3, 0)
    assert sorted(body["prompt"] for body in server.bodies[5:]) == ["question 1", "question 3"]
    kinds = {g.prompt_id: g.finish_reason for g in read_generations(tmp_path / "generations.jsonl")}
    answered = {"p0": "stop", "p1": "stop", "p3": "stop"}
    assert kinds == answered | {"p2": "content_filter", "p4": "refusal"}


STREAM = b'data: {"choices": [{"delta": {"content": "Par"}}]}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (STREAM, r"a stream of server-sent events .*extra_body=\{\"stream\": false\}"),
        (b"\n<!DOCTYPE html><html>Sign in</html>", r"a page in HTML .*at which its API begins"),
        ({"error": {"message": "no credits left", "code": 402}}, r"no credits left \(code 402\)"),
    ],
)
def test_error_describes_an_invalid_reply(serve, content, message):
    [answer] = answers(serve((200, {}, content)), max_retries=0)

    assert (answer.text, answer.finish_reason) == (None, "error")
    assert re.search(message, answer.error)
    assert "line" not in answer.error


def test_a_server_that_streams_by_default_answers_with_the_remedy(serve):
    server = serve(lambda n, body: OK if body.get("stream") is False else (200, {}, STREAM))

    [answer] = answers(server, extra_body={"stream": False}, max_retries=0)

    assert answer.text == "ok"


def test_replies_without_a_stated_end_are_counted_in_one_warning(serve):
    made = runner(serve((200, {}, reply("ok", finish=None))))

    with pytest.warns(SurfaceConsistencyWarning, match="^3 of 3 replies contain no finish_reason"):
        found = list(made.generate(prompts(3), PARAMS))
    again = list(made.generate(prompts(3), PARAMS))

    assert [answer.text for answer in found + again] == ["ok"] * 6


@pytest.mark.parametrize(
    ("n_tokens", "is_cut"),
    [
        # Ollama truncates prompts longer than its context: ollama#17889, #10974.
        ([20, 512, 512, 512], True),
        ([512, 512, 512, 512], True),
        # One count per prompt, no counts, and two prompts of similar length.
        ([20, 600, 1200, 2400], False),
        *(([None] * 4, False), ([0] * 4, False), ([2400, 600, 1200, 2400], False)),
    ],
)
def test_prompts_truncated_by_the_server_are_reported(serve, n_tokens, is_cut, recwarn):
    asked = [Prompt(id=str(n), text="x" * n) for n in (2300, 600, 1200, 2400)]
    counts = {prompt.text: count for prompt, count in zip(asked, n_tokens, strict=True)}

    def script(n, body):
        content = reply("ok")
        content["usage"]["prompt_tokens"] = counts[body["prompt"]]
        return 200, {}, content

    list(runner(serve(script)).generate(asked, PARAMS))

    texts = [str(warning.message) for warning in recwarn]
    assert [text.partition(",")[0] for text in texts] == (
        [f"{n_tokens.count(512)} of 4 prompts"] if is_cut else []
    )


@pytest.mark.parametrize(
    ("headers", "data", "error"),
    [
        ({}, json.dumps(reply("x" * 10_000_000)).encode(), "larger than max_reply_bytes = 4,000,"),
        ({}, b'{"choices": ' + b"[" * 200 + b"]" * 200 + b"}", "nested more than 64 levels deep"),
        ({}, b'{"choices": ' + b"[" * 10**5 + b"]" * 10**5 + b"}", "nested more than 64 levels"),
    ],
    ids=["large", "nested", "deeply nested"],
)
def test_a_hostile_reply_is_an_error_of_its_prompt(serve, headers, data, error):
    server = serve((200, headers, data))

    [answer] = answers(server, max_retries=0)

    assert answer.text is None
    assert error in answer.error
    assert len(server.requests) == 1
    assert server.requests[0]["headers"]["accept-encoding"] == "identity"


def quoting(text):
    """Return replies that quote a text, by the position of the text."""
    return {
        "text": reply(f"the key is {text}.", chat=True),
        "finish_reason": reply(None, chat=True, finish=text),
        "model": reply("ok", chat=True, model=text),
        "reasoning": thinking({"content": None, "reasoning": text})[2],
        "refusal": thinking({"content": None, "refusal": text})[2],
        "field": {text: 5},
        "body": text.encode(),
        "reason": b"",
    }


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("quoted", [KEY, KEY.upper(), KEY.replace("-", "%2D")])
@pytest.mark.parametrize("where", quoting(""))
def test_the_key_is_removed_from_all_replies_of_a_server(serve, caplog, where, quoted):
    """Neither log nor manifest nor any message contains a form that is redacted."""
    server = serve((400 if where in ("body", "reason") else 200, {}, quoting(quoted)[where]))
    server.reason = quoted if where == "reason" else "X"
    made = runner(server, text_as_chat=True, max_retries=0, served_model="m-1")

    message = ""
    try:
        found = list(made.generate(prompts(2), PARAMS))
    except RunnerError as error:
        found, message = [], str(error)

    everything = " ".join([message, caplog.text, *(answer.model_dump_json() for answer in found)])
    assert found or where == "model"
    assert not any(part.lower() in everything.lower() for part in (KEY, quoted))
    assert "<key>" in everything


@pytest.mark.usefixtures("key")
def test_a_key_in_an_invalid_status_line_or_in_pieces_is_removed(serve):
    """The error of a library for a reply that is not HTTP quotes the reply."""
    pieces = [{"type": "text", "text": part} for part in (KEY[:4], KEY[4:9], KEY[9:], " Paris")]
    replies = [(f"2 {KEY}", {}, b""), thinking({"content": pieces})]
    server = serve(lambda n, body: replies[n])

    broken, joined = answers(server, n=2, concurrency=1, text_as_chat=True, max_retries=0)

    assert "ProtocolError" in broken.error
    assert KEY not in broken.error
    assert joined.text == "<key> Paris"


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("status", [401, 402, 403])
def test_an_invalid_key_ends_the_run_and_is_not_printed(serve, status):
    server = serve((status, {}, f"no such key: {KEY}".encode()))

    with pytest.raises(RunnerError, match=r"<key>.*variable OPENAI_API_KEY") as raised:
        answers(server)

    assert server.requests[0]["headers"]["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(raised.value)


def test_a_key_that_is_invalid_in_a_header_is_rejected_and_not_printed(monkeypatch):
    monkeypatch.setenv("MY_KEY", f"{KEY} \x01 more")
    made = OpenAICompatibleRunner("m", base_url="http://localhost:1/v1", api_key_env="MY_KEY")

    with pytest.raises(RunnerError, match="MY_KEY contains spaces") as raised:
        list(made.generate(prompts(1), PARAMS))

    assert KEY not in f"{raised.value} {json.dumps(made.fingerprint())}"


def test_the_number_of_concurrent_requests_is_limited(serve):
    server = serve(OK, latency=0.02)

    answers(server, n=60, concurrency=8)

    assert server.most_in_flight == 8


def test_a_stopped_run_resumes_without_duplicate_requests(serve, tmp_path, manifest):
    """Answers before the failure of the server are in the log; only the others are sent again."""
    is_mended = []

    def script(n, body):
        fine = n < 30 or is_mended
        return (200, {}, reply(body["prompt"])) if fine else (401, {}, b"key expired")

    made = runner(serve(script), concurrency=4)
    with pytest.raises(RunnerError, match="key"):
        logged(made, prompts(100), tmp_path, manifest)
    is_mended.append(True)

    summary = logged(made, prompts(100), tmp_path, manifest)

    assert summary.n_reused >= 30 - 4
    assert summary.n_reused + summary.n_asked == 100
    lines = (tmp_path / "generations.jsonl").read_text().splitlines()
    asked = sorted(p.id for p in prompts(100))
    assert sorted(json.loads(line)["prompt_id"] for line in lines) == asked


def test_closing_early_stops_the_requests(serve, caplog):
    server = serve(OK, latency=0.05)
    before = threading.active_count()
    stream = runner(server, concurrency=2).generate(prompts(500), PARAMS)

    next(stream)
    stream.close()
    asked = len(server.requests)
    time.sleep(0.2)

    # Requests that were sent before the stream was closed may still arrive.
    assert len(server.requests) <= asked + 2 < 20
    assert threading.active_count() == before
    gc.collect()
    assert caplog.text == ""


def test_an_error_cancels_the_waits_of_other_workers(serve):
    server = serve(lambda n, body: (401, {}, b"no") if n == 3 else "hang")
    before = threading.active_count()
    start = time.monotonic()

    with pytest.raises(RunnerError, match="rejected the request"):
        answers(server, n=9, concurrency=4)

    assert time.monotonic() - start < 3
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({"base_url": url}, "base_url must be the http")
            for url in ("", "localhost:8000", "ftp://host/v1", "http:///v1")
        ),
        *(
            ({"base_url": f"{start}host/v1{end}"}, "base_url must not contain")
            for start in ("http://u:sk-1@", "u:sk-1@", "http://")
            for end in (("?key=sk-1", "#sk-1") if start == "http://" else ("",))
        ),
        ({"concurrency": 0}, "concurrency must be at least 1"),
        ({"max_refusals": 0}, "max_refusals must be at least 1"),
        ({"model": ""}, "model is empty"),
    ],
)
def test_invalid_options_raise_an_error_without_a_secret(options, message):
    with pytest.raises(ValueError, match=message) as raised:
        OpenAICompatibleRunner(**{"model": "m", "base_url": "http://localhost/v1", **options})

    assert "sk-1" not in str(raised.value)


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("2.5", 2.5),
        ((NOW + timedelta(seconds=90)).strftime("%a, %d %b %Y %H:%M:%S GMT"), 90),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("soon", None),
        ("inf", None),
        ("nan", None),
        (None, None),
    ],
)
def test_retry_after_reads_seconds_and_dates(header, seconds):
    headers = {} if header is None else {"retry-after": header}

    assert retry_after(headers, now=NOW) == seconds


def test_waits_grow_to_their_limit():
    for attempt in range(9):
        wait = backoff(attempt, first=1, longest=8, rng=random.Random(attempt))
        assert 0.5 * min(8, 2**attempt) <= wait <= min(8, 2**attempt)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": 5}, "base_url must be the http"),
        ({"base_url": True}, "base_url must be the http"),
        ({"base_url": ["x"]}, "base_url must be the http"),
        ({"base_url": "http://[::1"}, "base_url must be the http"),
        ({"api_key_env": 5}, "api_key_env must be the name of an environment variable, got 5"),
        ({"api_key_env": ["a"]}, "api_key_env must be the name"),
        ({"api_key_env": None}, "api_key_env must be the name"),
    ],
)
def test_error_names_options_of_another_type(options, message):
    with pytest.raises(ValueError, match=message):
        OpenAICompatibleRunner.contacts(**options)
    with pytest.raises(ValueError, match=message):
        OpenAICompatibleRunner("m", **{"base_url": "http://localhost:1/v1"} | options)
