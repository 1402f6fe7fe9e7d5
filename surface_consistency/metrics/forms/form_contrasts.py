"""Comparison of two models, or of any two groups, on the same facts in the same forms."""

import warnings
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics._groups import (
    check_frame,
    column_names,
    group_name,
    group_positions,
)
from surface_consistency.metrics._inputs import MISSING, verdict_codes
from surface_consistency.metrics.comparison.comparisons import compare_models
from surface_consistency.metrics.forms._facts import check_unique_forms, fact_codes
from surface_consistency.metrics.forms.forms import fact_sums
from surface_consistency.metrics.paired.multiplicity import with_adjusted_p_values
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals
from surface_consistency.reading import shown

_RATES: Final = {"consistency": 6, "accuracy": 3, "all_correct": 7}
"""Rates by their column in the sums of facts."""
_COLUMNS: Final = (
    *("a", "b", "rate", "n_items", "n_forms", "n_clusters", "not_inferred"),
    *("value_a", "value_b", "difference", "difference_low", "difference_high", "p_value"),
)
_COMPARED: Final = ("n_clusters", "not_inferred", *_COLUMNS[-4:])
"""Columns with their names in `compare_models`."""
_CELL: Final = ["fact", "cluster", "form"]


def form_contrasts(
    frame: pd.DataFrame,
    *,
    between: str = "model",
    reference: object = None,
    item: str | Sequence[str] = "item",
    form: str = "form",
    score: str = "correct",
    cluster: str | None = None,
    intervals: Intervals = DEFAULT_INTERVALS,
) -> pd.DataFrame:
    """Return differences in consistency, accuracy and all_correct of groups, on their common forms.

    Args:
        frame: One row per group, fact and form, with the columns named below.
        between: Column of the groups, such as the model.
        reference: Group with which all others are compared; None compares every two groups.
        item: Column of the fact, or columns that identify it together.
        form: Column of the form.
        score: Column of correctness labels: True or False, 1 or 0, None or NaN.
        cluster: Column of the clusters; None makes each fact a cluster.
        intervals: Confidence level of the intervals.

    Returns:
        Three rows for every two groups: a, b, rate ("consistency", "accuracy" or "all_correct");
        n_items, the number of facts with two or more forms for which both groups have labels,
        n_forms (distinct), n_clusters, not_inferred (why interval and p-value are NaN; otherwise
        empty); value_a, value_b; difference, a minus b, with difference_low and difference_high;
        p_value, from the same t, and p_value_holm, Holm's correction over all rows.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        ValueError: If the frame is empty, a form occurs twice for a fact of a group, a fact belongs
            to two clusters, an id is missing, a label is not binary, or `reference` is not a group.

    Notes:
        Rates are means over facts, so a difference is a mean of differences within facts. A form
        of a fact with a label in only one of the groups is excluded from both, so that unequal sets
        of forms do not affect the difference.

    References:
        See `forms_by` for the rates, `compare_models` for the inference.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"model": ["x"] * 12 + ["y"] * 12, "item": [*"aabbccddeeff"] * 2,
        ...      "form": ["a", "b"] * 12, "correct": [1] * 12 + [1, 0] * 6})
        >>> form_contrasts(frame)[["rate", "difference"]].values.tolist()
        [['consistency', 1.0], ['accuracy', 0.5], ['all_correct', 1.0]]
    """
    facts = column_names(item)
    needed = [between, *facts, form, score, *filter(None, (cluster,))]
    check_frame(frame, needed, options="between, item, form, score or cluster", row="form")
    if frame[between].isna().any():
        row = int(np.argmax(frame[between].isna()))
        raise ValueError(f"column {shown(between)} is empty in row {row}: fill in its group")
    groups = list(dict.fromkeys(frame[between]))
    if reference is not None and reference not in groups:
        raise ValueError(f"reference must be one of {groups}; got {shown(reference)}")
    codes = fact_codes(frame, facts, cluster)
    for key, where in group_positions(frame, [between]).items():
        check_unique_forms(frame, where, codes.facts, [*facts, form], group_name([between], key))
    verdicts = verdict_codes(frame[score].array, score)
    cells = pd.DataFrame(
        {"fact": codes.facts, "cluster": codes.clusters, "form": frame[form].array, "_": verdicts}
    )
    of_groups = frame[between].to_numpy()
    scored = verdicts != MISSING
    parts = {name: cells[scored & (of_groups == name)].set_index(_CELL)["_"] for name in groups}
    pairs = list(combinations(groups, 2))
    if reference is not None:
        pairs = [(reference, other) for other in groups if other != reference]
    rows = [
        {"a": a, "b": b} | row for a, b in pairs for row in _compared(parts[a], parts[b], intervals)
    ]
    return with_adjusted_p_values(pd.DataFrame(rows, columns=[*_COLUMNS]), column="p_value")


def _compared(
    one: "pd.Series[Any]", other: "pd.Series[Any]", intervals: Intervals
) -> Iterator[dict[str, object]]:
    """Compare two groups by each rate, on facts with two or more forms that both groups have."""
    both = pd.concat({"a": one, "b": other}, axis=1, join="inner")
    sums = both.groupby(["fact", "cluster"], sort=False).agg({"a": "sum", "b": "sum"})
    n_forms = both.groupby(["fact", "cluster"], sort=False).size()
    usable = both.groupby(["fact", "cluster"], sort=False)["a"].transform("size") > 1
    n_distinct = both.index[usable].get_level_values("form").nunique()
    sums, sizes = sums[n_forms > 1], np.asarray(n_forms[n_forms > 1], dtype=np.int64)
    if not sizes.size:
        return
    rates = {name: fact_sums(sizes, sums[name].to_numpy()) for name in ("b", "a")}
    for rate, column in _RATES.items():
        scores = pd.concat(
            sums.index.to_frame(index=False).assign(model=name, score=values[:, column])
            for name, values in rates.items()
        )
        with warnings.catch_warnings():
            # Reasons for undefined results are in the cells.
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            compared = compare_models(
                scores, item="fact", cluster="cluster", baseline="b", intervals=intervals
            )
        row = compared.differences.iloc[0].to_dict()
        counts = {"rate": rate, "n_items": row["n"], "n_forms": n_distinct}
        means = {"value_a": row["model_mean"], "value_b": row["reference_mean"]}
        yield counts | means | {name: row[name] for name in _COMPARED}
