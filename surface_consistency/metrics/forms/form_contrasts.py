"""Two models, or any two groups, on the same facts in the same forms."""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
import pandas as pd

from surface_consistency.metrics._groups import check_frame
from surface_consistency.metrics._inputs import MISSING, verdict_codes
from surface_consistency.metrics.forms.forms import fact_sums
from surface_consistency.metrics.paired.multiplicity import adjust_p_values
from surface_consistency.metrics.uncertainty.bootstrap import cluster_sums
from surface_consistency.metrics.uncertainty.cluster_bounds import Part, cluster_t
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals

_RATES: Final = {"consistency": 7, "accuracy": 3, "all_right": 8}
"""Rates by their place among the sums of facts."""
_COLUMNS: Final = (
    *("a", "b", "rate", "n_facts", "n_forms", "n_clusters", "value_a", "value_b"),
    *("difference", "difference_low", "difference_high", "p_value", "p_value_holm"),
)


def form_contrasts(
    frame: pd.DataFrame,
    *,
    between: str = "model",
    reference: object = None,
    fact: str | Sequence[str] = "fact_id",
    form: str = "form",
    correct: str = "correct",
    cluster: str | None = None,
    intervals: Intervals = DEFAULT_INTERVALS,
) -> pd.DataFrame:
    """Compare consistency, accuracy and all right of groups on the forms that both were judged in.

    Args:
        frame: One row a group, fact and form, with the columns named below.
        between: Column of the groups, such as the model.
        reference: The group that all others are compared with; None for every two.
        fact: Column of the fact, or columns that name it together.
        form: Column of the form.
        correct: Column of verdicts: True or False, 1 or 0, None or NaN.
        cluster: Column of what intervals take as a whole; None takes facts.
        intervals: Level of the intervals.

    Returns:
        Three rows for every two groups: a, b, rate ("consistency", "accuracy" or "all_right");
        n_facts with two forms or more that both groups have verdicts in, n_forms of these,
        n_clusters; value_a, value_b; difference, a less b, with difference_low and difference_high;
        p_value, of the same t, and p_value_holm, Holm's over all rows. NaN where nothing can be
        inferred.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame.
        ValueError: When the frame is empty, a form stands twice for a fact of a group, or
            `reference` is no group.

    Notes:
        Rates are means over facts, so a difference is a mean of differences within facts; cells
        that one group alone has a verdict in count for neither, so that unequal sets of forms do
        not decide it.

    References:
        See `forms_by` for the rates, `contrast` for the inference.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"model": ["x"] * 12 + ["y"] * 12, "fact_id": [*"aabbccddeeff"] * 2,
        ...      "form": ["a", "b"] * 12, "correct": [1] * 12 + [1, 0] * 6})
        >>> form_contrasts(frame)[["rate", "difference"]].values.tolist()
        [['consistency', 1.0], ['accuracy', 0.5], ['all_right', 1.0]]
    """
    facts = [fact] if isinstance(fact, str) else list(fact)
    needed = [between, *facts, form, correct, *filter(None, (cluster,))]
    check_frame(frame, needed, options="between, fact, form, correct or cluster", row="form")
    groups = list(dict.fromkeys(frame[between]))
    if reference is not None and reference not in groups:
        raise ValueError(f"reference must be one of {groups}; got {reference!r}")
    cells = [*facts, form]
    scored = frame.assign(_code=verdict_codes(frame[correct].array, correct))
    if scored.duplicated([between, *cells]).any():
        raise ValueError(
            f"a form stands more than once for a fact of one {between}: drop the duplicates, or "
            "add to fact what tells them apart"
        )
    scored = scored[scored["_code"] != MISSING]
    parts = {name: scored[scored[between] == name].set_index(cells) for name in groups}
    pairs = list(combinations(groups, 2))
    if reference is not None:
        pairs = [(reference, other) for other in groups if other != reference]
    rows = [
        {"a": a, "b": b} | row
        for a, b in pairs
        for row in _compared(parts[a], parts[b], facts, cluster, intervals)
    ]
    table = pd.DataFrame(rows, columns=[*_COLUMNS])
    adjusted = adjust_p_values(table["p_value"].to_numpy(dtype=np.float64)) if len(table) else None
    return table.assign(p_value_holm=adjusted)


def _compared(
    one: pd.DataFrame,
    other: pd.DataFrame,
    facts: list[str],
    cluster: str | None,
    intervals: Intervals,
) -> list[dict[str, object]]:
    """Compare two groups."""
    shared = one.index.intersection(other.index)
    one, other = one.loc[shared].reset_index(), other.loc[shared].reset_index()
    numbers = one.groupby(facts, sort=False).ngroup().to_numpy()
    n_forms = np.bincount(numbers)
    usable = n_forms > 1
    if not usable.any():
        return []
    a, b = (
        fact_sums(n_forms[usable], np.bincount(numbers, weights=part["_code"])[usable])
        for part in (one, other)
    )
    first = np.unique(numbers, return_index=True)[1][usable]
    clusters = np.arange(len(first))
    if cluster is not None:
        clusters = pd.factorize(one[cluster].iloc[first])[0]
    rows: list[dict[str, object]] = []
    for rate, column in _RATES.items():
        sums = cluster_sums(np.stack([np.ones(len(a)), a[:, column], b[:, column]], 1), clusters)
        value_a, value_b = sums[:, 1:].sum(axis=0) / sums[:, 0].sum()
        parts = (Part(1.0, (0, 1, 0), (1, 0, 0)), Part(-1.0, (0, 0, 1), (1, 0, 0)))
        row = {"rate": rate, "n_facts": len(a), "n_forms": int(n_forms[usable].sum())}
        row |= {"n_clusters": len(sums), "value_a": value_a, "value_b": value_b}
        row |= {"difference": value_a - value_b}
        inferred = cluster_t(parts, sums)
        if inferred is not None:
            low, high = inferred.bounds(intervals.level)
            row |= {"difference_low": float(low), "difference_high": float(high)}
            row |= {"p_value": float(inferred.p_value())}
        rows.append(row)
    return rows
