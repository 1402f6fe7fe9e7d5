"""A local server that behaves, and misbehaves, on schedule, and the runner that asks it."""

import asyncio
import gc
import json
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from surface_consistency.errors import RunnerError
from surface_consistency.inference import BatchPlanner, OpenAICompatibleRunner, Runner
from surface_consistency.inference._http_session import backoff, retry_after
from surface_consistency.inference.generate import run_prompts
from surface_consistency.runs.log import RunLog
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.schemas import DataSource, GenerationParams, Message, Prompt

pytest.importorskip("httpx")
PARAMS = GenerationParams()
KEY = "sk-very-secret"


class FakeServer:
    """Speaks just enough HTTP; `script(number, body)` decides each response.

    A script returns (status, headers, body) with a body of bytes or JSON, or one of the words
    "hang", "close", "half".
    """

    def __init__(self, script, latency=0.0):
        self.script = script
        self.latency = latency
        self.requests = []
        self.in_flight = 0
        self.most_in_flight = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def _run(self):
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self):
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connection(self, reader, writer):
        try:
            while await self._request(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _request(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *fields = head.split("\r\n")
        headers = {k.lower(): v for k, v in (f.split(": ", 1) for f in fields if f)}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        number = len(self.requests)
        self.requests.append({"path": line.split()[1], "headers": headers, "body": body})
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency)
            return await self._answer(self.script(number, body), writer)
        finally:
            self.in_flight -= 1

    async def _answer(self, said, writer):
        if said == "hang":
            await asyncio.sleep(30)
            return False
        if said == "close":
            return False
        status, headers, body = (200, {}, reply("half")) if said == "half" else said
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = data[: len(data) // 2] if said == "half" else data
        lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(data)}\r\n{lines}\r\n"
        writer.write(head.encode() + sent)
        await writer.drain()
        return said != "half"


def reply(text, *, model="m-1", finish="stop", chat=False):
    """A response body of the protocol."""
    choice = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    return {
        "model": model,
        "choices": [{**choice, "finish_reason": finish}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }


@pytest.fixture(name="reply")
def reply_fixture():
    """Builds response bodies."""
    return reply


@pytest.fixture
def serve():
    """Starts servers; all stop at the end of the test."""
    started = []

    def start(script, **options):
        server = FakeServer(script, **options)
        started.append(server.__enter__())
        return server

    yield start
    for server in started:
        server.__exit__()


def prompts(n):
    return [Prompt(id=f"p{i}", text=f"question {i}") for i in range(n)]


def runner(server, **options):
    """A runner that waits little."""
    return OpenAICompatibleRunner(
        "m", base_url=server.url, **{"first_wait": 0.01, "timeout": 5.0, **options}
    )


def answers(server, n=1, params=PARAMS, **options):
    found = list(runner(server, **options).generate(prompts(n), params))
    assert {g.prompt_id for g in found} == {f"p{i}" for i in range(n)}
    return sorted(found, key=lambda g: int(g.prompt_id[1:]))


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def test_it_is_a_runner_and_a_planner():
    made = OpenAICompatibleRunner("m", base_url="http://localhost:1/v1", concurrency=2)

    assert isinstance(made, Runner)
    assert isinstance(made, BatchPlanner)
    assert [len(b) for b in made.plan(prompts(40), PARAMS)] == [32, 8]


@pytest.mark.enable_socket
def test_a_text_is_completed(serve, reply):
    server = serve(lambda n, body: (200, {}, reply(body["prompt"].upper(), finish="length")))

    [answer] = answers(server)

    assert answer.text == "QUESTION 0"
    assert (answer.finish_reason, answer.n_prompt_tokens, answer.n_new_tokens) == ("length", 3, 2)
    assert server.requests[0]["path"] == "/v1/completions"
    assert server.requests[0]["body"] == {
        "model": "m",
        "max_tokens": 15,
        "temperature": 0.0,
        "stop": ["\n"],
        "prompt": "question 0",
    }


@pytest.mark.enable_socket
def test_messages_go_to_chat(serve, reply):
    server = serve(lambda n, body: (200, {}, reply("yes", chat=True)))
    turns = (Message(role="system", content="short"), Message(role="user", content="hi"))
    params = GenerationParams(stop=(), temperature=0.5, top_p=0.9, seed=7)

    [answer] = runner(server, extra_body={"top_k": 1}).generate(
        [Prompt(id="a", messages=turns)], params
    )

    assert answer.text == "yes"
    body = server.requests[0]["body"]
    assert server.requests[0]["path"] == "/v1/chat/completions"
    assert body["messages"][1] == {"role": "user", "content": "hi"}
    assert (body["temperature"], body["top_p"], body["seed"], body["top_k"]) == (0.5, 0.9, 7, 1)
    assert "stop" not in body


@pytest.mark.enable_socket
def test_a_text_can_be_sent_as_chat(serve, reply):
    server = serve(lambda n, body: (200, {}, reply("yes", chat=True)))

    [answer] = answers(server, text_as_chat=True, max_tokens_field="max_completion_tokens")

    assert answer.text == "yes"
    assert server.requests[0]["body"]["messages"] == [{"role": "user", "content": "question 0"}]
    assert server.requests[0]["body"]["max_completion_tokens"] == 15


@pytest.mark.enable_socket
@pytest.mark.parametrize(
    "trouble",
    [
        (429, {}, b"slow down"),
        (500, {}, b""),
        (503, {"retry-after": "0.05"}, b"loading"),
        (521, {}, b"down"),
        (529, {}, b"overloaded"),
        (429, {"retry-after": "Mon, 01 Jan 99999999999 00:00:00 GMT"}, b""),
        (200, {}, b'{"choices": [{"te'),
        (200, {}, b"<html>gateway</html>"),
        (200, {}, b"[1, 2]"),
        (200, {}, b"[" * 100_000),
        (200, {}, b'{"choices": []}'),
        (200, {}, b'{"choices": [{"text": 5}]}'),
        (200, {}, b'{"choices": [{"message": "hi"}]}'),
        "close",
        "half",
    ],
    ids=lambda trouble: str(trouble)[:40],
)
def test_passing_trouble_is_asked_again(serve, reply, trouble):
    """Whatever may pass costs a second request and nothing else."""
    server = serve(lambda n, body: trouble if n == 0 else (200, {}, reply("ok")))

    [answer] = answers(server)

    assert answer.text == "ok"
    assert len(server.requests) == 2


@pytest.mark.enable_socket
def test_a_hanging_request_is_given_up_and_repeated(serve, reply):
    server = serve(lambda n, body: "hang" if n == 0 else (200, {}, reply("ok")))

    [answer] = answers(server, timeout=0.2)

    assert answer.text == "ok"


@pytest.mark.enable_socket
def test_retry_after_holds_all_requests_back(serve, reply):
    """While the server asks for silence nothing is sent."""
    times = []

    def script(n, body):
        times.append(time.monotonic())
        return (429, {"Retry-After": "0.6"}, b"") if n == 0 else (200, {}, reply("ok"))

    server = serve(script)

    found = answers(server, n=6, concurrency=1)

    assert {g.text for g in found} == {"ok"}
    assert times[1] - times[0] >= 0.55


@pytest.mark.enable_socket
def test_a_retry_after_of_nothing_does_not_end_the_growing_waits(serve):
    times = []

    def script(n, body):
        times.append(time.monotonic())
        return 429, {"Retry-After": "0"}, b""

    [answer] = answers(serve(script), first_wait=0.08, max_retries=2)

    assert answer.text is None
    assert times[1] - times[0] >= 0.04
    assert times[2] - times[1] >= 0.08


@pytest.mark.enable_socket
def test_too_long_a_wait_rejects_the_run(serve):
    server = serve(lambda n, body: (429, {"Retry-After": "86400"}, b"quota"))

    with pytest.raises(RunnerError, match=r"asks to wait 86400 s, more than longest_wait = 120"):
        answers(server)


@pytest.mark.enable_socket
@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refused_prompt_is_an_error_of_its_own(serve, reply, status):
    def script(n, body):
        bad = body["prompt"] == "question 1"
        return (status, {}, b"context too long") if bad else (200, {}, reply("ok"))

    server = serve(script)

    good, bad, last = answers(server, n=3)

    assert (good.text, last.text, bad.text) == ("ok", "ok", None)
    assert f"HTTP {status}: context too long" in bad.error
    assert len(server.requests) == 3


@pytest.mark.enable_socket
def test_a_refusal_of_the_model_is_an_answer_and_nothing_is_an_error(serve, reply):
    refusal = reply(None, chat=True)
    refusal["choices"][0]["message"]["refusal"] = "I cannot say"
    server = serve(lambda n, body: (200, {}, refusal if n == 0 else reply(None)))

    said, silent = answers(server, n=2, concurrency=1)

    assert said.text == "I cannot say"
    assert silent.text is None
    assert "returned no text" in silent.error


@pytest.mark.enable_socket
@pytest.mark.parametrize("status", [401, 402, 403])
def test_a_wrong_key_rejects_the_run_without_telling_it(serve, monkeypatch, status):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = serve(lambda n, body: (status, {}, f"no such key: {KEY}".encode()))

    with pytest.raises(RunnerError, match=r"<key>.*variable OPENAI_API_KEY") as raised:
        answers(server)

    assert server.requests[0]["headers"]["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(raised.value)


def test_a_key_that_no_header_can_hold_is_rejected_without_telling_it(monkeypatch):
    monkeypatch.setenv("MY_KEY", f"{KEY} \x01 more")
    made = OpenAICompatibleRunner("m", base_url="http://localhost:1/v1", api_key_env="MY_KEY")

    with pytest.raises(RunnerError, match="MY_KEY holds spaces") as raised:
        list(made.generate(prompts(1), PARAMS))

    assert KEY not in str(raised.value)
    assert KEY not in json.dumps(made.fingerprint())


@pytest.mark.enable_socket
def test_a_key_that_a_server_quotes_is_not_logged(serve, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = serve(lambda n, body: (400, {}, f"{KEY} may not ask this".encode()))

    [answer] = answers(server)

    assert answer.error.endswith("HTTP 400: <key> may not ask this")


@pytest.mark.enable_socket
def test_a_redirection_rejects_the_run(serve):
    server = serve(lambda n, body: (308, {"location": "https://elsewhere/v1"}, b""))

    with pytest.raises(RunnerError, match="give the new address as base_url"):
        answers(server)


@pytest.mark.enable_socket
def test_an_unknown_model_rejects_the_run(serve):
    server = serve(lambda n, body: (404, {}, b"model not found"))

    with pytest.raises(RunnerError, match="not this model"):
        answers(server)


@pytest.mark.enable_socket
def test_another_model_in_mid_run_is_rejected(serve, reply):
    server = serve(lambda n, body: (200, {}, reply("ok", model=f"m-{n // 3}")))

    with pytest.raises(RunnerError, match="answers as 'm-1' now and as 'm-0' before"):
        answers(server, n=6, concurrency=1)


@pytest.mark.enable_socket
def test_a_pinned_model_is_held_to(serve, reply):
    server = serve(lambda n, body: (200, {}, reply("ok", model="m-0613")))

    with pytest.raises(RunnerError, match="answers as 'm-0613' now and as 'm-0301' before"):
        answers(server, served_model="m-0301")


@pytest.mark.enable_socket
def test_a_lost_prompt_is_an_error_and_a_dead_server_rejects_the_run(serve, reply):
    server = serve(
        lambda n, body: "close" if body["prompt"] == "question 1" else (200, {}, reply("ok"))
    )

    found = answers(server, n=3, concurrency=1, max_retries=1)

    assert [g.text for g in found] == ["ok", None, "ok"]
    assert "gave up after 2 attempts" in found[1].error

    dead = serve(lambda n, body: "close")
    with pytest.raises(RunnerError, match="3 requests in a row"):
        answers(dead, n=9, concurrency=1, max_retries=0)


@pytest.mark.enable_socket
def test_requests_in_flight_are_bounded(serve, reply):
    server = serve(lambda n, body: (200, {}, reply("ok")), latency=0.02)

    answers(server, n=60, concurrency=8)

    assert server.most_in_flight == 8


@pytest.mark.enable_socket
def test_a_stopped_run_goes_on_without_asking_twice(serve, reply, tmp_path):
    """Answers that came before the server broke are in the log; only the rest is asked again."""
    broken = {"after": 30}

    def script(n, body):
        if n >= broken["after"]:
            return 401, {}, b"key expired"
        return 200, {}, reply(body["prompt"])

    server = serve(script)
    made = runner(server, concurrency=4)
    manifest = RunManifest(
        study="s",
        model="m",
        data=DataSource(id="d", revision=None, digest="0", n_questions=1),
        decoding={"answers": PARAMS.model_dump(mode="json")},
        runner=made.fingerprint(),
        package_version="0",
        created_at="now",
    )
    log = tmp_path / "generations.jsonl"
    with (
        RunLog.open(log, manifest, manifest_path=tmp_path / "manifest.json") as open_log,
        pytest.raises(RunnerError, match="key"),
    ):
        run_prompts(made, prompts(100), PARAMS, open_log, progress=False)
    broken["after"] = 10**9

    with RunLog.open(log, manifest, manifest_path=tmp_path / "manifest.json") as open_log:
        summary = run_prompts(made, prompts(100), PARAMS, open_log, progress=False)

    assert summary.n_reused >= 30 - 4
    assert summary.n_reused + summary.n_asked == 100
    answered = [json.loads(line)["prompt_id"] for line in log.read_text().splitlines()]
    assert sorted(answered) == sorted(p.id for p in prompts(100))


@pytest.mark.enable_socket
def test_closing_early_stops_the_requests(serve, reply, caplog):
    server = serve(lambda n, body: (200, {}, reply("ok")), latency=0.05)
    before = threading.active_count()
    stream = runner(server, concurrency=2).generate(prompts(500), PARAMS)

    next(stream)
    stream.close()
    asked = len(server.requests)
    time.sleep(0.2)

    # What was on its way when the stream was closed may still arrive.
    assert len(server.requests) <= asked + 2 < 20
    assert threading.active_count() == before
    gc.collect()
    assert caplog.text == ""


@pytest.mark.enable_socket
def test_an_error_gives_up_what_other_workers_wait_for(serve):
    server = serve(lambda n, body: (401, {}, b"no") if n == 3 else "hang")
    before = threading.active_count()
    start = time.monotonic()

    with pytest.raises(RunnerError, match="refused the request"):
        answers(server, n=9, concurrency=4)

    assert time.monotonic() - start < 3
    assert threading.active_count() == before


@pytest.mark.parametrize("base_url", ["", "localhost:8000", "ftp://host/v1", "http:///v1"])
def test_an_address_that_is_none_is_rejected(base_url):
    with pytest.raises(ValueError, match="base_url"):
        OpenAICompatibleRunner("m", base_url=base_url)


@pytest.mark.parametrize(
    "base_url",
    ["http://u:sk-1@host/v1", "u:sk-1@host/v1", "http://host/v1?key=sk-1", "http://host/v1#sk-1"],
)
def test_an_address_with_a_secret_is_rejected_without_telling_it(base_url):
    with pytest.raises(ValueError, match="base_url must not hold") as raised:
        OpenAICompatibleRunner("m", base_url=base_url)

    assert "sk-1" not in str(raised.value)


def test_options_out_of_range_are_rejected():
    with pytest.raises(ValueError, match="concurrency is at least 1"):
        OpenAICompatibleRunner("m", base_url="http://localhost/v1", concurrency=0)
    with pytest.raises(ValueError, match="model is empty"):
        OpenAICompatibleRunner("", base_url="http://localhost/v1")


def test_retry_after_reads_seconds_and_dates():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    later = (now + timedelta(seconds=90)).strftime("%a, %d %b %Y %H:%M:%S GMT")

    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({"retry-after": later}, now=now) == 90
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, now=now) == 0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({"retry-after": "inf"}) is None
    assert retry_after({"retry-after": "nan"}) is None
    assert retry_after({}) is None


def test_waits_grow_to_their_limit():
    import random

    waits = [
        backoff(attempt, first=1, longest=8, rng=random.Random(attempt)) for attempt in range(9)
    ]

    assert all(0.5 * min(8, 2**k) <= wait <= min(8, 2**k) for k, wait in enumerate(waits))
