"""A local server that behaves, and misbehaves, on schedule, and the runner that asks it."""

import asyncio
import base64
import gc
import json
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from surface_consistency.errors import RunnerError
from surface_consistency.models import OpenAICompatibleRunner
from surface_consistency.models.generate import run_prompts
from surface_consistency.runs.log import RunLog
from surface_consistency.runs.manifest import RunManifest
from surface_consistency.runs.web import backoff, retry_after
from surface_consistency.schemas import DataSource, GenerationParams, Message, Prompt

pytest.importorskip("httpx")
PARAMS = GenerationParams()
KEY = "sk-very-secret"


class FakeServer:
    """Speaks just enough HTTP; `script(number, body)` decides each response.

    A script returns (status, headers, body) with a body of bytes or JSON, or one of the words
    "hang", "close", "half", "drip".
    """

    def __init__(self, script, latency=0.0):
        self.script = script
        self.latency = latency
        self.reason = "X"
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
        if said == "drip":
            writer.write(b"HTTP/1.1 200 X\r\ncontent-length: 5000\r\n\r\n")
            for _ in range(200):
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.05)
            return False
        status, headers, body = (200, {}, reply("half")) if said == "half" else said
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = data[: len(data) // 2] if said == "half" else data
        lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        head = f"HTTP/1.1 {status} {self.reason}\r\ncontent-length: {len(data)}\r\n{lines}\r\n"
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


def test_batches_keep_the_server_busy():
    made = OpenAICompatibleRunner("m", base_url="http://localhost:1/v1", concurrency=2)

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
def test_what_holds_no_answer_is_of_a_kind_of_its_own(serve, reply):
    """A refusal or a filtered reply is no answer, and nobody's mistake."""
    refusal, cut, silent = (
        reply(None, chat=True),
        reply("It is", finish="content_filter"),
        reply(None),
    )
    refusal["choices"][0]["message"]["refusal"] = "I cannot say"
    azure = {"error": {"code": "content_filter", "message": "the prompt was filtered"}}
    said = [(200, {}, refusal), (200, {}, cut), (400, {}, azure), (200, {}, silent)]
    server = serve(lambda n, body: said[n])

    found = answers(server, n=4, concurrency=1)

    assert [answer.finish_reason for answer in found] == [
        "refusal",
        "content_filter",
        "content_filter",
        "error",
    ]
    assert [answer.text for answer in found] == [None] * 4
    assert found[0].error == "the model refused: I cannot say"
    assert found[1].error.endswith("withheld the answer: it had written 'It is'")
    assert "the prompt was filtered" in found[2].error
    assert "returned no text" in found[3].error


def thinking(fields, finish="stop"):
    """A chat reply whose message has these fields."""
    return {"choices": [{"message": fields, "finish_reason": finish}]}


@pytest.mark.enable_socket
@pytest.mark.parametrize(
    ("fields", "source"),
    [
        ({"content": "Paris", "reasoning_content": "Rome? No."}, "reasoning_content"),
        ({"content": "Paris", "reasoning": "Rome? No."}, "reasoning"),
        ({"content": "<think>Rome? No.</think>Paris"}, "<think>"),
        ({"content": "Rome? No.</think>\n\nParis"}, "</think>"),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Rome? No."}]},
                    {"type": "text", "text": "Paris"},
                ]
            },
            "content",
        ),
    ],
)
def test_reasoning_are_told_apart_in_whatever_field_they_stand(serve, fields, source):
    server = serve(lambda n, body: (200, {}, thinking(fields)))

    [answer] = answers(server, text_as_chat=True)

    assert (answer.reasoning, answer.text) == ("Rome? No.", "Paris")
    assert answer.reasoning_source == source


@pytest.mark.enable_socket
@pytest.mark.parametrize(
    "fields",
    [
        {"content": None, "reasoning_content": "Rome?"},
        {"content": "", "reasoning": "Rome?"},
        {"content": "<think>Rome?"},
    ],
)
def test_reasoning_that_a_server_cut_is_no_answer(serve, fields):
    server = serve(lambda n, body: (200, {}, thinking(fields, "length")))

    [answer] = answers(server, text_as_chat=True)

    assert (answer.text, answer.reasoning, answer.finish_reason) == (
        None,
        "Rome?",
        "unclosed_reasoning",
    )
    assert answer.error == "the reasoning was never closed: the limit of tokens ended it"


