"""F_S, F_L, alignment and signed alignment by group, models side by side."""

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from surface_consistency.errors import UndefinedMetricWarning, UnscoredWarning
from surface_consistency.metrics import (
    PAIRED_RATES,
    paired_by,
    percentile_interval,
    resample_counts,
)

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

__all__ = ["grouped_scores"]

_NAMES: Final = {
    "first_accuracy": "short_accuracy",
    "second_accuracy": "long_accuracy",
    "consistency": "alignment",
}
_RATES: Final = (
    "first_accuracy",
    "second_accuracy",
    "accuracy_difference",
    "consistency",
    "signed_alignment",
    "flip_rate",
)
_COUNTS: Final = ("both", "first_only", "second_only", "neither", "n", "n_clusters", "n_missing")
_TEST: Final = ("mcnemar_statistic", "mcnemar_p_value", "mcnemar_method")


def grouped_scores(
    frame: "pd.DataFrame",
    columns: tuple[str, ...] = (),
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> "pd.DataFrame":
    """Compute the paired scores by model, second condition and some columns.

    Args:
        frame: Outcomes of any models, columns of `SlaqOutcome`.
        columns: Columns that make groups besides; missing values make the group "unknown".
        n_resamples: Resamples of topics.
        seed: Seed of the resampling.

    Returns:
        One row a group, models in order of appearance: counts, `<score>`, `<score>_low` and
        `<score>_high` for short_accuracy (F_S), long_accuracy (F_L), accuracy_difference,
        alignment, signed_alignment and flip_rate, and McNemar's test clustered by topic.

    Raises:
        ColumnNotFoundError: If a column is missing.
        ValueError: If the frame is empty.

    Notes:
        Values and tests are those of `paired_by`. So are the intervals, but models that have
        verdicts on the same topics share their resamples: sixteen models take little longer than
        one, and their intervals differ by the models alone. What is missing is counted in
        `n_missing` and what is undefined is NaN, without a warning.
    """
    import pandas as pd

    grouped = frame
    for column in columns:
        labels = frame[column].astype(object).where(frame[column].notna(), "unknown")
        grouped = grouped.assign(**{column: labels.astype(str)})
    keys = ["model", "second_condition", *columns]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        table = paired_by(
            grouped,
            by=keys,
            cluster="topic_id",
            test="obuchowski",
            rates={name: PAIRED_RATES[name] for name in _RATES},
            n_resamples=1,
            rng=seed,
        ).set_index(keys)
    bounds = pd.DataFrame.from_dict(
        dict(_intervals(grouped, keys, n_resamples, seed)), orient="index", columns=_bound_names()
    ).reindex(table.index)
    table[bounds.columns] = bounds
    renamed = table.reset_index().rename(
        columns={
            old + end: new + end for old, new in _NAMES.items() for end in ("", "_low", "_high")
        }
        | {"second_condition": "condition", "n_clusters": "n_topics"}
    )
    kept = ["model", "condition", *columns]
    kept += ["n_topics" if name == "n_clusters" else name for name in _COUNTS]
    kept += [_NAMES.get(name, name) + end for name in _RATES for end in ("", "_low", "_high")]
    order = {model: place for place, model in enumerate(frame["model"].unique())}
    return renamed[[*kept, *_TEST]].sort_values(
        "model", key=lambda models: models.map(order), kind="stable"
    )


def _intervals(
    frame: "pd.DataFrame", keys: list[str], n_resamples: int, seed: int
) -> "Iterator[tuple[tuple[object, ...], list[float]]]":
    """Give the bounds of each group with two topics or more."""
    cells = _cells(frame, [*keys, "topic_id"])
    sums = cells.groupby([*keys, "topic_id"], sort=True).sum()
    alike: dict[tuple[object, ...], list[tuple[tuple[object, ...], pd.DataFrame]]] = {}
    for key, part in sums.groupby(level=list(range(len(keys))), sort=False):
        scored = part[(part > 0).any(axis=1)]
        topics = tuple(scored.index.get_level_values("topic_id"))
        if len(topics) > 1:
            alike.setdefault((*key[1:], topics), []).append((key, scored))
    for members in alike.values():
        side_by_side = np.hstack([scored.to_numpy(np.float64) for _, scored in members])
        drawn = resample_counts(side_by_side, n_resamples=n_resamples, rng=seed)
        for place, (key, _) in enumerate(members):
            yield key, _bounds(drawn[:, 4 * place : 4 * place + 4])


def _cells(frame: "pd.DataFrame", keys: list[str]) -> "pd.DataFrame":
    """Mark each pair as right both times, first only, second only, or neither."""
    first, second = (frame[name] for name in ("first_correct", "second_correct"))
    known = (first.notna() & second.notna()).to_numpy(bool)
    right = [column.eq(1).fillna(False).to_numpy(bool) for column in (first, second)]
    return frame[keys].assign(
        both=known & right[0] & right[1],
        first_only=known & right[0] & ~right[1],
        second_only=known & ~right[0] & right[1],
        neither=known & ~right[0] & ~right[1],
    )


def _bound_names() -> list[str]:
    """Name the columns of bounds, in the order of `_bounds`."""
    return [f"{name}_{end}" for name in _RATES for end in ("low", "high")]


def _bounds(drawn: "npt.NDArray[np.float64]") -> list[float]:
    """Return the bounds of each score over resamples."""
    found = [percentile_interval(PAIRED_RATES[name](drawn)) for name in _RATES]
    return [bound for interval in found for bound in (interval.low, interval.high)]
