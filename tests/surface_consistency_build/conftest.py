"""Fixtures of the dataset builders."""

import pytest

from tests.replay import ReplayServer


@pytest.fixture
def replay():
    """Starts servers: `replay(answer)`; all stop at the end of the test."""
    started = []

    def start(answer):
        started.append(ReplayServer(answer))
        return started[-1]

    yield start
    for server in started:
        server.stop()