@pytest.mark.enable_socket
def test_a_stop_string_does_not_end_the_reasoning_of_a_server(serve, reply):
    """With a limit of its own for the reasoning nothing is sent that would end it."""
    server = serve(lambda n, body: (200, {}, reply("<think>\nRome?\n</think>\n\nParis\nQ: x")))

    [answer] = answers(server, params=GenerationParams(max_reasoning_tokens=100))

    assert (answer.text, answer.reasoning) == ("Paris", "Rome?")
    assert "stop" not in server.requests[0]["body"]
    assert server.requests[0]["body"]["max_tokens"] == 115


def logged(made, asked, folder):
    """Ask prompts through a run log; returns the log's lines."""
    manifest = RunManifest(
        study="s",
        model="m",
        data=DataSource(id="d", revision=None, digest="0", n_questions=1),
        runner=made.fingerprint(),
        package_version="0",
        created_at="now",
    )
    with RunLog.open(folder / "generations.jsonl", manifest) as log:
        run_prompts(made, asked, PARAMS, log, progress=False)


@pytest.mark.enable_socket
def test_a_server_that_refuses_every_prompt_ends_the_run(serve, tmp_path):
    """The server's own words and a way on, after a few requests and not after all."""
    said = {"error": {"message": "max_tokens 15 of request 17 is too large"}}
    server = serve(lambda n, body: (400, {}, said), latency=0.01)
    made = runner(server, concurrency=2, max_refusals=6)

    words = r"for 6 in a row: .*max_tokens 15.*larger max_refusals"
    with pytest.raises(RunnerError, match=words) as raised:
        logged(made, prompts(300), tmp_path)

    # The error and its frames are still held, and yet nothing more is asked.
    time.sleep(0.2)
    assert raised.traceback
    assert len(server.requests) <= 10


@pytest.mark.enable_socket
def test_a_server_that_refuses_some_prompts_is_asked_all(serve, reply, tmp_path):
    """Also when the run is taken up again and only the refused ones are left."""
    server = serve(
        lambda n, body: (
            (200, {}, reply("ok"))
            if body["prompt"] == "question 3"
            else (400, {}, {"error": f"prompt of {n} tokens is too long"})
        )
    )
    made = runner(server, concurrency=1, max_refusals=6)

    for _ in range(2):
        logged(made, prompts(30), tmp_path)

    assert len(server.requests) == 30 + 29


@pytest.mark.enable_socket
def test_a_reply_that_is_too_large_is_refused(serve, reply):
    server = serve(lambda n, body: (200, {}, reply("x" * 10_000_000)))

    [answer] = answers(server)

    assert answer.text is None
    assert "larger than max_reply_bytes = 4,000,000; " in answer.error
    assert "raise max_reply_bytes" in answer.error
    assert len(server.requests) == 1


@pytest.mark.enable_socket
def test_a_reply_that_expands_is_refused(serve):
    """What counts is the size after decompression."""
    import gzip

    data = gzip.compress(b" " * 20_000_000)
    server = serve(lambda n, body: (200, {"content-encoding": "gzip"}, data))

    [answer] = answers(server)

    assert "larger than max_reply_bytes" in answer.error
    assert server.requests[0]["headers"]["accept-encoding"] == "identity"


@pytest.mark.enable_socket
@pytest.mark.parametrize("depth", [200, 100_000])
def test_deeply_nested_json_is_named(serve, depth):
    nested = b'{"choices": ' + b"[" * depth + b"]" * depth + b"}"
    server = serve(lambda n, body: (200, {}, nested))

    [answer] = answers(server, max_retries=0)

    assert "nested more than 64 levels deep" in answer.error


@pytest.mark.enable_socket
def test_a_drip_is_given_up(serve, reply):
    """The limit is that of the whole request, however often a byte comes."""
    server = serve(lambda n, body: "drip" if n == 0 else (200, {}, reply("ok")))
    start = time.monotonic()

    [answer] = answers(server, timeout=0.4)

    assert answer.text == "ok"
    assert time.monotonic() - start < 3


