"""Parallel tasks on all cores: files to score, tables and contrasts of several models."""

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import current_process, get_context
from typing import Any, Final, TypeVar

from surface_consistency.errors import RunError

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

_INHERITED: Final[list[Callable[[Any], Any]]] = []
"""The function of a forked process, which is inherited instead of pickled."""


def map_processes(
    function: Callable[[_Task], _Result], tasks: Sequence[_Task], *, n_workers: int | None = None
) -> list[_Result]:
    """Run tasks in separate processes, so that all cores are used.

    Args:
        function: A function of one task; processes inherit it with its closure. Tasks and results
            are pickled.
        tasks: The tasks.
        n_workers: Maximum number of processes; None for one per core, 1 for only this process. Only
            this process is also used if processes cannot be forked: on systems on which a new
            process would import the caller's script again, and in a worker of a pool.

    Returns:
        The results, in order; they and the warnings do not depend on the number of processes.

    Raises:
        RunError: If a process was killed.
    """
    n_cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    n_workers = min(len(tasks), n_cores, n_workers or n_cores)
    if n_workers < 2 or current_process().daemon:
        return [function(task) for task in tasks]
    results = []
    with warnings.catch_warnings():
        # Python warns about threads at a fork; the workers do not use them.
        warnings.simplefilter("ignore", DeprecationWarning)
        with ProcessPoolExecutor(
            n_workers,
            mp_context=get_context("fork"),
            initializer=_INHERITED.append,
            initargs=(function,),
        ) as workers:
            try:
                done = list(workers.map(_recorded, tasks))
            except BrokenProcessPool as error:
                raise RunError(
                    f"one of {n_workers} processes was killed, perhaps because memory was full; "
                    "pass fewer files or runs at once, or free memory"
                ) from error
    for result, messages in done:
        results.append(result)
        for message in messages:
            warnings.warn(message, stacklevel=2)
    return results


def _recorded(task: object) -> tuple[Any, list[Warning]]:
    """Run a task and collect its warnings, which would be lost when the process ends."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = _INHERITED[-1](task)
    return result, [one.message for one in caught if isinstance(one.message, Warning)]
