"""Tables of SLAQ from outcomes frames: scores by group, momentum, slots, recall."""

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import (
    SurfaceConsistencyWarning,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.metrics import (
    PAIRED_RATES,
    CountRatio,
    alignment_by,
    momentum,
    paired_by,
    position_curve,
)
from surface_consistency.metrics.positions.momentum_curves import DEFAULT_N_NULL
from surface_consistency.metrics.positions.topic_layout import is_balanced, topic_arrays
from surface_consistency.metrics.uncertainty.bootstrap import group_values
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals
from surface_consistency.report.texts import Texts
from surface_consistency.tables.columns import COLUMNS
from surface_consistency.tables.table import Table
from surface_consistency.tables.tabulation import tabulate

TEXTS: Final = Texts("surface_consistency.studies.slaq")
"""Captions, notes, checks and method of SLAQ."""

_SLOPES: Final = (
    "model null streak slope",
    replace(COLUMNS["null_slope"], low="null_low", high="null_high"),
)

_NULLS: Final[tuple[Literal["topic", "topic-and-slot"], ...]] = ("topic", "topic-and-slot")

_RATES: Final = (
    "first_accuracy",
    "second_accuracy",
    "accuracy_difference",
    "consistency",
    "flip_rate",
)
_ALIGNMENT: Final = ("alignment", "signed_alignment")
_COUNTS: Final = (
    *("both", "first_only", "second_only", "neither", "n", "n_clusters", "n_effective_clusters"),
    *("not_inferred", "n_missing", "n_topics"),
)
_TEST: Final = ("statistic", "p_value", "test", "design_effect")


def grouped_scores(
    frame: pd.DataFrame,
    columns: tuple[str, ...] = (),
    *,
    cluster: str = "topic_id",
    intervals: Intervals = DEFAULT_INTERVALS,
) -> pd.DataFrame:
    """Compute the paired scores by model, second condition and some columns.

    Args:
        frame: Outcomes of any models, columns of `SlaqOutcome`.
        columns: Further grouping columns; missing values are the group "unknown".
        cluster: Column by which intervals of all scores but the alignments are clustered.
        intervals: Method and options of the confidence intervals.

    Returns:
        One row per group, models in order of appearance: model, condition ("long" or "free"), the
        columns, counts, and each score with `<score>_low` and `<score>_high`. The scores
        first_accuracy (F_S), second_accuracy (F_L), accuracy_difference, consistency and flip_rate
        are over pairs; alignment and signed_alignment are means over the n_topics topics, clustered
        by topic. Also the test of the accuracy difference, by the t statistic of its interval, and
        the design effect. Alignment equals the consistency if no pair of a topic has a missing
        score.

    Raises:
        ColumnNotFoundError: If a column is missing.
        ValueError: If the frame is empty.

    Notes:
        Values, intervals and tests are those of `paired_by`, and of `alignment_by` for the
        alignments. Missing scores are counted in `n_missing` and undefined values are NaN, without
        a warning.

    References:
        SLAQ, arXiv 2510.11218, eqs. 1 to 4 and figure 2 ("average over topics").
    """
    grouped = _with_numbers(frame)
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
            cluster=cluster,
            rates={name: PAIRED_RATES[name] for name in _RATES},
            intervals=intervals,
        )
        aligned = alignment_by(grouped, by=keys, intervals=intervals)
    ends = ("", "_low", "_high")
    own = ["n_topics", *(name + end for name in _ALIGNMENT for end in ends)]
    named = table.merge(aligned[[*keys, *own]], on=keys)
    named = named.rename(columns={"second_condition": "condition"})
    shown = ["model", "condition", *columns, *_COUNTS]
    shown += [name + end for name in (*_RATES, *_ALIGNMENT) for end in ends]
    order = {model: place for place, model in enumerate(frame["model"].unique())}
    return named[[*shown, *_TEST]].sort_values(
        "model", key=lambda models: models.map(order), kind="stable"
    )


def slot_tables(
    frame: pd.DataFrame, *, intervals: Intervals = DEFAULT_INTERVALS, n_null: int = DEFAULT_N_NULL
) -> dict[str, pd.DataFrame]:
    """Compute the tables of slots, orders and free texts; intervals are clustered by topic.

    Args:
        frame: Outcomes of any models, columns of `SlaqOutcome`.
        intervals: Method and options of the intervals; its seed is also that of the null band.
        n_null: Number of draws of the null band of momentum.

    Returns:
        "momentum" (figure 3) and "momentum_slopes"; "position", if the orders of every topic are
        balanced; "order_sensitivity": how often the label of a fact in the long answer changes with
        the order; "recall", from free form. Tables without rows are omitted.

    Raises:
        ColumnNotFoundError: If a column is missing.
    """
    frame = _with_numbers(frame)
    by_model: dict[str, list[pd.DataFrame]] = {}
    with warnings.catch_warnings():
        # The tables contain the counts of missing and undefined values.
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        listed = frame[frame["second_condition"] == "long"]
        # Integer codes sort and compare faster than labels.
        listed = listed.assign(
            **{name: pd.factorize(listed[name])[0] for name in ("topic_id", "item")}
        )
        for model, rows in listed.groupby("model", sort=False):
            arrays = topic_arrays(rows, question="item")
            tables = {"order_sensitivity": _order_sensitivity(arrays, intervals)}
            tables |= _momentum(arrays, intervals, n_null)
            tables |= _position(arrays, intervals)
            for name, table in tables.items():
                if not table.empty:
                    table.insert(0, "model", model)
                    by_model.setdefault(name, []).append(table)
    made = {name: pd.concat(parts, ignore_index=True) for name, parts in by_model.items()}
    free = frame[frame["second_condition"] == "free"]
    return made | ({"recall": tabulate(free, ["model"], _recall)} if len(free) else {})


