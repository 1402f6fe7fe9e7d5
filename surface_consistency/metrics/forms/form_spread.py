"""Spread of accuracy between the best and the worst form, observed and expected by chance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from surface_consistency.metrics._groups import (
    check_frame,
    group_name,
    group_positions,
    grouping_columns,
)
from surface_consistency.metrics._inputs import MISSING, Floats, verdict_codes, warn_unscored
from surface_consistency.metrics.comparison.equality import equality_test
from surface_consistency.metrics.forms._facts import check_unique_forms, fact_codes
from surface_consistency.metrics.uncertainty.bootstrap import cluster_sums
from surface_consistency.metrics.uncertainty.intervals import (
    effective_number,
    enough_clusters,
    too_few_clusters,
)

_SPREAD = (
    *("n_items", "n_forms", "n_incomplete", "n_clusters", "not_inferred"),
    *("worst", "worst_accuracy", "best", "best_accuracy", "spread", "spread_null"),
    *("cochran_q", "df", "p_value"),
)
_COUNTED = ("n_right", "n_items", "share", "share_independent")


@dataclass(frozen=True, slots=True)
class _Complete:
    """Correctness labels of the facts that have one in every form."""

    right: Floats
    """Shape `(n_items, n_forms)`."""
    forms: list[object]
    clusters: np.ndarray
    n_incomplete: int


def form_spread_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = (),
    item: str = "item",
    form: str = "form",
    score: str = "correct",
    cluster: str | None = None,
) -> pd.DataFrame:
    """Return the spread of accuracy between forms, on the facts with a label in every form.

    Args:
        frame: One row per fact and form, with the columns named below.
        by: Columns of the groups.
        item: Column of the fact.
        form: Column of the form.
        score: Column of correctness labels: True or False, 1 or 0, None or NaN.
        cluster: Column of the clusters; None makes each fact a cluster.

    Returns:
        One row per group: the columns `by`; n_items (with a label in every form), n_forms,
        n_incomplete (excluded facts), n_clusters, not_inferred; worst and best, the forms with the
        lowest and the highest accuracy, worst_accuracy and best_accuracy; spread, their difference;
        spread_null, the expected difference if forms had no effect; cochran_q with df and p_value,
        the test that all forms have the same accuracy. NaN if no fact has a label in every form.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        ValueError: If the frame is empty, a form occurs twice for a fact, a fact belongs to two
            clusters, an id is missing, or a label is not binary.

    Notes:
        Even if forms have no effect, the spread increases with the number of forms and decreases
        with the number of facts. Therefore compare it with spread_null, for which the forms are
        permuted within each cluster, in the same way for all its facts. The totals of forms then
        have equal variances and covariances. So the null spread is the expected range of as many
        normal variables, and the test is Cochran's Q of cluster totals (`equality_test`). Neither
        detects flips in opposite directions that cancel.

    References:
        W. G. Cochran, Biometrika 37, 1950; M. Sclar et al., arXiv 2310.11324 (spread); L. H. C.
        Tippett, Biometrika 17, 1925 (expected range).

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"item": [1, 1, 2, 2, 3, 3, 4, 4], "form": ["a", "b"] * 4,
        ...      "correct": [1, 0, 1, 0, 1, 1, 1, 0]})
        >>> form_spread_by(frame)[["worst", "best", "spread", "cochran_q"]].values.tolist()
        [['b', 'a', 0.75, 3.0]]
    """
    keys = grouping_columns(by, _SPREAD)
    rows = [
        dict(zip(keys, key, strict=True)) | _spread(group)
        for key, group in _complete_groups(frame, keys, item, form, score, cluster).items()
    ]
    return pd.DataFrame(rows, columns=[*keys, *_SPREAD])


def correct_counts_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = (),
    item: str = "item",
    form: str = "form",
    score: str = "correct",
) -> pd.DataFrame:
    """Return the number of facts per number of forms in which they are correct.

    Args:
        frame: As for `form_spread_by`.
        by: Columns of the groups.
        item: Column of the fact.
        form: Column of the form.
        score: Column of correctness labels.

    Returns:
        One row per group and number: the columns `by`; n_right, the number of correct forms, from 0
        to the number of forms; n_items, the number of such facts among those with a label in every
        form; share, their proportion; and share_independent, the proportion expected if each form
        were correct with its own accuracy, independently of the fact.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        ValueError: As for `form_spread_by`.

    Notes:
        For independent forms with different accuracies the number of correct forms has the
        Poisson-binomial distribution. A group in which no fact has a label in every form has no
        row.

    References:
        Y. H. Wang, Statistica Sinica 3, 1993 (Poisson-binomial distribution).

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"item": [1, 1, 2, 2], "form": ["a", "b"] * 2, "correct": [1, 1, 0, 0]})
        >>> correct_counts_by(frame)[["n_right", "share", "share_independent"]].values.tolist()
        [[0.0, 0.5, 0.25], [1.0, 0.0, 0.5], [2.0, 0.5, 0.25]]
    """
    keys = grouping_columns(by, _COUNTED)
    rows = []
    for key, group in _complete_groups(frame, keys, item, form, score, None).items():
        n_items, n_forms = group.right.shape
        counts = np.bincount(group.right.sum(axis=1).astype(np.int64), minlength=n_forms + 1)
        expected = np.ones(1)
        for accuracy in group.right.mean(axis=0) if n_items else ():
            expected = np.convolve(expected, [1.0 - accuracy, accuracy])
        labels = dict(zip(keys, key, strict=True))
        rows += [
            labels | dict(zip(_COUNTED, (n_right, int(n), n / n_items, chance), strict=True))
            for n_right, (n, chance) in enumerate(zip(counts, expected, strict=n_items > 0))
            if n_items
        ]
    return pd.DataFrame(rows, columns=[*keys, *_COUNTED])


def _complete_groups(
    frame: pd.DataFrame, keys: list[str], item: str, form: str, score: str, cluster: str | None
) -> dict[tuple[object, ...], _Complete]:
    """Arrange the labels of each group by fact and form, and return the complete facts."""
    check_frame(
        frame,
        [*dict.fromkeys([*keys, item, form, score, cluster or item])],
        options="by, item, form, score or cluster",
        row="form",
    )
    codes = verdict_codes(frame[score].array, score)
    warn_unscored(int(np.count_nonzero(codes == MISSING)), codes.size, what="forms", stacklevel=3)
    numbers, clusters = fact_codes(frame, [item], cluster)
    groups = {}
    for key, where in group_positions(frame, keys).items():
        check_unique_forms(frame, where, numbers, [item, form], group_name(keys, key))
        facts = pd.factorize(numbers[where])[0]
        forms, names = pd.factorize(frame[form].iloc[where], use_na_sentinel=False)
        cells = np.full((int(facts.max()) + 1, len(names)), MISSING, dtype=np.int8)
        cells[facts, forms] = codes[where]
        is_complete = (cells != MISSING).all(axis=1)
        of_fact = np.empty(len(cells), dtype=np.int64)
        of_fact[facts] = clusters[where]
        groups[key] = _Complete(
            cells[is_complete].astype(np.float64),
            list(names),
            of_fact[is_complete],
            int(np.count_nonzero(~is_complete)),
        )
    return groups


def _spread(group: _Complete) -> dict[str, object]:
    """Return the row of one group."""
    n_items, n_forms = group.right.shape
    row: dict[str, object] = {
        "n_items": n_items,
        "n_forms": n_forms,
        "n_incomplete": group.n_incomplete,
        "n_clusters": 0,
        "not_inferred": "no fact has a correctness label in every form",
    }
    if not n_items:
        return row
    accuracies, totals = group.right.mean(axis=0), cluster_sums(group.right, group.clusters)
    low, high = int(accuracies.argmin()), int(accuracies.argmax())
    row |= {
        "n_clusters": len(totals),
        "not_inferred": "",
        "worst": group.forms[low],
        "worst_accuracy": float(accuracies[low]),
        "best": group.forms[high],
        "best_accuracy": float(accuracies[high]),
        "spread": float(accuracies[high] - accuracies[low]),
    }
    if n_forms < 2:
        return row | {"not_inferred": "only one form"}
    sizes = np.bincount(np.unique(group.clusters, return_inverse=True)[1]).astype(np.float64)
    n_effective = float(effective_number(sizes))
    if not enough_clusters(n_effective):
        return row | {"not_inferred": too_few_clusters(n_effective)}
    around = totals - totals.mean(axis=1, keepdims=True)
    variance = float((around**2).sum()) / (n_forms - 1)
    row |= {"spread_null": expected_range(n_forms) * math.sqrt(variance) / n_items}
    if variance == 0.0:
        return row | {"not_inferred": "no fact flips between its forms"}
    test = equality_test(totals, sizes=sizes, is_exchangeable=True)
    return row | {"cochran_q": test["statistic"], "df": test["df"][0], "p_value": test["p_value"]}


def expected_range(n: int) -> float:
    """Return the expected range of n independent standard normal variables.

    Args:
        n: Number of variables, at least 1.

    Returns:
        The expectation; 0 if n is 1.

    References:
        L. H. C. Tippett, Biometrika 17, 1925, equation 9.

    Examples:
        >>> round(expected_range(2), 4), round(expected_range(10), 3)
        (1.1284, 3.078)
    """
    from scipy.special import ndtr

    below = ndtr(np.linspace(-9.0, 9.0, 3601))
    return float(np.trapezoid(1.0 - below**n - (1.0 - below) ** n, dx=0.005))
