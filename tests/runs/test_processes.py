"""Several processes return the same results and warnings as one."""

import multiprocessing
import os
import signal
import warnings

import pytest

from surface_consistency.errors import MissingDependencyError, RunError, UnscoredWarning
from surface_consistency.runs.processes import map_processes


def square(number):
    warnings.warn(f"{number} is squared", UnscoredWarning, stacklevel=1)
    return number**2


def double(number):
    return 2 * number


def doubled_in_a_pool(numbers):
    return map_processes(double, numbers, n_workers=2)


def kill(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def lack(number):
    raise MissingDependencyError("squaring", f"squares-{number}", "squares")


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_several_processes_give_the_results_and_warnings_of_one(n_workers):
    with pytest.warns(UnscoredWarning, match="is squared") as caught:
        assert map_processes(square, [3, 1, 2], n_workers=n_workers) == [9, 1, 4]

    assert [str(one.message) for one in caught] == [f"{n} is squared" for n in (3, 1, 2)]


def test_daemonic_worker_runs_the_tasks_itself():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(doubled_in_a_pool, ([2, 3],)) == [4, 6]


def test_killed_process_raises_an_error_with_the_remedy():
    with pytest.raises(RunError, match="was killed, perhaps because memory was full; pass fewer"):
        map_processes(kill, [0, 1], n_workers=2)


def test_error_of_a_process_is_raised_unchanged():
    with pytest.raises(MissingDependencyError, match=r"pip install 'surface-consistency\[squares"):
        map_processes(lack, [0, 1], n_workers=2)