ENCODED = {
    "plain": KEY,
    "upper": KEY.upper(),
    "percent": "".join(f"%{ord(c):02X}" for c in KEY),
    "mixed": "sk%2Dvery\\u002dsecret",
    "html": "sk&#45;very&#x2D;secret",
    "hex": KEY.encode().hex().upper(),
    "base64": base64.b64encode(KEY.encode()).decode(),
    "header": base64.b64encode(f"Bearer {KEY}".encode()).decode(),
    "offset 1": base64.urlsafe_b64encode(f"a{KEY}b".encode()).decode(),
    "offset 2": base64.b64encode(f"ab{KEY}bcd".encode()).decode(),
    "wrapped": f"{KEY[:5]}\n  {KEY[5:]}",
    "joined": f'"{KEY[:5]}" + "{KEY[5:]}"',
}


@pytest.mark.enable_socket
@pytest.mark.parametrize("quoted", ENCODED.values(), ids=ENCODED)
@pytest.mark.parametrize(
    "where", ["text", "finish_reason", "model", "reasoning", "field", "refusal", "body", "reason"]
)
def test_the_key_is_taken_out_of_whatever_a_server_sends(
    serve, reply, monkeypatch, tmp_path, caplog, where, quoted
):
    """In any field, in any form: neither log nor manifest nor any message holds the key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    said = reply("ok", chat=True)
    message = said["choices"][0]["message"]
    status = 200
    if where == "text":
        message["content"] = f"the key is {quoted}."
    elif where == "finish_reason":
        said["choices"][0] |= {"finish_reason": quoted, "message": {"content": None}}
    elif where in ("reasoning", "refusal"):
        message |= {where: quoted, "content": None}
    elif where == "model":
        said["model"] = quoted
    elif where == "field":
        said = {quoted: 5}
    else:
        status, said = 400, quoted.encode() if where == "body" else b""
    server = serve(lambda n, body: (status, {}, said))
    server.reason = quoted.replace("\n", " ") if where == "reason" else "X"
    made = runner(server, text_as_chat=True, max_retries=0, served_model="m-1")

    message = ""
    try:
        found = list(made.generate(prompts(2), PARAMS))
    except RunnerError as error:
        found, message = [], str(error)

    everything = " ".join([message, caplog.text, *(answer.model_dump_json() for answer in found)])
    assert found or where == "model"
    for part in (KEY, quoted, json.dumps(quoted)[1:-1]):
        assert part.lower() not in everything.lower()
    assert "<key>" in everything


@pytest.mark.enable_socket
def test_a_key_in_a_broken_status_line_is_taken_out(serve, monkeypatch):
    """What a library says of a reply that is no HTTP quotes it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = serve(lambda n, body: (f"2 {KEY}", {}, b""))

    [answer] = answers(server, max_retries=0)

    assert "ProtocolError" in answer.error
    assert KEY not in answer.error


@pytest.mark.enable_socket
def test_a_key_in_the_pieces_of_an_answer_is_taken_out(serve, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    pieces = [{"type": "text", "text": part} for part in (KEY[:4], KEY[4:9], KEY[9:], " Paris")]
    server = serve(lambda n, body: (200, {}, thinking({"content": pieces})))

    [answer] = answers(server, text_as_chat=True)

    assert answer.text == "<key> Paris"


@pytest.mark.enable_socket
def test_a_placeholder_for_a_key_is_left_in_answers(serve, reply, monkeypatch):
    """Servers that need no key are given words such as EMPTY."""
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    said = [(200, {}, reply("The set is EMPTY.")), (400, {}, b"bad key EMPTY")]
    server = serve(lambda n, body: said[n])

    fine, refused = answers(server, n=2, concurrency=1)

    assert fine.text == "The set is EMPTY."
    assert refused.error.endswith("bad key <key>")


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

    with pytest.raises(RunnerError, match=r"elsewhere .*give the new address"):
        answers(server)


@pytest.mark.enable_socket
def test_an_unknown_model_rejects_the_run(serve):
    server = serve(lambda n, body: (404, {}, b"model not found"))

    with pytest.raises(RunnerError, match=r"not served at .*that it serves this model"):
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