def slot_numbers(frame: pd.DataFrame) -> dict[str, float]:
    """Return the numbers of `slot_tables` for the long queries of one model by name.

    Args:
        frame: Outcomes, columns of `SlaqOutcome`.

    Returns:
        accuracy_slot_<slot>, from 1, and slot_slope, its change per slot, if orders are balanced;
        accuracy_after_right_<length> and accuracy_after_wrong_<length>, the accuracy of the slot
        after a run of correct or incorrect slots, and slope_after_right and slope_after_wrong;
        order_disagreement: each with `_low` and `_high`. p-values of both slopes as
        <slope>_p_value, and momentum_p_value, that of both curves, under "topic-and-slot" of
        `metrics.momentum`. n_slot_topics, the number of topics in accuracies by slot, and
        n_responses, the number of long answers in momentum. NaN if the count is 0.

    Raises:
        ColumnNotFoundError: If a column is missing.
    """
    tables = slot_tables(frame.assign(model=""))
    n_slots = int(frame["slot"].max())
    slots = _rows(tables, "position")
    momentum_null = {"null": "topic-and-slot"}
    numbers: dict[str, float] = {}
    for slot in range(1, n_slots + 1):
        numbers |= _number(f"accuracy_slot_{slot}", _row(slots, slot=slot), "accuracy")
    numbers |= _number("slot_slope", _row(slots, slot=1), "slope")
    curves, lines = _rows(tables, "momentum"), _rows(tables, "momentum_slopes")
    for word, streak in (("right", 1), ("wrong", 0)):
        for length in range(n_slots):
            point = _row(curves, streak=streak, length=length, **momentum_null)
            numbers |= _number(f"accuracy_after_{word}_{length}", point, "probability")
        line = _row(lines, streak=streak, **momentum_null)
        numbers |= _number(f"slope_after_{word}", line, "slope")
        numbers[f"slope_after_{word}_p_value"] = line.get("p_value", math.nan)
    line = _row(lines, streak=1, **momentum_null)
    numbers["momentum_p_value"] = line.get("band_p_value", math.nan)
    orders = _row(_rows(tables, "order_sensitivity"))
    numbers |= _number("order_disagreement", orders, "disagreement")
    numbers["n_slot_topics"] = _row(slots, slot=1).get("n_topics", 0.0)
    numbers["n_responses"] = line.get("n_responses", 0.0)
    return {name: float(value) for name, value in numbers.items()}


def _rows(tables: Mapping[str, pd.DataFrame], name: str) -> list[dict[str, Any]]:
    """List the rows of a table; empty if the table is missing."""
    rows = tables[name].to_dict("records") if name in tables else []
    return [{str(key): value for key, value in row.items()} for row in rows]


def _row(rows: Sequence[dict[str, Any]], **where: object) -> dict[str, Any]:
    """Find the row with these values; an empty row if it is missing."""
    return next((row for row in rows if where.items() <= row.items()), {})


def _number(name: str, row: Mapping[str, Any], column: str) -> dict[str, float]:
    """Return a number of a row and its bounds by name; NaN if the row is empty."""
    return {f"{name}{end}": row.get(f"{column}{end}", math.nan) for end in ("", "_low", "_high")}


