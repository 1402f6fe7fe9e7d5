"""The client of web services; further tests are those of the server runner."""

import contextlib
import gzip
import socket
import sys
import threading
import time
import tracemalloc

import pytest

from surface_consistency.errors import MissingDependencyError, RunnerError
from surface_consistency.web import Reply, Request, WebClient, in_order
from tests.replay import ReplayServer

pytest.importorskip("httpx")


@pytest.mark.enable_socket
def test_replies_have_the_order_of_their_requests():
    def answer(path, body):
        time.sleep(0.05 * (body["n"] == 0))
        return 200, {"n": body["n"]}

    server = ReplayServer(answer)
    client = WebClient(url=server.url, name="a service", first_wait=0.001)
    requests = [Request({"n": n}, "/x") for n in range(8)]
    replies = list(in_order(client.ask(requests, lambda place, body: body["n"])))
    server.stop()
    early = [Reply(place=place, value=str(place)) for place in (2, 0, 1)]

    assert [reply.place for reply in replies] == [reply.value for reply in replies] == [*range(8)]
    assert [reply.value for reply in in_order(iter(early))] == ["0", "1", "2"]


@pytest.mark.enable_socket
@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize(
    "label", ["gzip", "deflate", "br", "zstd", "x-gzip", "identity, GZIP", "x"]
)
def test_compressed_reply_raises_without_decompression(label, status):
    bomb = gzip.compress(bytes(50_000_000), compresslevel=1)
    server = ReplayServer(lambda path, body: (status, bomb, ("Content-Encoding", label)))
    client = WebClient(url=server.url, name="a service", max_retries=0, most_lost=2)
    tracemalloc.start()
    [reply] = client.ask([Request({}, "/x")], lambda place, body: body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    server.stop()

    assert reply.value is None
    assert f"HTTP {status}: the reply has the Content-Encoding {label!r}, which" in reply.refusal
    assert (len(server.requests), peak < 8_000_000) == (1, True)


@pytest.mark.enable_socket
def test_other_requests_are_answered_while_a_long_reply_is_read():
    """The first reply ends only after the second one has been read."""

    def answer(path, body):
        time.sleep(0.3 * body["n"])
        text = "x" * (100_000 * (1 - body["n"]))
        return 200, {"text": text}, ("Content-Encoding", " Identity ")

    server = ReplayServer(answer)
    client = WebClient(url=server.url, name="a service", concurrency=2)
    is_read = threading.Event()

    def read(place, body):
        if place:
            is_read.set()
        return is_read.wait(10)

    replies = list(client.ask([Request({"n": n}, "/x") for n in range(2)], read))
    server.stop()

    assert [(reply.place, reply.value) for reply in replies] == [(1, True), (0, True)]


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
FLOODS = {
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-a: " + b"a" * 60_000 + b"\r\n", "Receive buffer too"),
    "trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n", b"X: " + b"a" * 60_000 + b"\r\n", "Receive buffer"),
    "a chunk without end": (CHUNKED + b"fffffffff\r\n", b"a" * 60_000, "larger than max_reply"),
    "many chunks": (CHUNKED, b"1\r\n \r\n" * 9_000, "larger than max_reply"),
    "informational": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000, "no complete reply within"),
    "slow headers": (b"HTTP/1.1 200 OK\r\nX: ", b"a", "no complete reply within"),
    "slow body": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n",
        b" ",
        "no complete reply within",
    ),
}


@pytest.mark.enable_socket
@pytest.mark.parametrize(("start", "more", "problem"), FLOODS.values(), ids=FLOODS)
def test_endless_reply_raises(start, more, problem):
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(10)

    def flood():
        peer, _ = listener.accept()
        peer.recv(65_536)
        with peer, contextlib.suppress(OSError):
            peer.sendall(start)
            while True:
                peer.sendall(more)
                time.sleep(0.05 * (len(more) == 1))

    thread = threading.Thread(target=flood)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    options = {"timeout": 1.0 if "within" in problem else 30.0, "max_reply_bytes": 40_000}
    client = WebClient(url=url, name="a service", max_retries=0, most_lost=2, **options)

    [reply] = client.ask([Request({}, "/x")], lambda place, body: body)
    thread.join(10)
    listener.close()

    assert (problem in reply.refusal, thread.is_alive()) == (True, False)


@pytest.mark.enable_socket
def test_one_lost_request_ends_all_if_no_loss_is_allowed():
    server = ReplayServer(lambda path, body: (503, b"busy"))
    client = WebClient(url=server.url, name="a service", first_wait=0.001, max_retries=1)

    with pytest.raises(
        RunnerError, match=r"a service at .* did not answer in 2 attempts; .*: busy; check"
    ):
        next(client.ask([Request({}, "/x")] * 2, lambda place, body: body))
    server.stop()


@pytest.mark.enable_socket
def test_contacted_address_is_logged_once_without_password(caplog):
    caplog.set_level("INFO", "surface_consistency")
    server = ReplayServer(lambda path, body: (404, b""))
    url = server.url.replace("//", "//me:pass-word@") + "/a?key=pass-word"
    client = WebClient(url=url, name="a service")

    for _ in range(2):
        with pytest.raises(RunnerError, match=r"not served at http://127[\d.:]+/a, or") as raised:
            list(client.ask([Request({})], lambda place, body: body))
    server.stop()

    assert caplog.messages == [f"contacts: a service at {server.url}/a"]
    assert "pass-word" not in f"{raised.value} {caplog.text}"


def test_key_is_not_shown_and_invalid_options_raise(monkeypatch):
    assert "sk-1" not in repr(WebClient(url="http://localhost", name="a service", key="sk-1"))
    with pytest.raises(ValueError, match="max_reply_bytes must be at least 1, got 0"):
        WebClient(url="http://localhost", name="a service", max_reply_bytes=0)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingDependencyError, match=r"querying a service.*\[server\]"):
        WebClient(url="http://localhost", name="a service")
