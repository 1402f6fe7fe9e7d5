"""The numbers of SLAQ, from outcomes frames: scores by group, momentum, slots, recall."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from surface_consistency.errors import (
    SurfaceConsistencyWarning,
    UndefinedMetricWarning,
    UnscoredWarning,
)

if TYPE_CHECKING:
    import pandas as pd

    from surface_consistency.metrics import TopicArraysResult
    from surface_consistency.report.slaq.run import SlaqRun

__all__ = ["SLAQ_GROUPINGS", "slaq_run_tables", "slaq_tables"]

SLAQ_GROUPINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "overall": (),
    "by_category": ("category",),
    "by_popularity": ("popularity",),
    "by_entity": ("is_entity",),
}
"""Name of each table of scores to the column that groups it besides model and condition."""

_NAMES: Final = {
    "first_accuracy": "short_accuracy",
    "second_accuracy": "long_accuracy",
    "consistency": "alignment",
}
_KEPT: Final = (
    "short_accuracy",
    "long_accuracy",
    "accuracy_difference",
    "alignment",
    "signed_alignment",
    "flip_rate",
)
_COUNTS: Final = ("both", "first_only", "second_only", "neither", "n", "n_clusters", "n_missing")


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
    with warnings.catch_warnings():
        # Counts of what is missing or undefined stand in the tables.
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        tables = {
            name: _scores(frame, columns, n_resamples, seed)
            for name, columns in SLAQ_GROUPINGS.items()
        }
        listed = frame[frame["second_condition"] == "long"]
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
    """Compute the tables of runs, their noise floor and what was left unjudged included.

    Args:
        runs: The runs, their labels distinct.
        n_resamples: As for `slaq_tables`.
        n_null: As for `slaq_tables`.
        seed: As for `slaq_tables`.

    Returns:
        As `slaq_tables`, and "noise_floor" and "unjudged" where there is anything to tell.
    """
    import pandas as pd

    frame = pd.concat([run.outcomes for run in runs], ignore_index=True)
    tables = slaq_tables(frame, n_resamples=n_resamples, n_null=n_null, seed=seed)
    floors = [
        run.noise_floor.assign(model=run.label)[["model", *run.noise_floor.columns]]
        for run in runs
        if run.noise_floor is not None
    ]
    if floors:
        tables["noise_floor"] = _stack(floors)
    rows = [
        {"model": run.label, "judge": run.judge, "reason": reason, "n": n}
        for run in runs
        for reason, n in run.unjudged.items()
    ]
    if rows:
        tables["unjudged"] = pd.DataFrame(rows)
    return tables


def _scores(
    frame: "pd.DataFrame", columns: tuple[str, ...], n_resamples: int, seed: int
) -> "pd.DataFrame":
    """Compute the paired scores by model, condition and these columns, in the study's words."""
    from surface_consistency.metrics import paired_by

    grouped = frame
    for column in columns:
        labels = frame[column].astype(object).where(frame[column].notna(), "unknown")
        grouped = grouped.assign(**{column: labels.astype(str)})
    table = paired_by(
        grouped,
        by=["model", "second_condition", *columns],
        cluster="topic_id",
        test="obuchowski",
        n_resamples=n_resamples,
        seed=seed,
    )
    renamed = table.rename(
        columns={
            old + end: new + end for old, new in _NAMES.items() for end in ("", "_low", "_high")
        }
        | {"second_condition": "condition", "n_clusters": "n_topics"}
    )
    counts = [_NAMES.get(name, name) for name in _COUNTS]
    kept = ["model", "condition", *columns]
    kept += ["n_topics" if name == "n_clusters" else name for name in counts]
    kept += [name + end for name in _KEPT for end in ("", "_low", "_high")]
    kept += ["mcnemar_statistic", "mcnemar_p_value", "mcnemar_method"]
    order = {model: place for place, model in enumerate(dict.fromkeys(frame["model"]))}
    return renamed[kept].sort_values("model", key=lambda s: s.map(order), kind="stable")


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

    curves, slopes = [], []
    if not np.isfinite(arrays.slots).all(axis=-1).any():
        return {}
    for null in ("topic", "topic-and-slot"):
        with warnings.catch_warnings():
            # Balanced orders repeat within a topic only when there are more than 120 of them.
            warnings.simplefilter("ignore", SurfaceConsistencyWarning)
            result = momentum(
                arrays.slots,
                orders=arrays.orders,
                null=null,
                missing="drop",
                n_resamples=n_resamples,
                n_null=n_null,
                rng=seed,
            )
        points = result.to_frame()
        points.insert(0, "null", null)
        curves.append(points)
        for curve in (result.correct, result.incorrect):
            slopes.append(
                {
                    "null": null,
                    "streak": curve.streak,
                    "slope": curve.slope,
                    "slope_low": curve.slope_interval.low,
                    "slope_high": curve.slope_interval.high,
                    "null_slope": curve.null_slope,
                    "null_low": curve.null_slope_interval.low,
                    "null_high": curve.null_slope_interval.high,
                    "p_value": curve.p_value,
                    "n_responses": result.n_responses,
                    "n_missing": result.n_missing,
                }
            )
    return {
        "momentum": pd.concat(curves, ignore_index=True),
        "momentum_slopes": pd.DataFrame(slopes),
    }


