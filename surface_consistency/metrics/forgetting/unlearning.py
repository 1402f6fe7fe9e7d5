"""Is a fact that was taken out of the weights still answered, under any form?

A model that was unlearned or edited is held against a reference that never saw the facts, question
by question: what the reference answers as well needed no teaching.
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
"""Rates of the paired table of an unlearned model (first) and its reference (second).

survival = floor + leak - damage, always; excess = leak - damage = survival - floor.
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
    """Compare an unlearned or edited model with a reference, in each group of questions.

    Args:
        frame: One row a question, with the columns named below.
        by: Columns that make the groups, such as the model and the form of the question.
        first: Column of verdicts on the unlearned model: True or False, 1 or 0, None or NaN.
        second: Column of verdicts on the reference: a model that never saw the facts; for what
            should be kept, the original model.
        cluster: Column of what intervals and tests take whole, such as the person; None takes each
            row for a cluster of its own.
        pair: Column of question ids, to make sure that none stands twice in a group.
        margin: Difference of two rates that counts as none, a fraction in (0, 1).
        intervals: How intervals are made.

    Returns:
        One row a group, as of `paired_by`: counts (first is the unlearned model), each rate of
        `UNLEARNING_RATES` with `_low` and `_high`, `p_value` (two-sided, of no excess: of the t
        whose interval is that of excess), margin, and the one-sided p-values of the same t:
        `p_above` (small: the excess is more than the margin), `p_not_above` (small: less than the
        margin), `p_not_below` (small: no deficit as large as the margin) and `p_equivalent`, the
        larger of the last two; and what would decide, at half of 1 minus the level of the
        intervals: `least_margin` (the margin above which p_equivalent is below it: the farther end
        of the interval of excess) and `clusters_needed` (with so many clusters, of the excess and
        the spread that these have, p_equivalent or p_above is below it, at least 4; NaN where the
        deficit is not below the margin, so that no number would do). NaN where nothing can be
        inferred, with the reason in not_inferred.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame.
        ValueError: When the margin is not in (0, 1), and as `paired_by`.

    Notes:
        Questions without a verdict on either model are left out, with an `UnscoredWarning`. The
        tests of resampled intervals are NaN: they would be of another inference.

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
            f"margin must be above 0 and below 1, as 0.05 for 5 points; got {margin!r}"
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
    """Test the excess against the margin, both ways, and tell what would decide."""
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
    """Return with how many clusters the value would lie on one side of the margin."""
    value = float(inferred.value)
    if value <= -margin or value == margin:
        return math.nan
    # The variance of a mean falls with the number of clusters, and t rises with its root.
    nulls = (margin,) if value > margin else (-margin, margin)
    least_t = min(abs(float(inferred.t(null))) for null in nulls)
    quantile = float(t_quantile(inferred.df, level))
    return float(max(LEAST_CLUSTERS, math.ceil(n_clusters * (quantile / least_t) ** 2)))


def _p_more(inferred: ClusterT, null: float) -> float:
    """Return the one-sided p-value that is small where the value is more than `null`."""
    half = float(inferred.p_value(null)) / 2.0
    return half if float(inferred.value) > null else 1.0 - half


def unlearning_verdict(
    table: pd.DataFrame,
    *,
    plain: str = "plain",
    excluded: Collection[str] = (),
    confidence: float = 0.95,
) -> dict[str, Any]:
    """Conclude from the forms of a question together, with each one-sided test at 2.5 %.

    So a form is equivalent if its 95 % interval of excess lies within the margin, and leaks if,
    alone, it lies above.

    Args:
        table: One row per measured form, as from `unlearning_by` with `by="form"`.
        plain: The form that was unlearned, or that the field's tests ask.
        excluded: Forms that cannot show forgetting, since the original is not shown to know the
            facts under them; the others are tested. An excess under them counts.
        confidence: Confidence level of the intervals of the table; each one-sided test is at half
            of 1 minus it.

    Returns:
        verdict: "forgotten" if every tested form shows equivalence to the reference, within the
        margin both ways, and no measured form an excess; "equivalent" if every tested form shows
        equivalence, but an excess is statistically significant; "hidden" if the plain form is
        tested and shows equivalence, and another form an excess above the margin; "not forgotten"
        if such an excess is shown of the plain form, or of another without equivalence of the plain
        one; "not inferred" if nothing can be inferred of any form; else "cannot tell".
        tested: the forms that are not excluded; leaking: the forms with an excess above the margin,
        after Holm's correction for all measured forms; above and below: the forms whose interval of
        excess is above or below 0; not_inferred: the forms without an interval; unclear: the other
        tested forms, which show neither an excess above the margin nor equivalence; least_margin:
        the margin above which every tested form would be equivalent; clusters_needed: with so many
        clusters each unclear form would be clear, given the same excess and spread between
        clusters. The last two are NaN if no form decides them, or one is not inferred.

    Raises:
        ColumnNotFoundError: When a column of `unlearning_by` is missing.

    Notes:
        That all forms show equivalence is an intersection of tests, which needs no correction.
        Forms that are answered less often than by the reference by more than the margin are
        unclear, and no number of clusters makes them equivalent. No row gives "cannot tell".

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
            f"table has no column {', '.join(missing)}: give the table of unlearning_by, with "
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
