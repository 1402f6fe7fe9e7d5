"""The numbers of SLAQ, from outcomes frames: scores by group, momentum, slots, recall."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from surface_consistency.errors import (
    SurfaceConsistencyWarning,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.metrics import percentile_interval, resample_counts
from surface_consistency.report.slaq.run import SLAQ_CHECKS, SlaqRun
from surface_consistency.report.slaq.scores import grouped_scores

if TYPE_CHECKING:
    import pandas as pd

    from surface_consistency.metrics import MomentumResult, TopicArraysResult

__all__ = ["MOMENTUM_NULLS", "SLAQ_GROUPINGS", "slaq_run_tables", "slaq_tables"]

SLAQ_GROUPINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "overall": (),
    "by_category": ("category",),
    "by_popularity": ("popularity",),
    "by_entity": ("is_entity",),
}
"""Name of each table of scores to the column that groups it besides model and condition."""

MOMENTUM_NULLS: Final[tuple[Literal["topic", "topic-and-slot"], ...]] = ("topic", "topic-and-slot")
"""What the curves after runs of slots are held against."""


def slaq_tables(
    frame: "pd.DataFrame", *, n_resamples: int = 10_000, n_null: int = 1_000, seed: int = 0
) -> "dict[str, pd.DataFrame]":
    """Compute the tables of one or several models.

    Args:
        frame: Outcomes of any models, one below the other, columns of `SlaqOutcome`.
        n_resamples: Resamples of topics for intervals.
        n_null: Draws of the null band of momentum.
        seed: Seed of both.

    Returns:
        "overall", "by_category", "by_popularity" and "by_entity": the scores F_S, F_L, alignment
        and signed alignment with intervals that resample topics, by model, second condition ("long"
        or "free") and group; pairs are pooled, which equals the mean over topics where all are
        judged. "momentum" (figure 3) and "momentum_slopes"; "position", from topics whose orders
        are balanced; "order_sensitivity": how often a fact's long verdict changes with the order;
        "recall", from free form. A table for which the frame holds no rows is left out.

    Raises:
        ColumnNotFoundError: If a column is missing.
        ValueError: If the frame is empty.

    References:
        SLAQ, arXiv 2510.11218, eqs. 2 to 4, figures 2 and 3.
    """
    frame = _with_numbers(frame)
    with warnings.catch_warnings():
        # Counts of what is missing or undefined stand in the tables.
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        tables = {
            name: grouped_scores(frame, columns, n_resamples=n_resamples, seed=seed)
            for name, columns in SLAQ_GROUPINGS.items()
        }
        listed = _numbered(frame[frame["second_condition"] == "long"])
        by_model: dict[str, list[pd.DataFrame]] = {}
        for model, rows in listed.groupby("model", sort=False):
            for name, table in _of_model(rows, n_resamples, n_null, seed).items():
                table.insert(0, "model", model)
                by_model.setdefault(name, []).append(table)
    tables |= {name: _stack(parts) for name, parts in by_model.items()}
    free = frame[frame["second_condition"] == "free"]
    if len(free):
        tables["recall"] = _recall(free)
    return tables


def slaq_run_tables(
    runs: "Sequence[SlaqRun]", *, n_resamples: int = 10_000, n_null: int = 1_000, seed: int = 0
) -> "dict[str, pd.DataFrame]":
    """Compute the tables of runs, those about their judges and noise included.

    Args:
        runs: The runs, their labels distinct.
        n_resamples: As for `slaq_tables`.
        n_null: As for `slaq_tables`.
        seed: As for `slaq_tables`.

    Returns:
        As `slaq_tables`, and where there is anything to tell "noise_floor", "unjudged",
        "judge_agreement" with human labels, and the scores "corrected" for the judge's errors.
    """
    import pandas as pd

    frame = pd.concat([run.outcomes for run in runs], ignore_index=True)
    tables = slaq_tables(frame, n_resamples=n_resamples, n_null=n_null, seed=seed)
    for name in SLAQ_CHECKS:
        parts = [
            run.checks[name].assign(model=run.label)[["model", *run.checks[name].columns]]
            for run in runs
            if name in run.checks
        ]
        if parts:
            tables[name] = _stack(parts)
    rows = [
        {"model": run.label, "judge": run.judge, "reason": reason, "n": n}
        for run in runs
        for reason, n in run.unjudged.items()
    ]
    if rows:
        tables["unjudged"] = pd.DataFrame(rows)
    return tables


def _with_numbers(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Turn verdicts of nullable booleans into 1, 0 and NaN, which metrics read at once."""
    import pandas as pd

    masked = [
        name
        for name in ("first_correct", "second_correct")
        if name in frame and isinstance(frame[name].dtype, pd.BooleanDtype)
    ]
    return frame.assign(
        **{name: frame[name].astype("Float64").to_numpy(float, na_value=np.nan) for name in masked}
    )


