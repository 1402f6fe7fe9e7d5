"""The rates of an audit of forgetting: as functions of summed counts, and per group of a frame.

Each rate maps an array with ten counts along the last axis to an array without that axis: a, b, c
and d (facts correct under DEL-ON and DEL-OFF, only DEL-ON, only DEL-OFF, neither) and the artifacts
of all facts, then the same five for facts correct under FULL. So the same function applies to one
table, to many resamples, and in `cluster_bootstrap`.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics import _groups
from surface_consistency.metrics._inputs import Floats, MissingPolicy, warn_unscored
from surface_consistency.metrics.forgetting.audit_checks import contamination_flags
from surface_consistency.metrics.forgetting.forgetting import fact_counts
from surface_consistency.metrics.paired import mcnemar_tests
from surface_consistency.metrics.paired.paired_tables import CountRatio
from surface_consistency.metrics.uncertainty.bootstrap import cluster_sums
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals

_NONE = (0, 0, 0, 0, 0)
_FACTS = (1, 1, 1, 1, 0)


def _of_all(*weights: int) -> CountRatio:
    """Return the weighted sum of the five counts of all facts, divided by all facts."""
    return CountRatio(numerator=(*weights, *_NONE), denominator=(*_FACTS, *_NONE))


def _given_full(*weights: int) -> CountRatio:
    """Return the weighted sum of the five counts of facts correct under FULL, divided by them."""
    return CountRatio(numerator=(*_NONE, *weights), denominator=(*_NONE, *_FACTS))


DELETION_RATES: Mapping[str, CountRatio] = MappingProxyType(
    {
        "leakage": _of_all(1, 0, 1, 0, 0),
        "retrieval_mediated": _of_all(0, 1, 0, 0, 0),
        "interference": _of_all(0, 0, 1, 0, 0),
        "del_on_accuracy": _of_all(1, 1, 0, 0, 0),
        "accuracy_difference": _of_all(0, -1, 1, 0, 0),
    }
)
"""L, R, I, p(DEL-ON) and the tested difference L minus p(DEL-ON), which need only two states;
`leakage`, `retrieval_mediated` and `interference` document the first three."""

TRACE_RATES: Mapping[str, CountRatio] = MappingProxyType({"artifact_rate": _of_all(0, 0, 0, 0, 1)})
"""A, which needs retrieval traces."""

FULL_RATES: Mapping[str, CountRatio] = MappingProxyType(
    {
        "full_accuracy": CountRatio(numerator=(*_NONE, *_FACTS), denominator=(*_FACTS, *_NONE)),
        "survival_given_full": _given_full(1, 1, 0, 0, 0),
        "leakage_given_full": _given_full(1, 0, 1, 0, 0),
        "retrieval_mediated_given_full": _given_full(0, 1, 0, 0, 0),
        "interference_given_full": _given_full(0, 0, 1, 0, 0),
    }
)
"""FULL accuracy and the rates given correct under FULL, which need the third state."""

FULL_TRACE_RATES: Mapping[str, CountRatio] = MappingProxyType(
    {"artifact_rate_given_full": _given_full(0, 0, 0, 0, 1)}
)
"""A given correct under FULL, which needs traces and the third state."""


_CELLS = ("both", "first_only", "second_only", "neither")
_SIZES = ("n", "n_clusters", "few_clusters", "not_inferred", "n_missing", "n_undefined")


def forgetting_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = (),
    del_on: str = "first_correct",
    del_off: str = "second_correct",
    full: str | None = None,
    gold_retrieved: str | None = None,
    cluster: str | None = "item",
    test: mcnemar_tests.PairedTest = "auto",
    intervals: Intervals = DEFAULT_INTERVALS,
    missing: MissingPolicy = "drop",
) -> pd.DataFrame:
    """Return L, R, I and A of each group, with cluster-robust intervals and a test.

    Args:
        frame: One row per deleted fact and prompt, with the columns named below.
        by: Columns of the groups, such as topology; an empty tuple gives one row for all.
        del_on: Column of correctness labels with the fact deleted and retrieval on.
        del_off: Column of labels with the fact deleted and retrieval off.
        full: Column of labels with the complete database; None if it was not evaluated.
        gold_retrieved: Column with True if a retained candidate was gold-equivalent, else False;
            None without traces.
        cluster: Column of the clusters: the fact, because it occurs under several prompts; None
            makes each row a separate cluster.
        test: Form of the test of DEL-ON against DEL-OFF, as in `paired_by`.
        intervals: Options of the intervals; each group derives its own seed.
        missing: "drop" excludes rows with a missing value, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" raises an error.

    Returns:
        One row per group, sorted by label: the columns `by`; both (a), first_only (b), second_only
        (c), neither (d); artifacts (with `gold_retrieved`), full_correct and full_flag (with
        `full`, see `contamination_flags`); n, n_clusters, few_clusters (fewer than 20),
        not_inferred (why intervals and test are NaN), n_missing, n_undefined; `<rate>`,
        `<rate>_low`, `<rate>_high` for leakage, retrieval_mediated, interference, del_on_accuracy,
        accuracy_difference (L minus p(DEL-ON), which is tested), and if available artifact_rate and
        full_accuracy. With `full` it also has the rates given correct under FULL,
        `<rate>_given_full` (survival_given_full is that of p(DEL-ON)), with `<rate>_given_full_n`
        and `<rate>_given_full_n_clusters`, the numbers of prompts correct under FULL and of their
        clusters; n_effective_clusters, as in `paired_by`; statistic, p_value, test. Rates are
        fractions.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        TypeError: If `frame` is not a DataFrame.
        ValueError: If the frame is empty, a label is not binary or (under "raise") missing, a
            cluster id is missing, `test` is unknown, or an option is out of range.

    Notes:
        Undefined rates are NaN, and so are the bounds and the test of a group with too few
        clusters, as in `paired_by`; one `UndefinedMetricWarning` lists them all. If no fact leaks,
        the interval of L is Wilson's with clusters as trials. A `DataWarning` reports the number of
        rows that repeat others, as in `paired_by`.

    References:
        arXiv 2607.00605, tables 5 and 6, figures 3, 4 and 7, appendix D.1.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"item": np.arange(120) // 2, "topology": ["Base", "Noise"] * 60,
        ...      "full": 1, "first_correct": [0, 1] * 60, "second_correct": 0})
        >>> rows = forgetting_by(frame, by="topology", full="full")
        >>> rows[["topology", "leakage", "retrieval_mediated", "full_flag"]].values.tolist()
        [['Base', 0.0, 0.0, ''], ['Noise', 0.0, 1.0, 'full_equals_del_on']]
    """
    has_full = full is not None
    has_trace = gold_retrieved is not None
    rates = {
        **DELETION_RATES,
        **(TRACE_RATES if has_trace else {}),
        **(FULL_RATES if has_full else {}),
        **(FULL_TRACE_RATES if has_full and has_trace else {}),
    }
    columns = _columns(rates, full is not None, gold_retrieved is not None)
    keys = _groups.grouping_columns(by, columns)
    mcnemar_tests.check_test(test)
    needed = [*keys, del_on, del_off, *filter(None, (full, gold_retrieved, cluster))]
    _groups.check_frame(
        frame, needed, options="by, del_on, del_off, full, gold_retrieved or cluster", row="fact"
    )
    facts, is_scored = fact_counts(
        frame[del_on].array,
        frame[del_off].array,
        None if full is None else frame[full].array,
        None if gold_retrieved is None else frame[gold_retrieved].array,
        missing=missing,
        names=(del_on, del_off, full or "", gold_retrieved or ""),
    )
    clusters = _groups.cluster_codes(frame, cluster)
    verdicts = [name for name in (del_on, del_off, full, gold_retrieved) if name is not None]
    _groups.warn_repeated_rows(frame, verdicts, [*keys, *filter(None, (cluster,))], stacklevel=2)
    n_missing = int(np.count_nonzero(~is_scored))
    warn_unscored(n_missing, len(frame), what="facts", stacklevel=2)

    def summed(positions: npt.NDArray[np.intp]) -> tuple[dict[str, object], Floats]:
        """Return the counts, the test and the sums per cluster of a group."""
        scored = positions[is_scored[positions]]
        counts = cluster_sums(facts[scored], clusters[scored])
        totals = counts.sum(axis=0).astype(int).tolist()
        row: dict[str, object] = dict(zip(_CELLS, totals, strict=False))
        n, full_correct = sum(totals[:4]), sum(totals[5:9])
        row |= {"n": n, "n_clusters": len(counts), "n_missing": len(positions) - len(scored)}
        row |= {"artifacts": totals[4], "full_correct": full_correct, "full_flag": ""}
        if n:
            flags = contamination_flags([full_correct], [sum(totals[:2])], n=[n])
            row["full_flag"] = str(flags[0])
        return row | mcnemar_tests.run_test(counts[:, :4], test, intervals), counts

    return _groups.group_frame(
        _groups.group_positions(frame, keys),
        keys,
        rates,
        summed,
        columns=columns,
        intervals=intervals,
        others=mcnemar_tests.tested_columns(test, intervals),
    )


def _columns(rates: Mapping[str, CountRatio], has_full: bool, has_trace: bool) -> list[str]:
    counts = [*_CELLS, *(["artifacts"] if has_trace else [])]
    counts += ["full_correct", "full_flag"] if has_full else []
    return [*counts, *_SIZES, *_groups.rate_columns(rates), *mcnemar_tests.TEST_COLUMNS]
