"""The line that shows how far a run is."""

import io
import math
import re

import pytest

from surface_consistency.inference.generate import Progress, progress_reporter


class Terminal(io.StringIO):
    def isatty(self):
        return True


def state(**changes):
    values = {"n_done": 30, "n_total": 100, "n_asked": 20, "seconds": 4.0} | changes
    return Progress(**values)


def test_rate_counts_only_what_was_asked_since_this_start():
    assert state().rate == 5.0
    assert state().seconds_left == 14.0
    assert math.isnan(state(n_asked=0).rate)
    assert math.isnan(state(n_asked=0).seconds_left)


def shown(stream):
    """The states of the line, in their order."""
    return [line.strip() for line in stream.getvalue().split("\r") if line]


def test_a_terminal_gets_one_line_that_renews_itself():
    stream = Terminal()

    with progress_reporter(True, stream=stream) as report:
        report(state(n_asked=0, n_done=10))
        report(state())

    first, *_, last = shown(stream)
    assert re.match(r"10%.* 10/100 \[", first)
    assert re.match(r"30%.* 30/100 \[.*prompts/s\]", last)
    assert stream.getvalue().count("\n") == 1


def test_a_line_is_ended_when_the_run_is_interrupted():
    stream = Terminal()

    def run():
        with progress_reporter(True, stream=stream) as report:
            report(state())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        run()

    assert stream.getvalue().endswith("\n")


def test_the_rate_leaves_out_what_earlier_starts_answered(monkeypatch):
    """61,100 prompts of earlier starts say nothing about how fast this one is."""
    stream, clock = Terminal(), iter(range(0, 1000, 10))
    monkeypatch.setattr("tqdm.std.time", lambda: next(clock))

    with progress_reporter(True, stream=stream) as report:
        report(state(n_total=61_120, n_done=61_080, n_asked=0))
        report(state(n_total=61_120, n_done=61_100, n_asked=20))

    rates = re.findall(r"([\d.]+) prompts/s", stream.getvalue())
    assert rates
    assert max(map(float, rates)) <= 2.0


@pytest.mark.parametrize(("progress", "stream"), [(True, io.StringIO()), (False, Terminal())])
def test_files_and_quiet_runs_get_nothing(progress, stream):
    with progress_reporter(progress, stream=stream) as report:
        report(state())

    assert stream.getvalue() == ""


def test_a_function_gets_every_state():
    states = []

    with progress_reporter(states.append) as report:
        report(state())

    assert states == [state()]


def test_an_empty_run_has_a_line_too():
    stream = Terminal()

    with progress_reporter(True, stream=stream) as report:
        report(state(n_done=0, n_total=0, n_asked=0))

    assert shown(stream)[-1].startswith("0 prompts")