def _numbered(rows: "pd.DataFrame") -> "pd.DataFrame":
    """Put numbers for the labels of topics and facts, which sort and compare faster."""
    import pandas as pd

    return rows.assign(
        **{name: pd.factorize(rows[name])[0] for name in ("topic_id", "fact_id") if name in rows}
    )


def _of_model(
    rows: "pd.DataFrame", n_resamples: int, n_null: int, seed: int
) -> "dict[str, pd.DataFrame]":
    """Compute what looks at slots and orders, for one model."""
    from surface_consistency.metrics import topic_arrays

    arrays = topic_arrays(rows, question="fact_id")
    tables = {"order_sensitivity": _order_sensitivity(arrays, n_resamples, seed)}
    tables |= _momentum(arrays, n_resamples, n_null, seed)
    position = _position(arrays, n_resamples, seed)
    return tables if position is None else tables | {"position": position}


def _momentum(
    arrays: "TopicArraysResult", n_resamples: int, n_null: int, seed: int
) -> "dict[str, pd.DataFrame]":
    """Compute the curves after runs of right and wrong slots, under both nulls."""
    import pandas as pd

    from surface_consistency.metrics import momentum

    if not np.isfinite(arrays.slots).all(axis=-1).any():
        return {}
    results: list[MomentumResult] = []
    for null in MOMENTUM_NULLS:
        with warnings.catch_warnings():
            # Balanced orders repeat within a topic only when there are more than 120 of them.
            warnings.simplefilter("ignore", SurfaceConsistencyWarning)
            results.append(
                momentum(
                    arrays.slots,
                    orders=arrays.orders,
                    null=null,
                    missing="drop",
                    # The curve and its intervals are the same under both nulls; one is enough.
                    n_resamples=1 if results else n_resamples,
                    n_null=n_null,
                    rng=seed,
                )
            )
    first = results[0].to_frame()
    measured = {name: first[name] for name in ("probability_low", "probability_high")}
    curves = []
    for result in results:
        points = result.to_frame().assign(**measured)
        points.insert(0, "null", result.null)
        curves.append(points)
    return {
        "momentum": pd.concat(curves, ignore_index=True),
        "momentum_slopes": _slopes(results),
    }


def _slopes(results: "Sequence[MomentumResult]") -> "pd.DataFrame":
    """List the slopes of the curves under each null, their intervals from the first result."""
    import pandas as pd

    rows = []
    for result in results:
        for kind in ("correct", "incorrect"):
            curve, measured = getattr(result, kind), getattr(results[0], kind)
            rows.append(
                {
                    "null": result.null,
                    "streak": curve.streak,
                    "slope": curve.slope,
                    "slope_low": measured.slope_interval.low,
                    "slope_high": measured.slope_interval.high,
                    "null_slope": curve.null_slope,
                    "null_low": curve.null_slope_interval.low,
                    "null_high": curve.null_slope_interval.high,
                    "p_value": curve.p_value,
                    "n_responses": result.n_responses,
                    "n_missing": result.n_missing,
                }
            )
    return pd.DataFrame(rows)