def reasons_unscored(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Count the facts without a score, by reason.

    Args:
        verdicts: One row per target.

    Returns:
        judge, reason and n, the most frequent first; empty if every fact has a score.
    """
    counts = Counter(verdicts["reason"].dropna().str.split(":").str[0]).most_common()
    judge = verdicts["judged_by"].iloc[0] if counts else None
    rows = [{"judge": judge, "reason": reason, "n": n} for reason, n in counts]
    return pd.DataFrame(rows, columns=["judge", "reason", "n"])


def _with_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert correctness labels of nullable booleans to 1, 0 and NaN, which metrics use."""
    masked = [
        name
        for name in ("first_correct", "second_correct")
        if name in frame and isinstance(frame[name].dtype, pd.BooleanDtype)
    ]
    return frame.assign(**{name: frame[name].to_numpy(float, na_value=np.nan) for name in masked})


_SLOPE_COLUMNS: Final = (
    *("null", "streak", "slope", "slope_low", "slope_high", "null_slope", "null_low", "null_high"),
    *("p_value", "band_p_value", "band_p_value_smallest", "n_responses", "n_missing"),
)
_POSITION: Final = (
    *("slot", "n", "accuracy", "accuracy_low", "accuracy_high"),
    *("slope", "slope_low", "slope_high", "not_inferred", "n_topics", "n_facts_left_out"),
)


def _momentum(
    arrays: Mapping[str, npt.NDArray[Any]], intervals: Intervals, n_null: int
) -> dict[str, pd.DataFrame]:
    """Compute the curves after runs of correct and incorrect slots, under both nulls."""
    if not np.isfinite(arrays["slots"]).all(axis=-1).any():
        return {}
    curves: list[pd.DataFrame] = []
    slopes: list[pd.DataFrame] = []
    for null in _NULLS:
        with warnings.catch_warnings():
            # Balanced orders repeat within a topic only if there are more than 120 of them.
            warnings.simplefilter("ignore", SurfaceConsistencyWarning)
            points, of_null = momentum(
                arrays["slots"],
                orders=arrays["orders"],
                null=null,
                missing="drop",
                intervals=intervals,
                n_null=n_null,
            )
        curves.append(points.assign(null=of_null["null"].iloc[0]))
        slopes.append(
            of_null.rename(columns={"null_slope_low": "null_low", "null_slope_high": "null_high"})
        )
    return {
        "momentum": pd.concat(curves, ignore_index=True)[["null", *points.columns]],
        "momentum_slopes": pd.concat(slopes, ignore_index=True)[list(_SLOPE_COLUMNS)],
    }


def _position(
    arrays: Mapping[str, npt.NDArray[Any]], intervals: Intervals
) -> dict[str, pd.DataFrame]:
    """Compute the accuracy by slot, if orders are balanced, of facts without missing scores."""
    complete = np.isfinite(arrays["long"]).all(axis=1)
    if not complete.any() or not is_balanced(arrays["orders"]):
        return {}
    rows = position_curve(arrays["slots"], arrays["orders"], missing="drop", intervals=intervals)
    return {"position": rows.rename(columns={"n_missing": "n_facts_left_out"})[list(_POSITION)]}


def _order_sensitivity(
    arrays: Mapping[str, npt.NDArray[Any]], intervals: Intervals
) -> pd.DataFrame:
    """Compute how often the label of a fact in the long answer changes with the order.

    Of m labels, k of them correct, two differ with probability 2 k (m - k) / (m (m - 1)); the mean
    over facts is 1 minus the consistency of `forms_by`, with intervals clustered by topic.
    """
    n_scored = np.isfinite(arrays["long"]).sum(axis=1)
    n_correct = np.nansum(arrays["long"], axis=1)
    several = n_scored > 1
    if not several.any():
        return pd.DataFrame()
    orders = np.maximum(n_scored, 2)
    n_differing = 2 * n_correct * (n_scored - n_correct)
    differing = np.where(several, n_differing / (orders * (orders - 1)), 0.0)
    by_topic = np.column_stack((differing.sum(axis=1), several.sum(axis=1)))[several.any(axis=1)]
    disagreement = group_values(
        by_topic, {"disagreement": CountRatio(numerator=(1, 0), denominator=(0, 1))}, intervals
    )["disagreement"]
    changing = int((several & (n_correct > 0) & (n_correct < n_scored)).sum())
    return pd.DataFrame(
        [
            {
                "n_items": int(several.sum()),
                "n_changing": changing,
                "changing_share": float(changing / several.sum()),
                "disagreement": disagreement.value,
                "disagreement_low": disagreement.low,
                "disagreement_high": disagreement.high,
            }
        ]
    )


def _recall(frame: pd.DataFrame) -> dict[str, float]:
    """Count the facts that a model's free texts mention, and those that they state correctly."""
    scored = frame[frame["second_correct"].notna()]
    recalled = int(scored["is_recalled"].eq(True).fillna(False).astype(bool).sum())
    # A string matcher detects correct facts, but not whether the text mentions the others.
    n_unknown = int(scored["is_recalled"].isna().sum())
    n_correct = int(scored["second_correct"].astype(bool).sum())
    short = frame["first_correct"].dropna().astype(bool)
    is_known = len(scored) > 0 and n_unknown == 0
    return {
        "n": len(frame),
        "n_judged": len(scored),
        "n_recalled": recalled,
        "n_recall_unknown": n_unknown,
        "recall": recalled / len(scored) if is_known else np.nan,
        "accuracy_of_recalled": n_correct / recalled if is_known and recalled else np.nan,
        "accuracy": n_correct / len(scored) if len(scored) else np.nan,
        "first_accuracy": float(short.mean()) if len(short) else np.nan,
    }


def describe_slot_tables(frames: Mapping[str, pd.DataFrame]) -> dict[str, Table]:
    """Add captions and notes to the tables of `slot_tables`.

    Args:
        frames: The frames by name.

    Returns:
        Tables by name.
    """
    first = {"momentum_slopes": _SLOPES}
    return {name: TEXTS.table(name, frame, first.get(name, ())) for name, frame in frames.items()}
