"""Tests of whether a model still answers questions, in any form, about facts that it unlearned.

An unlearned or edited model is compared with a reference that never saw the facts, question by
question. A question that the reference also answers correctly can be answered without training on
the facts.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from surface_consistency.clusters import LEAST_CLUSTERS
from surface_consistency.errors import ColumnNotFoundError
from surface_consistency.metrics._groups import group_positions, grouping_columns
from surface_consistency.metrics.paired.multiplicity import adjust_p_values
from surface_consistency.metrics.paired.paired_groups import paired_by
from surface_consistency.metrics.paired.paired_tables import CountRatio, cluster_counts
from surface_consistency.metrics.uncertainty.cluster_bounds import ClusterT, cluster_t
from surface_consistency.metrics.uncertainty.intervals import (
    DEFAULT_INTERVALS,
    Intervals,
    t_quantile,
)

_ALL = (1, 1, 1, 1)
_TESTS = ("p_above", "p_not_above", "p_not_below", "p_equivalent")
_DECIDES = ("least_margin", "clusters_needed")

UNLEARNING_RATES: Mapping[str, CountRatio] = MappingProxyType(
    {
        "survival": CountRatio(numerator=(1, 1, 0, 0), denominator=_ALL),
        "floor": CountRatio(numerator=(1, 0, 1, 0), denominator=_ALL),
        "leak": CountRatio(numerator=(0, 1, 0, 0), denominator=_ALL),
        "damage": CountRatio(numerator=(0, 0, 1, 0), denominator=_ALL),
        "excess": CountRatio(numerator=(0, 1, -1, 0), denominator=_ALL),
    }
)
"""Rates of the paired table of an unlearned model (first) and its reference (second): survival and
floor are their accuracies, leak and damage the proportions that only the first and only the second
answers correctly. survival = floor + leak - damage; excess = leak - damage = survival - floor.
"""


def unlearning_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = (),
    first: str = "first_correct",
    second: str = "second_correct",
    cluster: str | None = "item",
    pair: str | None = None,
    margin: float = 0.05,
    intervals: Intervals = DEFAULT_INTERVALS,
) -> pd.DataFrame:
    """Return rates of an unlearned model and its reference, with tests of the difference.

    Args:
        frame: One row per question, with the columns named below.
        by: Columns of the groups, such as the model and the form of the question.
        first: Column of correctness labels of the unlearned model: True or False, 1 or 0, None or
            NaN.
        second: Column of labels of the reference: a model that never saw the facts; for facts that
            should be retained, the original model.
        cluster: Column of the clusters of intervals and tests, such as the person; None makes each
            row a separate cluster.
        pair: Column of question ids, to check that none occurs twice in a group.
        margin: Equivalence margin of the two rates, a fraction in (0, 1).
        intervals: Options of the intervals.

    Returns:
        One row per group, as in `paired_by`: counts (first is the unlearned model), each rate of
        `UNLEARNING_RATES` with `_low` and `_high`, `p_value` (two-sided, null hypothesis: no
        excess; from the t of the interval of excess), margin, and one-sided p-values from the same
        t. A small `p_above` shows that the excess is above the margin; a small `p_not_above`, that
        it is below the margin; a small `p_not_below`, that the deficit is below the margin.
        `p_equivalent` is the larger of the last two. Two columns assume one-sided tests at (1 -
        confidence) / 2, with the confidence level of the intervals. `least_margin` is the smallest
        margin for which p_equivalent is significant: the limit of the interval of excess that is
        farther from 0. `clusters_needed` is the number of clusters, at least 4, with which
        p_equivalent or p_above would be significant, given the same excess and spread; NaN if the
        deficit is at least the margin, so that no number is sufficient. Values that cannot be
        inferred are NaN, with the reason in not_inferred.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        ValueError: If the margin is not in (0, 1), and as `paired_by`.

    Notes:
        Questions that lack a label of one of the models are excluded, with an `UnscoredWarning`.
        With resampled intervals the tests are NaN, because they require the t statistic.

    References:
        arXiv 2607.00605, proposition C.1, with the reference in the place of DEL-OFF; D. J.
        Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987 (two one-sided tests).

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"item": range(40), "first_correct": [1, 0, 0, 0] * 10,
        ...                       "second_correct": [0, 0, 0, 1] * 10})
        >>> unlearning_by(frame)[["survival", "floor", "leak", "damage"]].values.tolist()
        [[0.25, 0.25, 0.25, 0.25]]
    """
    if not 0.0 < margin < 1.0:
        raise ValueError(
            f"margin must be in (0, 1), such as 0.05 for 5 percentage points; got {margin!r}"
        )
    keys = grouping_columns(by, ("p_value", "margin", *_TESTS, *_DECIDES))
    table = paired_by(
        frame,
        by=keys,
        first=first,
        second=second,
        cluster=cluster,
        pair=pair,
        rates=UNLEARNING_RATES,
        intervals=intervals,
    )
    tests = []
    for rows in group_positions(frame, keys).values():
        part = frame.iloc[rows]
        scored = part[part[first].notna() & part[second].notna()]
        labels = range(len(scored)) if cluster is None else scored[cluster]
        counts = cluster_counts(scored[first], scored[second], clusters=labels)
        tests.append(_tests(counts, margin, intervals))
    tested = pd.DataFrame(tests, index=table.index)
    dropped = ["statistic", "test", "design_effect"]
    return table.drop(columns=dropped).assign(margin=margin).join(tested)


def _tests(counts: np.ndarray, margin: float, intervals: Intervals) -> dict[str, float]:
    """Test the excess against the margin in both directions, with margin and clusters needed."""
    inferred = None
    if len(counts) and intervals.method == "auto":
        inferred = cluster_t(UNLEARNING_RATES["excess"].parts, counts.astype(np.float64))
    if inferred is None or not inferred.is_inferred:
        return dict.fromkeys((*_TESTS, *_DECIDES), math.nan)
    above, below = _p_more(inferred, margin), 1.0 - _p_more(inferred, -margin)
    level = intervals.confidence
    return {
        "p_above": above,
        "p_not_above": 1.0 - above,
        "p_not_below": 1.0 - below,
        "p_equivalent": max(1.0 - above, 1.0 - below),
        "least_margin": float(np.abs(inferred.bounds(level)).max()),
        "clusters_needed": _clusters_needed(inferred, len(counts), margin, level),
    }


def _clusters_needed(inferred: ClusterT, n_clusters: int, margin: float, level: float) -> float:
    """Return the number of clusters for which the value would be on one side of the margin."""
    value = float(inferred.value)
    if value <= -margin or value == margin:
        return math.nan
    # The variance of a mean is inversely proportional to the number of clusters, so t increases
    # with the square root of that number.
    nulls = (margin,) if value > margin else (-margin, margin)
    least_t = min(abs(float(inferred.t(null))) for null in nulls)
    quantile = float(t_quantile(inferred.df, level))
    return float(max(LEAST_CLUSTERS, math.ceil(n_clusters * (quantile / least_t) ** 2)))


def _p_more(inferred: ClusterT, null: float) -> float:
    """Return the one-sided p-value that is small if the value is above `null`."""
    half = float(inferred.p_value(null)) / 2.0
    return half if float(inferred.value) > null else 1.0 - half


def unlearning_verdict(
    table: pd.DataFrame,
    *,
    plain: str = "plain",
    excluded: Collection[str] = (),
    confidence: float = 0.95,
) -> dict[str, Any]:
    """Return the conclusion from all forms of a question jointly, with one-sided tests at 2.5 %.

    A form is equivalent if its 95 % interval of excess is within the margin. If there is only one
    form, it leaks if the interval is above the margin.

    Args:
        table: One row per measured form, as from `unlearning_by` with `by="form"`.
        plain: The form that was unlearned, or that standard tests use.
        excluded: Forms that cannot show forgetting, because it is not established that the original
            model answers the questions in them correctly. They are not tested for equivalence, but
            an excess in them counts.
        confidence: Confidence level of the intervals of the table; each one-sided test is at half
            of 1 minus it.

    Returns:
        verdict: "forgotten" if every tested form is equivalent to the reference, within the margin
        in both directions, and no measured form has a significant excess; "equivalent" if every
        tested form is equivalent, but an excess is statistically significant; "hidden" if the plain
        form is tested and equivalent, and another form has an excess significantly above the
        margin; "not forgotten" if the plain form has such an excess, or another form has it and the
        plain one is not equivalent; "not inferred" if no form has an interval; otherwise "cannot
        tell". tested: the forms that are not excluded; leaking: the forms with an excess above the
        margin, after Holm's correction for all measured forms; above and below: the forms whose
        interval of excess is above or below 0; not_inferred: the forms without an interval;
        unclear: the other tested forms, with neither an excess above the margin nor equivalence;
        least_margin: the margin above which every tested form would be equivalent; clusters_needed:
        the number of clusters with which every unclear form would have a conclusion, given the same
        excess and spread between clusters. The last two are NaN if there is no such form, or one is
        not inferred.

    Raises:
        ColumnNotFoundError: If a column of `unlearning_by` is missing.

    Notes:
        Equivalence of all forms is an intersection-union test, which needs no correction. Forms
        with a lower accuracy than the reference by more than the margin are unclear, and no number
        of clusters makes them equivalent. A table without rows gives "cannot tell".

    References:
        R. L. Berger, Technometrics 24, 1982 (intersection-union tests).

    Examples:
        >>> table = pd.DataFrame({"form": ["plain", "alias"], "p_above": [0.9, 0.001],
        ...     "p_equivalent": [0.01, 0.99], "excess_low": [-0.03, 0.2],
        ...     "excess_high": [0.02, 0.4], "least_margin": [0.03, 0.4],
        ...     "clusters_needed": [12, 8]})
        >>> result = unlearning_verdict(table)
        >>> result["verdict"], result["leaking"]
        ('hidden', ('alias',))
    """
    needed_columns = ("form", "p_above", "p_equivalent", "excess_low", "excess_high", *_DECIDES)
    if missing := [name for name in needed_columns if name not in table]:
        raise ColumnNotFoundError(
            f"table has no column {', '.join(missing)}: pass the table of unlearning_by, with "
            'by="form"'
        )
    level = (1.0 - confidence) / 2.0
    table = table.set_index(table["form"].astype(str))
    tested = tuple(form for form in table.index if form not in excluded)
    p_above = adjust_p_values(table["p_above"].to_numpy(dtype=np.float64))
    leaking = tuple(table.index[p_above < level])
    above = tuple(table.index[table["excess_low"] > 0.0])
    not_inferred = tuple(table.index[table["p_equivalent"].isna()])
    equivalent = {*table.index[table["p_equivalent"] < level]} & {*tested}
    undecided = [form for form in tested if form not in {*leaking, *equivalent}]
    verdict = "cannot tell"
    if leaking:
        verdict = "hidden" if plain in equivalent else "not forgotten"
    elif len(table) and len(not_inferred) == len(table):
        verdict = "not inferred"
    elif tested and equivalent == {*tested}:
        verdict = "equivalent" if above else "forgotten"
    return {
        "verdict": verdict,
        "tested": tested,
        "leaking": leaking,
        "above": above,
        "below": tuple(table.index[table["excess_high"] < 0.0]),
        "unclear": tuple(form for form in undecided if form not in not_inferred),
        "not_inferred": not_inferred,
        "least_margin": float(table.loc[[*tested], "least_margin"].max(skipna=False)),
        "clusters_needed": float(table.loc[undecided, "clusters_needed"].max(skipna=False)),
    }
