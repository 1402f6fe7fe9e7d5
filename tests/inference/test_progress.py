"""The line that shows how far a run is."""

import io
import math

import pytest

from surface_consistency.inference.progress import Progress, progress_reporter


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


def test_a_terminal_gets_one_line_that_renews_itself():
    stream = Terminal()

    with progress_reporter(True, stream=stream) as report:
        report(state(n_asked=0, n_done=10))
        report(state())

    assert stream.getvalue() == (
        "\r\x1b[K10/100 prompts   10%\r\x1b[K30/100 prompts   30%  5.0 prompts/s  0:14 left\n"
    )


def test_a_line_is_ended_when_the_run_is_interrupted():
    stream = Terminal()

    with pytest.raises(KeyboardInterrupt, match=r"^$"), progress_reporter(True, stream=stream):
        raise KeyboardInterrupt

    assert stream.getvalue() == "\n"


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


def test_an_empty_run_is_complete():
    stream = Terminal()

    with progress_reporter(True, stream=stream) as report:
        report(state(n_done=0, n_total=0, n_asked=0))

    assert "0/0 prompts  100%" in stream.getvalue()


def test_long_durations_show_hours():
    stream = Terminal()

    with progress_reporter(True, stream=stream) as report:
        report(state(n_total=61_120, n_done=20, n_asked=20, seconds=10.0))

    assert "20/61,120 prompts    0%  2.0 prompts/s  8:29:10 left" in stream.getvalue()
