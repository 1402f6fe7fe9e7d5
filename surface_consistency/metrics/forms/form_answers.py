"""Agreement of the answers (not only of their correctness labels) to the forms of a fact."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from surface_consistency.metrics import _groups
from surface_consistency.metrics._inputs import Floats, Integers
from surface_consistency.metrics.forms._facts import check_unique_forms, fact_codes
from surface_consistency.metrics.forms.variance_shares import squared_totals
from surface_consistency.metrics.paired.paired_tables import CountRatio
from surface_consistency.metrics.uncertainty.bootstrap import cluster_sums, group_values
from surface_consistency.metrics.uncertainty.cluster_bounds import jackknife
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals

_COUNTS = ("n_items", "n_answers", "n_single", "n_missing", "n_clusters", "not_inferred")
_RATES = ("same_answer", "chance", "kappa")


_MEAN_AGREEMENT = CountRatio(numerator=(0, 1), denominator=(1, 0))
"""Mean agreement over facts."""


def form_answers_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = (),
    item: str = "item",
    form: str = "form",
    answer: str = "answer",
    cluster: str | None = None,
    intervals: Intervals = DEFAULT_INTERVALS,
) -> pd.DataFrame:
    """Return the probability that two forms of a fact have the same answer, observed and by chance.

    Args:
        frame: One row per fact and form, with the columns named below.
        by: Columns of the groups.
        item: Column of the fact.
        form: Column of the form.
        answer: Column of the compared values: a normalised answer, a candidate, an entity. Two
            answers are the same if they are equal; None and NaN are missing.
        cluster: Column of the clusters; None makes each fact a cluster.
        intervals: Options of the intervals.

    Returns:
        One row per group: the columns `by`; n_items (facts with two or more answers), n_answers of
        these, n_single (excluded facts with fewer), n_missing, n_clusters, not_inferred;
        same_answer, the probability that two random forms of a fact have the same answer, averaged
        over facts; chance, the same for two random answers of all facts; kappa, (same_answer -
        chance) / (1 - chance), NaN if all answers are equal; with `_low` and `_high`.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        ValueError: If the frame is empty, a form occurs twice for a fact, a fact belongs to two
            clusters, or an id is missing.

    Notes:
        Two different incorrect answers have equal correctness labels, but are not the same answer.
        So with one accepted answer per fact, the agreement of labels is at least as high as
        same_answer. For a model that always gives the same answer, same_answer is 1 and kappa is
        NaN. Answers in different scripts or languages are never equal as text: compare candidates
        or entities there. Published numbers that pool the pairs of forms, instead of averaging over
        facts, differ if facts have unequal numbers of forms.

    References:
        Y. Elazar et al., TACL 2021, arXiv 2102.01017 (consistency of answers); J. L. Fleiss,
        Psychological Bulletin 76, 1971 (chance, kappa).

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"item": [1, 1, 1, 2, 2, 2], "form": ["a", "b", "c"] * 2,
        ...      "answer": ["x", "x", "y", "z", "z", "z"]})
        >>> form_answers_by(frame)["same_answer"].round(3).tolist()
        [0.667]
    """
    columns = [*_COUNTS, *_groups.bound_columns(_RATES)]
    keys = _groups.grouping_columns(by, columns)
    needed = [*dict.fromkeys([*keys, item, form, answer, cluster or item])]
    _groups.check_frame(frame, needed, options="by, item, form, answer or cluster", row="form")
    answers, _ = pd.factorize(frame[answer])
    facts, clusters = fact_codes(frame, [item], cluster)
    rows = []
    for key, where in _groups.group_positions(frame, keys).items():
        check_unique_forms(frame, where, facts, [item, form], _groups.group_name(keys, key))
        row = _group(facts[where], answers[where], clusters[where], intervals)
        rows.append(dict(zip(keys, key, strict=True)) | row)
    return pd.DataFrame(rows, columns=[*keys, *columns])


def _group(
    facts: Integers, answers: Integers, clusters: Integers, intervals: Intervals
) -> dict[str, object]:
    """Return the row of one group."""
    is_answered = answers >= 0
    n_missing, n_all = int(np.count_nonzero(~is_answered)), np.unique(facts).size
    facts, first, places = np.unique(facts[is_answered], return_index=True, return_inverse=True)
    of_fact, answers = clusters[is_answered][first], answers[is_answered]
    sizes = np.bincount(places, minlength=facts.size)
    usable = sizes > 1
    inside = usable[places]
    row: dict[str, object] = {
        "n_items": int(usable.sum()),
        "n_answers": int(inside.sum()),
        "n_single": n_all - int(usable.sum()),
        "n_missing": n_missing,
        "n_clusters": 0,
        "not_inferred": "no fact has two answers",
    }
    if not usable.any():
        return row
    facts = np.unique(places[inside], return_inverse=True)[1]
    answers, of_fact, sizes = answers[inside], of_fact[usable], sizes[usable]
    clusters = np.unique(of_fact, return_inverse=True)[1]
    n_answers = int(answers.max()) + 1
    pairs, counts = np.unique(facts * n_answers + answers, return_counts=True)
    same = np.bincount(pairs // n_answers, counts * (counts - 1.0))
    sums = cluster_sums(
        np.stack([np.ones(sizes.size), same / (sizes * (sizes - 1.0))], 1), clusters
    )
    agreement = group_values(sums, {"same_answer": _MEAN_AGREEMENT}, intervals)["same_answer"]
    row |= {"n_clusters": len(sums), "not_inferred": agreement.not_inferred}
    left_out = _MEAN_AGREEMENT(np.vstack([np.zeros(2), sums]) * -1.0 + sums.sum(axis=0))
    _, sizes_left = squared_totals(np.ones(answers.size), answers, clusters[facts])
    _, n_left = squared_totals(np.ones(answers.size), np.zeros_like(answers), clusters[facts])
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = sizes_left / n_left
        kappa = np.where(chance < 1.0, (left_out - chance) / (1.0 - chance), np.nan)
    bounds = jackknife([chance[0], kappa[0]], np.stack([chance[1:], kappa[1:]])).bounds(
        intervals.confidence
    )
    known = not agreement.not_inferred
    ends = np.where(known, np.stack(bounds), math.nan)
    if known and np.isnan(ends[0, 1]):
        row["not_inferred"] = "kappa: all answers or all clusters are equal"
    row |= {"same_answer": agreement.value, "chance": chance[0], "kappa": kappa[0]}
    row |= {"same_answer_low": agreement.low, "same_answer_high": agreement.high}
    row |= {"chance_low": max(ends[0, 0], 0.0) if known else math.nan}
    row |= {"chance_high": ends[1, 0], "kappa_low": ends[0, 1], "kappa_high": ends[1, 1]}
    return row


def rank_agreement(first: Sequence[Sequence[object]], second: Sequence[Sequence[object]]) -> Floats:
    """Return RankC, the similarity of the rankings of candidates under two forms, for each item.

    Args:
        first: The candidates of each item, ranked by the first form, most probable first.
        second: The same candidates, ranked by the second form.

    Returns:
        RankC of each item, in [0, 1], and its expected value by chance, shape `(n_items, 2)`.

    Raises:
        ValueError: If there are no items, the sequences differ in length, or the two rankings of an
            item do not have the same candidates.

    Notes:
        For N candidates the overlap of the first j is weighted by softmax(N, N - 1, ..., 1). The
        first candidate has weight .63, so RankC mainly depends on whether both forms rank the same
        candidate first. Two random rankings have the expected value sum_j w_j j / N: 1 for one
        candidate, .63 for two and .16 for ten. Compare items with unequal numbers of candidates
        relative to chance.

    References:
        J. Qi, R. Fernández and A. Bisazza, EMNLP 2023, arXiv 2310.10378, equation 1.

    Examples:
        >>> rank_agreement([["a", "b", "c"]], [["a", "c", "b"]]).round(3).tolist()
        [[0.878, 0.475]]
    """
    if len(first) != len(second) or not len(first):
        raise ValueError(
            f"both forms need a ranking of each item, at least one; got {len(first)} and "
            f"{len(second)}"
        )
    return np.array(
        [
            _rank_agreement(place, *both)
            for place, both in enumerate(zip(first, second, strict=True))
        ]
    )


def _rank_agreement(
    place: int, one: Sequence[object], other: Sequence[object]
) -> tuple[float, float]:
    """Return RankC of one item, and its expected value for random rankings."""
    n = len(one)
    if not n or set(one) != set(other) or not n == len(other) == len(set(one)):
        raise ValueError(
            f"item {place}: both rankings must contain the same candidates, each once; got "
            f"{list(one)} and {list(other)}"
        )
    weights = np.exp(-np.arange(n, dtype=np.float64))
    weights /= weights.sum()
    where = {candidate: rank for rank, candidate in enumerate(other)}
    # A candidate is among the first j of both for j from the larger of its two ranks.
    later = np.maximum(np.arange(n), [where[candidate] for candidate in one])
    overlap = np.cumsum(np.bincount(later, minlength=n)) / np.arange(1, n + 1)
    return float(weights @ overlap), float(weights @ np.arange(1, n + 1) / n)
