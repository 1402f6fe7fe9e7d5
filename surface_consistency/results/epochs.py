"""What a log of inspect_ai says of its whole run: status, reducer of epochs, attempts of a task."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from surface_consistency.results.rows import Cells, at

_MEAN: Final = "mean"
_OF_K: Final = re.compile(r"(at_least|pass_at|pass_k)_(\d+)")
_SAME_TASK: Final = ("task_args", "model_args", "model_roles", "solver", "solver_args")
_SAME_CONFIG: Final = ("limit", "sample_id", "epochs", "epochs_reducer")


def status_note(log: Cells, n_samples: int) -> str:
    """Report a run that did not succeed.

    Args:
        log: What the log says of its run.
        n_samples: Number of its samples.

    Returns:
        A sentence without its subject; "" if the run succeeded.
    """
    status = log["status"]
    if status == "success":
        return ""
    n_items, epochs = at(log, "eval.dataset.samples"), at(log, "eval.config.epochs") or 1
    of = f" of {n_items * epochs:,}" if isinstance(n_items, int) else ""
    return (
        f"the log has the status {status!r} and holds {n_samples:,}{of} samples; "
        "`inspect eval-retry` completes it"
    )


def reducer_of(log: Cells | None) -> str:
    """Name the reducer of the epochs of a log that replaces their mean; "" for the mean."""
    names = at(log, "eval.config.epochs_reducer") or [_MEAN]
    epochs = at(log, "eval.config.epochs") or 1
    known = [name for name in names if name == _MEAN or _reducer(name) is not None]
    return known[0] if epochs > 1 and _MEAN not in names and known else ""


def reducer_notes(log: Cells, scores: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Iterator[str]:
    """Report how the epochs of a log are reduced, and what the log has by its other reducers.

    Args:
        log: What the log says of its run.
        scores: Rows and scores of all epochs by metric.

    Yields:
        Sentences.
    """
    names, epochs = at(log, "eval.config.epochs_reducer") or [], at(log, "eval.config.epochs") or 1
    used = reducer_of(log) or _MEAN
    if epochs > 1 and used != _MEAN:
        yield f"the scores of {epochs} epochs are reduced by {used}, as in the log"
    others = [name for name in names if name != used] if epochs > 1 else []
    for one in at(log, "results.scores") or ():
        values = one.get("metrics") or {}
        if one.get("reducer") in others and one["name"] in scores and values:
            name, value = next(iter(values.items()))
            mean = np.mean([score for score in scores[one["name"]][1] if not math.isnan(score)])
            yield (
                f"the log also reduces {epochs} epochs by {one['reducer']} ({name} of "
                f"{one['name']} {value['value']:.4g}); {used} is used, and the mean over all "
                f"epochs is {mean:.4g}"
            )


def _mode(scores: np.ndarray) -> float:
    """Return the most frequent score, the first of several."""
    values, first, counts = np.unique(scores, return_index=True, return_counts=True)
    return float(values[np.lexsort((first, -counts))[0]])


_PLAIN: Final[Mapping[str, Callable[[np.ndarray], float]]] = {
    "max": lambda scores: float(scores.max()),
    "median": lambda scores: float(np.median(scores)),
    "mode": _mode,
}


def _reducer(name: str) -> Callable[[np.ndarray], float] | None:
    """Return the function of a reducer of inspect_ai by the name in a log; None if not known."""
    found = _OF_K.fullmatch(name)
    if found is None:
        return _PLAIN.get(name)
    k = int(found[2])

    def of_k(scores: np.ndarray) -> float:
        n, right = len(scores), int((scores >= 1).sum())
        if found[1] == "at_least":
            return float(right >= k)
        if n < k:
            return math.nan
        if found[1] == "pass_at":
            return 1.0 - math.comb(n - right, k) / math.comb(n, k)
        return math.comb(right, k) / math.comb(n, k)

    return of_k


def reduced_rows(frame: pd.DataFrame, reducers: Mapping[str, str]) -> pd.DataFrame:
    """Reduce the repeats of each item as the log of the file does.

    Args:
        frame: Rows as of `read_results`.
        reducers: Reducer by file, for files that do not average repeats.

    Returns:
        The rows of other files, and of these files the first row of each item and metric with the
        reduced score; NaN if no repeat has a score.

    References:
        The reducers of inspect_ai; pass_at_k is the estimator of Chen et al., arXiv 2107.03374.
    """
    parts = [frame[~frame["file"].isin(list(reducers))]]
    for file, name in reducers.items():
        function = _reducer(name)
        if function is None:
            raise ValueError(f"{file}: {name!r} is not the name of a reducer")
        part = frame[frame["file"] == file].sort_values("repeat", kind="stable")
        key = ["model", "task", "item", "form", "metric"]
        groups = part.groupby(key, sort=False, observed=True)["score"]
        scores = [_of_known(cells.dropna().to_numpy(), function) for _, cells in groups]
        parts.append(part.drop_duplicates(key).assign(score=scores))
    return pd.concat(parts).sort_index()


def _of_known(scores: np.ndarray, function: Callable[[np.ndarray], float]) -> float:
    """Reduce scores; NaN if there is none."""
    return function(scores) if len(scores) else math.nan


class Attempt(NamedTuple):
    """The run of a log as an attempt of its task."""

    task: str
    """What attempts of one task have in common."""

    run: str
    """Id of the evaluation."""

    is_success: bool
    started: datetime


def attempt_of(log: Cells) -> Attempt | None:
    """Return the attempt that a log is of; None if the log does not name its task."""
    run, config = log["eval"], at(log, "eval.config") or {}
    if not {"task_id", "eval_id", "created"} <= {*run}:
        return None
    alike = [log.get("label"), run["task_id"], run.get("model"), *map(run.get, _SAME_TASK)]
    task = json.dumps([*alike, *map(config.get, _SAME_CONFIG)], sort_keys=True, default=str)
    started = datetime.fromisoformat(run["created"])
    return Attempt(task, run["eval_id"], log["status"] == "success", started)


def superseded(logs: Mapping[str, Cells]) -> dict[str, str]:
    """Find the logs that a later attempt of the same task replaces.

    Args:
        logs: What each log says of its run, by file.

    Returns:
        By file, the file of the newest successful attempt, or of the newest if none succeeded.
    """
    found = {file: one for file, log in logs.items() if (one := attempt_of(log)) is not None}
    replaced = {}
    for file, one in found.items():
        same = [(other.is_success, other.started, name) for name, other in found.items()
                if other.task == one.task]  # fmt: skip
        newest = max(same)[2]
        if found[newest].run != one.run:
            replaced[file] = newest
    return replaced
