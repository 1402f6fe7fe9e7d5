"""Paired metrics, for every group of a tidy frame."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics import _groups, _inputs
from surface_consistency.metrics.paired.mcnemar_tests import (
    TEST_COLUMNS,
    PairedTest,
    check_test,
    run_test,
    tested_columns,
)
from surface_consistency.metrics.paired.paired_tables import PAIRED_RATES, CountRatio
from surface_consistency.metrics.paired.power import design_effect_of
from surface_consistency.metrics.uncertainty.bootstrap import Statistic, cluster_sums
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals

_CELLS = ("both", "first_only", "second_only", "neither")
_COUNTS = (*_CELLS, "n", "n_clusters", "few_clusters", "not_inferred", "n_missing", "n_undefined")
_DIFFERENCE = CountRatio(numerator=(0, -1, 1, 0), denominator=(1, 1, 1, 1))
"""The accuracy difference, for its design effect."""


def paired_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = (),
    first: str = "first_correct",
    second: str = "second_correct",
    cluster: str | None = "item",
    pair: str | None = None,
    repeat: str | None = None,
    rates: Mapping[str, Statistic] = PAIRED_RATES,
    test: PairedTest = "auto",
    intervals: Intervals = DEFAULT_INTERVALS,
    missing: _inputs.MissingPolicy = "drop",
) -> pd.DataFrame:
    """Return the paired metrics of each group, with cluster-robust intervals and tests.

    Args:
        frame: One row per pair, with the columns named below.
        by: Columns of the groups; an empty tuple gives one row for all pairs. If a cell contains a
            list (the categories of a pair), the pair counts once in each of its labels.
        first: Column of correctness labels under the first condition: True or False, 1 or 0, None
            or NaN.
        second: Column of correctness labels under the second condition.
        cluster: Column of dependent rows, such as the fact or the subject; None makes each row a
            separate cluster.
        pair: Column of pair ids, to check that no pair occurs twice in a group. Without it, a
            `DataWarning` counts rows that repeat others, if the columns other than labels,
            groups and clusters identify the rows.
        repeat: Column that numbers repeated answers to the same pair, such as the run; `pair` is
            then required. Each pair counts once: its cells are the expected ones of two answers,
            one per condition, drawn independently from its repeats, and need not be integers. Only
            `test="auto"` is possible.
        rates: Statistics by column name, each a function of summed counts as for
            `cluster_bootstrap`, such as `PAIRED_RATES | {"kappa": kappa_of_counts}`.
        test: Test of equal accuracies. "auto" is the t test of `accuracy_difference` over clusters:
            p is below 1 minus the confidence level exactly if its interval excludes 0. Other names
            are "independent" (the "auto" of `mcnemar`) and the other forms of `mcnemar`, which
            assume independent pairs, and the forms of `clustered_mcnemar`. The interval of the
            accuracy difference is then the one that matches an exact test, and NaN for other tests.
            The column `test` names the test.
        intervals: Options of the intervals. The rates of a group share resamples, and each group
            derives its own seed.
        missing: "drop" excludes pairs without a label, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" raises an error.

    Returns:
        One row per group, sorted by label, with the columns `by`; both, first_only, second_only,
        neither; n (their sum), n_clusters, few_clusters (fewer than 20), not_inferred (why
        intervals and test are NaN; else empty), n_missing, n_undefined (maximum over rates of
        the number of resamples in which the rate is undefined), n_effective_clusters (Kish's
        number, for the first rate; NaN with resamples); `<rate>`, `<rate>_low`, `<rate>_high` for
        each name in `rates`; `<rate>_n` and `<rate>_n_clusters`, the numbers of pairs in the
        denominator of a conditional rate and of their clusters; statistic, p_value, test;
        design_effect, that of the accuracy difference (see `design_effect`; NaN if undefined).
        Rates are fractions, not percentages.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame; the message lists its columns.
        TypeError: If `frame` is not a DataFrame.
        ValueError: If the frame is empty, a label is not binary or (under "raise") missing, a
            cluster id is missing, a pair id occurs twice in a group, a `by` column is named twice
            or like a column of the result, or has empty cells and also a label "none", or an
            option is out of range.

    Notes:
        A pair with an empty list or a missing value in a `by` column is in the group "none", so
        that no pair is lost. A label that is repeated within a pair counts once. If two `by`
        columns contain lists, a pair counts once per combination of labels. Undefined rates are
        NaN. Bounds and test are NaN for a group with fewer than four clusters, or an effective
        number (Kish) below four because one cluster has most pairs. One `UndefinedMetricWarning`
        lists all of these. A group whose pairs have no labels keeps its row. With resampled
        intervals there is no test unless one is named, and `test` is empty. If no pair flips, or
        all do, intervals still have a width: Wilson's interval with clusters as trials. With fewer
        than 20 clusters, intervals have nominal coverage but are wide. The numbers of a group
        depend only on its pairs, the seed and its labels, not on the order of the rows or on other
        groups. With many groups, adjust the p-values for their number by `with_adjusted_p_values`.

    References:
        Nishida et al. 2026, arXiv 2604.21882, section 3.2 and figure 2.

    Examples:
        >>> import pandas as pd
        >>> categories = [["from surnames"], ["from surnames", "from plurals"], ["from plurals"]]
        >>> frame = pd.DataFrame(
        ...     {"item": range(30), "category": categories * 10,
        ...      "first_correct": [1, 0, 1] * 10, "second_correct": [0, 0, 1] * 10})
        >>> rows = paired_by(frame, by="category")
        >>> rows[["category", "both", "first_only", "neither", "n", "flip_rate"]].values.tolist()
        [['from plurals', 10, 0, 10, 20, 0.0], ['from surnames', 0, 10, 10, 20, 0.5]]
    """
    columns = [*_COUNTS, *_groups.rate_columns(rates), *TEST_COLUMNS, "design_effect"]
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise ValueError(f"rates repeats a column of the result: {twice[0]!r}; rename the rate")
    keys = _groups.grouping_columns(by, columns)
    check_test(test)
    if repeat is not None and (pair is None or test != "auto"):
        raise ValueError("repeat needs pair, the column of pair ids, and test='auto'")
    needed = [*keys, first, second, *filter(None, (cluster, pair, repeat))]
    _groups.check_frame(frame, needed, options="by, first, second, cluster or pair")
    cells = _inputs.outcome_cells(
        frame[first].array, frame[second].array, missing=missing, names=(first, second)
    )
    clusters = _groups.cluster_codes(frame, cluster)
    groups = _groups.group_positions(frame, keys)
    pairs = np.arange(len(frame)) if pair is None else pd.factorize(frame[pair])[0]
    if repeat is not None:
        repeats = pd.Series(list(zip(frame[pair], frame[repeat], strict=True)))
        _groups.check_pair_ids(repeats, f"{pair}, {repeat}", keys, groups)
    elif pair is not None:
        _groups.check_pair_ids(frame[pair], pair, keys, groups)
    else:
        _groups.warn_repeated_rows(
            frame, [first, second], [*keys, *filter(None, (cluster,))], stacklevel=2
        )
    _inputs.warn_unscored(int(np.count_nonzero(cells == _inputs.MISSING)), cells.size, stacklevel=2)

    def summed(positions: npt.NDArray[np.intp]) -> tuple[dict[str, object], _inputs.Floats]:
        """Return the counts, the test and the sums per cluster of a group."""
        if repeat is None:
            row, counts = _groups.counted_cells(cells[positions], clusters[positions], _CELLS)
        else:
            row, counts = _repeated(cells[positions], clusters[positions], pairs[positions])
        row |= run_test(counts, test, intervals)
        return row | {"design_effect": design_effect_of(counts, _DIFFERENCE)}, counts

    return _groups.group_frame(
        groups,
        keys,
        rates,
        summed,
        columns=columns,
        intervals=intervals,
        others=tested_columns(test, intervals),
    )


def _repeated(
    cells: _inputs.Codes, clusters: _inputs.Integers, pairs: npt.NDArray[np.intp]
) -> tuple[dict[str, object], _inputs.Floats]:
    """Return the expected cells of a group with repeats by name, and the sums per cluster."""
    scored = cells != _inputs.MISSING
    _, places, numbers = np.unique(pairs[scored], return_index=True, return_inverse=True)
    sizes = np.bincount(numbers)
    one, two = (np.bincount(numbers, np.isin(cells[scored], to)) / sizes for to in ((0, 1), (0, 2)))
    expected = np.column_stack([one * two, one * (1 - two), (1 - one) * two, (1 - one) * (1 - two)])
    sums = cluster_sums(expected, clusters[scored][places])
    row: dict[str, object] = {"n": len(expected), "n_clusters": len(sums)}
    row["n_missing"] = int((~scored).sum())
    return row | dict(zip(_CELLS, sums.sum(axis=0).tolist(), strict=True)), sums