def _position(arrays: "TopicArraysResult", n_resamples: int, seed: int) -> "pd.DataFrame | None":
    """Compute the accuracy by slot; None where orders are not balanced, or no fact is complete."""
    import pandas as pd

    from surface_consistency.metrics import is_balanced, position_curve

    complete = np.isfinite(arrays.long).all(axis=1)
    if not complete.any() or not is_balanced(arrays.orders):
        return None
    result = position_curve(
        arrays.slots, arrays.orders, missing="drop", n_resamples=n_resamples, rng=seed
    )
    return pd.DataFrame(
        [
            {
                "slot": point.slot,
                "n": point.n,
                "accuracy": point.accuracy,
                "accuracy_low": point.accuracy_interval.low,
                "accuracy_high": point.accuracy_interval.high,
                "slope": result.slope,
                "slope_low": result.slope_interval.low,
                "slope_high": result.slope_interval.high,
                "n_topics": result.n_topics,
                "n_facts_left_out": result.n_missing,
            }
            for point in result.points
        ]
    )


def _order_sensitivity(arrays: "TopicArraysResult", n_resamples: int, seed: int) -> "pd.DataFrame":
    """Compute how often the long verdict of a fact changes with the order of its query.

    Of m verdicts with k right, two differ with the chance 2 k (m - k) / (m (m - 1)); the mean over
    facts is 1 less the consistency of `form_consistency`, with intervals that resample topics.
    """
    import pandas as pd

    judged = np.isfinite(arrays.long).sum(axis=1)
    rights = np.nansum(arrays.long, axis=1)
    several = judged > 1
    if not several.any():
        return pd.DataFrame()
    orders = np.maximum(judged, 2)
    differing = np.where(several, 2 * rights * (judged - rights) / (orders * (orders - 1)), 0.0)
    by_topic = np.column_stack((differing.sum(axis=1), several.sum(axis=1)))[several.any(axis=1)]
    low = high = np.nan
    if len(by_topic) > 1:
        drawn = resample_counts(by_topic, n_resamples=n_resamples, rng=seed)
        interval = percentile_interval(drawn[:, 0] / drawn[:, 1])
        low, high = interval.low, interval.high
    changing = (several & (rights > 0) & (rights < judged)).sum()
    return pd.DataFrame(
        [
            {
                "n_facts": int(several.sum()),
                "n_changing": int(changing),
                "changing_share": float(changing / several.sum()),
                "disagreement": float(by_topic[:, 0].sum() / by_topic[:, 1].sum()),
                "disagreement_low": low,
                "disagreement_high": high,
            }
        ]
    )


def _recall(free: "pd.DataFrame") -> "pd.DataFrame":
    """Count, by model, which facts a free text speaks of, and which of these it states rightly."""
    import pandas as pd

    rows = []
    for model, frame in free.groupby("model", sort=False):
        judged = frame[frame["second_correct"].notna()]
        recalled = judged[judged["is_recalled"].fillna(False).astype(bool)]
        # A string matcher sees what is right, not whether the text is silent on the rest.
        n_unknown = int(judged["is_recalled"].isna().sum())
        n_right = int(judged["second_correct"].astype(bool).sum())
        short = frame["first_correct"].dropna().astype(bool)
        is_known = len(judged) > 0 and n_unknown == 0
        rows.append(
            {
                "model": model,
                "n": len(frame),
                "n_judged": len(judged),
                "n_recalled": len(recalled),
                "n_recall_unknown": n_unknown,
                "recall": len(recalled) / len(judged) if is_known else np.nan,
                "accuracy_of_recalled": n_right / len(recalled)
                if is_known and len(recalled)
                else np.nan,
                "accuracy": n_right / len(judged) if len(judged) else np.nan,
                "short_accuracy": float(short.mean()) if len(short) else np.nan,
            }
        )
    return pd.DataFrame(rows)


def _stack(parts: "list[pd.DataFrame]") -> "pd.DataFrame":
    """Put the tables of the models one below the other."""
    import pandas as pd

    return pd.concat([part for part in parts if len(part.columns) > 1] or parts, ignore_index=True)
