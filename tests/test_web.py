"""The client of web services by itself: order, limits and what ends all requests."""

import sys
import time

import pytest

from surface_consistency.errors import MissingDependencyError, RunnerError
from surface_consistency.web import Reply, Request, WebClient, in_order
from tests.replay import ReplayServer

pytest.importorskip("httpx")


@pytest.fixture
def replay():
    servers = []

    def start(answer):
        servers.append(ReplayServer(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def asked(server, n=1, **options):
    client = WebClient(url=server.url, name="a service", first_wait=0.001, **options)
    return client.ask([Request({"n": n}, "/x") for n in range(n)], lambda place, told: told["n"])


@pytest.mark.enable_socket
def test_replies_come_in_the_order_of_their_requests(replay):
    def answer(path, told):
        time.sleep(0.05 * (told["n"] == 0))
        return 200, {"n": told["n"]}

    replies = list(in_order(asked(replay(answer), n=8)))
    early = [Reply(place=place, value=str(place)) for place in (2, 0, 1)]

    assert [reply.place for reply in replies] == [reply.value for reply in replies] == [*range(8)]
    assert [reply.value for reply in in_order(iter(early))] == ["0", "1", "2"]


@pytest.mark.enable_socket
def test_a_refused_request_is_a_reply_without_a_value(replay):
    """So is one whose answer is too large; neither is asked again."""
    server = replay(lambda path, told: (400, {"error": {"code": "content_filter"}}))
    [refused] = asked(server)
    large = replay(lambda path, told: (200, {"n": "x" * 1000}))
    [too_large] = asked(large, max_reply_bytes=100)

    assert (refused.value, refused.refusal_body) == (None, {"error": {"code": "content_filter"}})
    assert "a service refused this request: HTTP 400" in refused.refusal
    assert "larger than max_reply_bytes = 100" in too_large.refusal
    assert len(server.requests) == len(large.requests) == 1


@pytest.mark.enable_socket
def test_requests_that_are_lost_end_all_when_they_are_many(replay):
    server = replay(lambda path, told: (503, b"busy"))
    options = {"concurrency": 1, "max_retries": 1}

    replies = asked(server, n=3, most_lost=3, **options)
    assert "gave up after 2 attempts: HTTP 503: busy" in next(replies).refusal
    next(replies)
    with pytest.raises(RunnerError, match=r"no answer in 2 attempts.* to 3 requests in a row"):
        next(replies)
    with pytest.raises(RunnerError, match=r"a service at .* gave no answer in 2 attempts"):
        next(asked(server, **options))


@pytest.mark.enable_socket
def test_a_key_is_sent_and_told_nobody(replay):
    key = "sk-very-secret"
    server = replay(lambda path, told: (401, f"who is {key}".encode()))

    with pytest.raises(RunnerError, match=r"refused the request .*who is <key>\); mend it"):
        next(asked(server, key=key, key_hint="mend it"))
    assert key not in repr(WebClient(url=server.url, name="a service", key=key))


def test_limits_out_of_range_and_a_missing_library_are_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"concurrency is at least 1.* got 0"):
        WebClient(url="http://localhost", name="a service", concurrency=0)
    with pytest.raises(ValueError, match="max_reply_bytes is at least 1, got 0"):
        WebClient(url="http://localhost", name="a service", max_reply_bytes=0)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingDependencyError, match=r"asking a service.*\[server\]"):
        WebClient(url="http://localhost", name="a service")
