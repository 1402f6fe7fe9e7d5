"""Tasks on all cores: files to score, tables and contrasts of several models."""

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
"""In a forked process the function that it does; it is inherited instead of pickled."""


def map_processes(
    function: Callable[[_Task], _Result], tasks: Sequence[_Task], *, n_workers: int | None = None
) -> list[_Result]:
    """Do tasks in processes of their own, so that all cores are used.

    Args:
        function: A function of one task; processes inherit it with all that it holds. Tasks and
            results are pickled.
        tasks: The tasks.
        n_workers: Processes at most; None for one a core, 1 for none but this one. It is this one
            too where none can be forked: on systems where a process would read the caller's script
            anew, and in a worker of a pool.

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
        # Python warns of threads at a fork; the workers use none of theirs.
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
                    f"one of {n_workers} processes was killed, perhaps for want of memory; give "
                    "fewer files or runs at once, or free memory"
                ) from error
    for result, messages in done:
        results.append(result)
        for message in messages:
            warnings.warn(message, stacklevel=2)
    return results


def _recorded(task: object) -> tuple[Any, list[Warning]]:
    """Do a task and gather its warnings, which would be lost with the process."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = _INHERITED[-1](task)
    return result, [one.message for one in caught if isinstance(one.message, Warning)]