def _position(arrays: "TopicArraysResult", n_resamples: int, seed: int) -> "pd.DataFrame | None":
    """Compute the accuracy by slot; None where orders are not balanced, or no topic is complete."""
    import pandas as pd

    from surface_consistency.metrics import is_balanced, position_curve

    complete = np.isfinite(arrays.slots).all(axis=(1, 2))
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
                "accuracy_low": point.interval.low,
                "accuracy_high": point.interval.high,
                "slope": result.slope,
                "slope_low": result.slope_interval.low,
                "slope_high": result.slope_interval.high,
                "n_topics": result.n_topics,
                "n_topics_left_out": result.n_missing,
            }
            for point in result.points
        ]
    )


def _order_sensitivity(arrays: "TopicArraysResult", n_resamples: int, seed: int) -> "pd.DataFrame":
    """Compute how often the long verdict of a fact changes with the order of its query."""
    import pandas as pd

    from surface_consistency.metrics import form_consistency

    n_topics, _, n_facts = arrays.long.shape
    forms = arrays.long.transpose(0, 2, 1).reshape(n_topics * n_facts, -1)
    judged = np.isfinite(forms).sum(axis=1)
    if judged.max(initial=0) < 2:
        return pd.DataFrame()
    result = form_consistency(
        list(forms),
        clusters=np.repeat(np.arange(n_topics), n_facts),
        missing="drop",
        n_resamples=n_resamples,
        rng=seed,
    )
    rights = np.nansum(forms, axis=1)
    several = judged > 1
    return pd.DataFrame(
        [
            {
                "n_facts": int(several.sum()),
                "n_changing": int(((rights > 0) & (rights < judged))[several].sum()),
                "changing_share": float(((rights > 0) & (rights < judged))[several].mean()),
                "disagreement": 1.0 - result.consistency,
                "disagreement_low": 1.0 - result.intervals["consistency"].high,
                "disagreement_high": 1.0 - result.intervals["consistency"].low,
            }
        ]
    )


def _recall(free: "pd.DataFrame") -> "pd.DataFrame":
    """Count, by model, which facts a free text speaks of, and which of these it states rightly."""
    import pandas as pd

    rows = []
    for model, frame in free.groupby("model", sort=False):
        known = frame[frame["is_recalled"].notna() & frame["second_correct"].notna()]
        recalled = known[known["is_recalled"].astype(bool)]
        n_right = int(recalled["second_correct"].astype(bool).sum())
        short = frame["first_correct"].dropna().astype(bool)
        rows.append(
            {
                "model": model,
                "n": len(frame),
                "n_judged": len(known),
                "n_recalled": len(recalled),
                "recall": len(recalled) / len(known) if len(known) else np.nan,
                "accuracy_of_recalled": n_right / len(recalled) if len(recalled) else np.nan,
                "accuracy": n_right / len(known) if len(known) else np.nan,
                "short_accuracy": float(short.mean()) if len(short) else np.nan,
            }
        )
    return pd.DataFrame(rows)


def _stack(parts: "list[pd.DataFrame]") -> "pd.DataFrame":
    """Put the tables of the models one below the other."""
    import pandas as pd

    return pd.concat([part for part in parts if len(part.columns) > 1] or parts, ignore_index=True)
