"""Metadata of the run in a log of inspect_ai: status, reducer of epochs, attempts of a task."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import numpy as np
import pandas as pd

from surface_consistency.errors import DataError
from surface_consistency.reading import shown
from surface_consistency.results.rows import Cells, at

_MEAN: Final = "mean"
_REDUCERS: Final = re.compile(r"mean|max|median|mode|(at_least|pass_at|pass_k)_[0-9]{1,4}")
_SAME_TASK: Final = (
    *("task_id", "model", "task_args", "model_args", "model_roles", "solver", "solver_args"),
)
_SAME_CONFIG: Final = ("limit", "sample_id", "epochs", "epochs_reducer")


def status_note(log: Cells, n_samples: int) -> str:
    """Report a run that did not succeed.

    Args:
        log: The log, with the metadata of its run.
        n_samples: Number of its samples.

    Returns:
        A sentence without its subject, which is the file; "" if the run succeeded.
    """
    status = log["status"]
    if status == "success":
        return ""
    n_items, epochs = at(log, "eval.dataset.samples"), at(log, "eval.config.epochs") or 1
    of = f" of {n_items * epochs:,}" if isinstance(n_items, int) else ""
    return (
        f"the log has the status {shown(status)} and contains {n_samples:,}{of} samples; `inspect "
        "eval-retry` completes it"
    )


def reducer_of(log: Cells | None) -> str:
    """Return the name of the reducer of the epochs of a log; "" for the mean."""
    names = at(log, "eval.config.epochs_reducer") or [_MEAN]
    epochs = at(log, "eval.config.epochs") or 1
    known = [name for name in names if _REDUCERS.fullmatch(name)]
    return known[0] if epochs > 1 and _MEAN not in names and known else ""


def reducer_notes(log: Cells) -> Iterator[str]:
    """Report how the epochs of a log are reduced, and the other reducers by which it has scores.

    Args:
        log: The log, with the metadata of its run.

    Yields:
        Sentences, which are true also if a rule scores the answers.
    """
    names, epochs = at(log, "eval.config.epochs_reducer") or [], at(log, "eval.config.epochs") or 1
    used = reducer_of(log) or _MEAN
    if epochs > 1 and used != _MEAN:
        yield (
            f"the log reduces its {epochs} epochs by {used}, and so do its scores; if a rule "
            "scores the answers, repeats are averaged"
        )
    for other in names if epochs > 1 else ():
        if other != used:
            yield f"the log also reduces {epochs} epochs by {other}; {used} is used"


def _reduced(name: str, scores: np.ndarray) -> float:
    """Reduce the scores of an item by a reducer of inspect_ai; NaN if there are too few."""
    n, n_correct = len(scores), int((scores >= 1).sum())
    if not n:
        return math.nan
    if name == "max":
        return float(scores.max())
    if name == "median":
        return float(np.median(scores))
    if name == "mode":
        return float(Counter(scores.tolist()).most_common(1)[0][0])
    kind, _, number = name.rpartition("_")
    k = int(number)
    if kind == "at_least":
        return float(n_correct >= k)
    if n < k:
        return math.nan
    if kind == "pass_at":
        return 1.0 - math.comb(n - n_correct, k) / math.comb(n, k)
    return math.comb(n_correct, k) / math.comb(n, k)


def reduced_rows(frame: pd.DataFrame, reducers: Mapping[str, str]) -> pd.DataFrame:
    """Reduce the repeats of each item as the log of the file does.

    Args:
        frame: Rows as `read_results` returns them.
        reducers: Reducer by file, for files that do not average repeats.

    Returns:
        All rows of other files. Of these files, the first row of each item and metric with the
        reduced score, which is NaN if no repeat has a score.

    Raises:
        DataError: If a metric is reduced in two ways, or as the maximum over different numbers of
            epochs.

    References:
        The reducers of inspect_ai; pass_at_k is the estimator of Chen et al., arXiv 2107.03374.
    """
    if not reducers:
        return frame
    _check_reducers(frame, reducers)
    parts = [frame[~frame["file"].isin(list(reducers))]]
    for file, name in reducers.items():
        part = frame[frame["file"] == file].sort_values("repeat", kind="stable")
        key = ["model", "task", "item", "form", "metric"]
        groups = part.groupby(key, sort=False, observed=True)["score"]
        scores = [_reduced(name, cells.dropna().to_numpy()) for _, cells in groups]
        parts.append(part.drop_duplicates(key).assign(score=scores))
    return pd.concat(parts).sort_index()


def _check_reducers(frame: pd.DataFrame, reducers: Mapping[str, str]) -> None:
    """Check that scores of one metric are the same quantity, not a mean and a maximum."""
    key = ["task", "metric", "file"]
    counts = frame.groupby(key, observed=True)["repeat"].nunique().reset_index()
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for task, metric, file, n in counts.itertuples(index=False, name=None):
        name = reducers.get(file, _MEAN)
        of = f"{n} epochs" if name == "max" or name.startswith("at_least") else "the epochs"
        own = (f"{name} of {of}", file)
        other = first.setdefault((task, metric), own)
        if other[0] != own[0]:
            raise DataError(
                f"{metric} is the {other[0]} in {other[1]} and the {own[0]} in {file}, which are "
                "different quantities; score the answers by `rule`, which averages repeats, or "
                "set log.eval.config.epochs_reducer = ['mean'] in each of the logs"
            )


def _moment(text: str) -> datetime:
    """Read a time, which is in UTC if it has no time zone."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=moment.tzinfo or UTC)


def superseded(logs: Mapping[str, Cells]) -> dict[str, str]:
    """Find the logs that are replaced by another attempt of the same task.

    Args:
        logs: Metadata of the run of each log, by file.

    Returns:
        For each replaced file, the file of the newest successful attempt, or of the newest attempt
        if no attempt succeeded.
    """
    tasks: dict[str, str] = {}
    newest: dict[str, tuple[bool, datetime, str]] = {}
    for file, log in logs.items():
        run, config = log["eval"], at(log, "eval.config") or {}
        if run.get("task_id") and run.get("created"):
            alike = [log.get("label"), *map(run.get, _SAME_TASK), *map(config.get, _SAME_CONFIG)]
            task = tasks[file] = json.dumps(alike, sort_keys=True, default=str)
            own = (log["status"] == "success", _moment(run["created"]), file)
            newest[task] = max(own, newest.get(task, own))
    files = {file: newest[task][2] for file, task in tasks.items()}
    return {
        file: other
        for file, other in files.items()
        if logs[other]["eval"].get("eval_id") != logs[file]["eval"].get("eval_id")
    }
