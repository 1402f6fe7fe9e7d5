"""The client of web services by itself; the tests of the runner of servers have the rest."""

import sys
import time

import pytest

from surface_consistency.errors import MissingDependencyError, RunnerError
from surface_consistency.web import Reply, Request, WebClient, in_order
from tests.replay import ReplayServer

pytest.importorskip("httpx")


@pytest.mark.enable_socket
def test_replies_come_in_the_order_of_their_requests():
    def answer(path, told):
        time.sleep(0.05 * (told["n"] == 0))
        return 200, {"n": told["n"]}

    server = ReplayServer(answer)
    client = WebClient(url=server.url, name="a service", first_wait=0.001)
    requests = [Request({"n": n}, "/x") for n in range(8)]
    replies = list(in_order(client.ask(requests, lambda place, told: told["n"])))
    server.stop()
    early = [Reply(place=place, value=str(place)) for place in (2, 0, 1)]

    assert [reply.place for reply in replies] == [reply.value for reply in replies] == [*range(8)]
    assert [reply.value for reply in in_order(iter(early))] == ["0", "1", "2"]


@pytest.mark.enable_socket
def test_one_request_that_is_lost_ends_all_where_no_more_may_be():
    server = ReplayServer(lambda path, told: (503, b"busy"))
    client = WebClient(url=server.url, name="a service", first_wait=0.001, max_retries=1)

    with pytest.raises(
        RunnerError, match=r"a service at .* no answer in 2 attempts, .*: busy; see"
    ):
        next(client.ask([Request({}, "/x")] * 2, lambda place, told: told))
    server.stop()


def test_a_key_is_not_shown_and_what_cannot_be_asked_is_refused(monkeypatch):
    assert "sk-1" not in repr(WebClient(url="http://localhost", name="a service", key="sk-1"))
    with pytest.raises(ValueError, match="max_reply_bytes is at least 1, got 0"):
        WebClient(url="http://localhost", name="a service", max_reply_bytes=0)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingDependencyError, match=r"asking a service.*\[server\]"):
        WebClient(url="http://localhost", name="a service")
