"""Metrics of many forms of a fact for every group of a tidy frame."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics._groups import (
    bound_columns,
    check_frame,
    cluster_codes,
    column_names,
    group_frame,
    group_name,
    group_positions,
    grouping_columns,
    plain_label,
)
from surface_consistency.metrics._inputs import (
    MISSING,
    Codes,
    Floats,
    Integers,
    MissingPolicy,
    refuse_missing,
    verdict_codes,
    warn_unscored,
)
from surface_consistency.metrics.forms.forms import FormEstimator, fact_sums, form_rates
from surface_consistency.metrics.uncertainty.bootstrap import cluster_sums
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals

_COUNTS = (
    *("n_facts", "n_forms", "n_single", "n_missing"),
    *("n_clusters", "few_clusters", "not_inferred", "n_undefined"),
)


def forms_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = (),
    fact: str | Sequence[str] = "fact_id",
    form: str = "form",
    correct: str = "correct",
    cluster: str | None = None,
    estimator: FormEstimator = "unbiased",
    intervals: Intervals = DEFAULT_INTERVALS,
    missing: MissingPolicy = "drop",
) -> pd.DataFrame:
    """Compute the metrics of `form_consistency` for each group.

    Args:
        frame: One row a fact and form, with the columns named below.
        by: Columns that make the groups, such as the model; list cells as in `paired_by`.
        fact: Column of the fact, or columns that name it together.
        form: Column of the form: a surface, a permutation, a prompt style.
        correct: Column of verdicts: True or False, 1 or 0, None or NaN.
        cluster: Column of what intervals take as a whole, such as the subject; None takes facts.
        estimator: "unbiased" or "plug-in", as in `form_consistency`.
        intervals: How intervals are made; each group derives its own seed.
        missing: "drop" leaves out forms without a verdict, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" refuses them.

    Returns:
        One row a group, sorted by label, with the columns `by`; n_facts, n_forms (of these facts),
        n_single (facts with fewer than two scored forms, left out), n_missing, n_clusters,
        few_clusters (whether they are fewer than 20), not_inferred (why intervals are NaN; empty
        where none is), n_undefined (the most resamples that left any
        metric undefined); and `<metric>`,
        `<metric>_low`, `<metric>_high` for accuracy, all_right, all_wrong, all_agree, consistency,
        form_share and intraclass_correlation.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame; the message lists those seen.
        TypeError: When `frame` is no DataFrame.
        ValueError: When the frame is empty, a form stands twice for a fact within a group, a fact
            belongs to two clusters, an id is missing, a verdict is not binary or (under "raise")
            missing, or an option is out of range.

    Notes:
        Undefined metrics and the bounds of a group with a single cluster are NaN; one
        `UndefinedMetricWarning` names them all. A group in which no fact has two scored forms keeps
        its row. A group's numbers depend on its own rows, the seed and its labels alone.

    References:
        Srikanth, Carpuat and Rudinger, TACL 2024, arXiv 2404.11717.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"fact_id": [1, 1, 1, 2, 2, 2], "form": ["a", "b", "c"] * 2,
        ...      "correct": [1, 1, 0, 0, 0, 0]})
        >>> forms_by(frame)[["n_facts", "n_forms", "consistency"]].round(3).values.tolist()
        [[2.0, 6.0, 0.667]]
    """
    rates = form_rates(estimator)
    columns = [*_COUNTS, *bound_columns(rates)]
    keys, facts = grouping_columns(by, columns), column_names(fact)
    needed = [*keys, *facts, form, correct, *filter(None, (cluster,))]
    check_frame(frame, needed, options="by, fact, form, correct or cluster", row="form")
    codes = verdict_codes(frame[correct].array, correct)
    refuse_missing(codes == MISSING, correct, missing, rows="forms", is_verdict=True)
    fact_codes = _fact_codes(frame, facts)
    form_codes, _ = pd.factorize(frame[form], use_na_sentinel=False)
    clusters = fact_codes if cluster is None else cluster_codes(frame, cluster)
    of_fact = np.empty(int(fact_codes.max()) + 1, dtype=np.int64)
    of_fact[fact_codes] = clusters
    torn = of_fact[fact_codes] != clusters
    if torn.any():
        label = frame.iloc[int(np.argmax(torn))][facts].tolist()
        raise ValueError(f"fact {label} belongs to more than one cluster of column {cluster!r}")
    warn_unscored(int(np.count_nonzero(codes == MISSING)), codes.size, what="forms", stacklevel=2)
    groups = group_positions(frame, keys)
    for key, where in groups.items():
        _check_forms(frame, where, fact_codes, form_codes, [*facts, form], group_name(keys, key))
    return group_frame(
        groups,
        keys,
        rates,
        lambda where: _group(codes[where], fact_codes[where], clusters[where]),
        columns=columns,
        intervals=intervals,
    )


def _fact_codes(frame: pd.DataFrame, facts: list[str]) -> Integers:
    """Number the facts of the rows."""
    for column in facts:
        if frame[column].isna().any():
            row = int(np.argmax(frame[column].isna()))
            raise ValueError(f"column {column!r} names no fact in row {row}: fill it in")
    if len(facts) == 1:
        return cluster_codes(frame, facts[0])
    numbers = frame.groupby(facts, sort=False, observed=True).ngroup()
    return np.asarray(numbers, dtype=np.int64)


def _check_forms(
    frame: pd.DataFrame,
    where: npt.NDArray[np.intp],
    facts: Integers,
    forms: npt.NDArray[np.intp],
    columns: list[str],
    group: str,
) -> None:
    """Refuse a form that stands twice for a fact."""
    joint = facts[where] * (int(forms.max()) + 1) + forms[where]
    _, first, counts = np.unique(joint, return_index=True, return_counts=True)
    if (counts > 1).any():
        row = frame.iloc[int(where[first[np.argmax(counts > 1)]])]
        name = ", ".join(f"{column}={plain_label(row[column])!r}" for column in columns)
        raise ValueError(
            f"{name} stands more than once {group}: drop the duplicates, or add to by or fact what "
            "tells them apart"
        )


def _group(codes: Codes, facts: Integers, clusters: Integers) -> tuple[dict[str, object], Floats]:
    """Return the counts of one group and the sums of its clusters."""
    scored = codes != MISSING
    distinct, first, numbers = np.unique(facts, return_index=True, return_inverse=True)
    n_forms = np.bincount(numbers[scored], minlength=distinct.size)
    n_right = np.bincount(numbers[scored & (codes == 1)], minlength=distinct.size)
    usable = n_forms > 1
    rows = fact_sums(n_forms[usable], n_right[usable])
    sums = cluster_sums(rows, clusters[first][usable])
    counts: dict[str, object] = {
        "n_facts": int(usable.sum()),
        "n_forms": int(n_forms[usable].sum()),
        "n_single": int((~usable).sum()),
        "n_missing": int((~scored).sum()),
        "n_clusters": len(sums),
    }
    return counts, sums
