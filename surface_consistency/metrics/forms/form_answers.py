"""Whether the forms of a fact get the same answer, beside whether they get the same verdict."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from surface_consistency.metrics import _groups
from surface_consistency.metrics._inputs import Floats, Integers
from surface_consistency.metrics.forms._facts import fact_codes, refuse_repeats
from surface_consistency.metrics.forms.variance_shares import squared_totals
from surface_consistency.metrics.paired.paired_tables import CountRatio
from surface_consistency.metrics.uncertainty.bootstrap import cluster_sums, group_values
from surface_consistency.metrics.uncertainty.cluster_bounds import jackknife
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals

_COUNTS = ("n_items", "n_answers", "n_single", "n_missing", "n_clusters", "not_inferred")
_RATES = ("same_answer", "chance", "kappa")


_MEAN_AGREEMENT = CountRatio(numerator=(0, 1), denominator=(1, 0))
"""The agreement of facts over their number."""


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
    """Compute how often two forms of a fact get the same answer, and how often by chance.

    Args:
        frame: One row a fact and form, with the columns named below.
        by: Columns that make the groups.
        item: Column of the fact.
        form: Column of the form.
        answer: Column of what is compared: an answer in normal form, a candidate, an entity. Two
            answers are the same if they are equal; None and NaN are no answer.
        cluster: Column of what intervals take as a whole; None takes facts.
        intervals: How intervals are made.

    Returns:
        One row a group: the columns `by`; n_items (with two answers or more), n_answers of these,
        n_single (facts with fewer, left out), n_missing, n_clusters, not_inferred; same_answer, the
        probability that two random forms of a fact have one answer, a mean over facts; chance, the
        same of two random answers of all; kappa, (same_answer - chance) / (1 - chance), NaN where
        all answers are one; with `_low` and `_high`.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame.
        ValueError: When the frame is empty, a form stands twice for a fact, a fact belongs to two
            clusters, or an id is missing.

    Notes:
        Two different wrong answers agree in their verdicts and not here, so that with one accepted
        answer a fact the agreement of verdicts is never the lower of the two. Who answers all with
        one word has same_answer 1 and no kappa. Answers in other scripts or languages are never
        equal as text: compare candidates or entities there. Published numbers that pool the pairs
        of forms, instead of averaging over facts, differ where facts have unequal numbers of forms.

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
    _groups.check_frame(frame, needed, options="by, fact, form, answer or cluster", row="form")
    answers, _ = pd.factorize(frame[answer])
    facts, clusters = fact_codes(frame, [item], cluster)
    rows = []
    for key, where in _groups.group_positions(frame, keys).items():
        refuse_repeats(frame, where, facts, [item, form], _groups.group_name(keys, key))
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
        row["not_inferred"] = "kappa: all answers are one, or all clusters alike"
    row |= {"same_answer": agreement.value, "chance": chance[0], "kappa": kappa[0]}
    row |= {"same_answer_low": agreement.low, "same_answer_high": agreement.high}
    row |= {"chance_low": max(ends[0, 0], 0.0) if known else math.nan}
    row |= {"chance_high": ends[1, 0], "kappa_low": ends[0, 1], "kappa_high": ends[1, 1]}
    return row


def rank_agreement(first: Sequence[Sequence[object]], second: Sequence[Sequence[object]]) -> Floats:
    """Compute RankC: how alike two forms rank the candidates of each item.

    Args:
        first: The candidates of each item as the first form ranks them, the most probable first.
        second: The same candidates as the second form ranks them.

    Returns:
        RankC of each item, in [0, 1], and its value by chance, shape `(n_items, 2)`.

    Raises:
        ValueError: When there are no items, the sequences differ in length, or the two rankings of
            an item are not of the same candidates.

    Notes:
        Of N candidates the overlap of the first j is weighted by softmax(N, N - 1, ..., 1): the
        first alone weighs .63, so RankC is nearly whether both put the same candidate first. Two
        random rankings have sum_j w_j j / N, which is 1 for one candidate, .63 for two and .16 for
        ten: items with unequal numbers of candidates are to be compared over chance.

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
    """Return RankC of one item, and what is expected of random rankings."""
    n = len(one)
    if not n or set(one) != set(other) or not n == len(other) == len(set(one)):
        raise ValueError(
            f"item {place}: both rankings must hold the same candidates, each once; got "
            f"{list(one)} and {list(other)}"
        )
    weights = np.exp(-np.arange(n, dtype=np.float64))
    weights /= weights.sum()
    where = {candidate: rank for rank, candidate in enumerate(other)}
    # A candidate is among the first j of both from the later of its two ranks on.
    later = np.maximum(np.arange(n), [where[candidate] for candidate in one])
    overlap = np.cumsum(np.bincount(later, minlength=n)) / np.arange(1, n + 1)
    return float(weights @ overlap), float(weights @ np.arange(1, n + 1) / n)
