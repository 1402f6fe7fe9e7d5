"""Audit of forgetting for every group of a tidy frame."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.checks import check_confidence, check_n_resamples
from surface_consistency.metrics._shared.frames import (
    check_frame,
    checked_seed,
    cluster_codes,
    grouping_columns,
)
from surface_consistency.metrics._shared.group_intervals import (
    cluster_sums,
    group_values,
    value_columns,
)
from surface_consistency.metrics._shared.groups import group_positions, group_seed
from surface_consistency.metrics._shared.undefined import warn_undefined_groups
from surface_consistency.metrics._shared.verdicts import MissingPolicy, warn_unscored
from surface_consistency.metrics.forgetting._fact_counts import (
    FactCounts,
    fact_counts,
    forgetting_of_totals,
)
from surface_consistency.metrics.forgetting.contamination import contamination_flags
from surface_consistency.metrics.forgetting.forgetting_rates import (
    DELETION_RATES,
    FULL_RATES,
    FULL_TRACE_RATES,
    TRACE_RATES,
)
from surface_consistency.metrics.paired._clustered_statistic import (
    TEST_COLUMNS,
    PairedTest,
    check_test,
    run_test,
)
from surface_consistency.metrics.paired.rates import CountRatio

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["forgetting_by"]

_CELLS = ("both", "first_only", "second_only", "neither")
_SIZES = ("n", "n_clusters", "n_missing", "n_undefined")


def forgetting_by(
    frame: "pd.DataFrame",
    *,
    by: str | Sequence[str] = (),
    del_on: str = "first_correct",
    del_off: str = "second_correct",
    full: str | None = None,
    has_gold: str | None = None,
    cluster: str | None = "fact_id",
    test: PairedTest = "auto",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    missing: MissingPolicy = "drop",
) -> "pd.DataFrame":
    """Compute L, R, I and A of each group, with cluster-bootstrap intervals and McNemar's test.

    Args:
        frame: One row a deleted fact under one prompt, with the columns named below.
        by: Columns that make the groups, such as variant; none gives one row for all.
        del_on: Column of verdicts with the fact deleted and retrieval on.
        del_off: Column of verdicts with the fact deleted and retrieval off.
        full: Column of verdicts with the database whole; None where it was not asked.
        has_gold: Column that says whether a retained candidate was gold-equivalent; None without
            traces.
        cluster: Column of what is resampled as a whole: the fact, since it stands under several
            prompts; None takes each row for a cluster of its own.
        test: Form of the test of DEL-ON against DEL-OFF, as in `paired_by`.
        confidence: Nominal coverage of the intervals, in (0, 1).
        n_resamples: Number of resamples of each group; all rates of a group share them.
        seed: Seed of the resampling, at least 0.
        missing: "drop" leaves out rows that lack a value, with a count in `n_missing` and an
            `UnscoredWarning`; "raise" refuses them.

    Returns:
        One row a group, sorted by label: the columns `by`; both (a), first_only (b), second_only
        (c), neither (d); artifacts (with `has_gold`), full_correct and full_flag (with `full`, see
        `contamination_flags`); n, n_clusters, n_missing, n_undefined; `<rate>`, `<rate>_low`,
        `<rate>_high` for leakage, retrieval_mediated, interference, del_on_accuracy, and as far as
        they are known artifact_rate, full_accuracy and the rates given FULL; mcnemar_statistic,
        mcnemar_p_value, mcnemar_method. Rates are fractions.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame.
        TypeError: When `frame` is no DataFrame, or `seed` or `n_resamples` no integer.
        ValueError: When the frame is empty, a verdict is not binary or (under "raise") missing, a
            cluster id is missing, `test` is unknown, or an option is out of range.

    Notes:
        Undefined rates and the bounds of a group with a single cluster are NaN; one
        `UndefinedMetricWarning` names them all; the test of a group without facts is NaN as well.
        Where no fact leaks, the interval of L has no width: see `wilson_interval`.

    References:
        arXiv 2607.00605, tables 5 and 6, figures 3, 4 and 7, appendix D.1.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"fact_id": np.arange(120) // 2, "variant": ["Base", "Noise"] * 60,
        ...      "full": 1, "first_correct": [0, 1] * 60, "second_correct": 0})
        >>> rows = forgetting_by(frame, by="variant", full="full", n_resamples=500)
        >>> rows[["variant", "leakage", "retrieval_mediated", "full_flag"]].values.tolist()
        [['Base', 0.0, 0.0, ''], ['Noise', 0.0, 1.0, 'full_equals_del_on']]
    """
    import pandas as pd

    rates = _rates(full is not None, has_gold is not None)
    columns = _columns(rates, full is not None, has_gold is not None)
    keys = grouping_columns(by, columns)
    check_confidence(confidence)
    n_resamples, seed = check_n_resamples(n_resamples), checked_seed(seed)
    check_test(test)
    needed = [*keys, del_on, del_off, *filter(None, (full, has_gold, cluster))]
    check_frame(frame, needed, options="by, del_on, del_off, full, has_gold or cluster", row="fact")
    facts = fact_counts(
        frame[del_on].array,
        frame[del_off].array,
        None if full is None else frame[full].array,
        None if has_gold is None else frame[has_gold].array,
        missing=missing,
        names=(del_on, del_off, full or "", has_gold or ""),
    )
    clusters = cluster_codes(frame, cluster)
    n_missing = int(np.count_nonzero(~facts.is_scored))
    warn_unscored(n_missing, len(frame), what="facts", stacklevel=2)
    rows = []
    for key, positions in group_positions(frame, keys).items():
        scored = positions[facts.is_scored[positions]]
        counts = cluster_sums(facts.counts[scored], clusters[scored])
        values = group_values(
            counts,
            rates,
            confidence=confidence,
            n_resamples=n_resamples,
            method="percentile",
            rng=np.random.default_rng(group_seed(seed, keys, key)),
        )
        row: dict[str, object] = dict(zip(keys, key, strict=True)) | _counted(counts, facts)
        row |= {"n_missing": len(positions) - len(scored)} | value_columns(values)
        tested = run_test(counts[:, :4], test)
        rows.append(row | dict(zip(TEST_COLUMNS, tested, strict=True)))
    warn_undefined_groups(
        rows, keys, rates, others={"mcnemar_p_value": f"{test} test"}, stacklevel=2
    )
    return pd.DataFrame(rows, columns=[*keys, *columns])


def _rates(has_full: bool, has_trace: bool) -> dict[str, CountRatio]:
    """Return the rates that what was given is enough for."""
    return {
        **DELETION_RATES,
        **(TRACE_RATES if has_trace else {}),
        **(FULL_RATES if has_full else {}),
        **(FULL_TRACE_RATES if has_full and has_trace else {}),
    }


def _columns(rates: Mapping[str, CountRatio], has_full: bool, has_trace: bool) -> list[str]:
    """Return the columns of the result that are not grouping columns, in order."""
    counts = [*_CELLS, *(["artifacts"] if has_trace else [])]
    counts += ["full_correct", "full_flag"] if has_full else []
    bounds = [column for rate in rates for column in (rate, f"{rate}_low", f"{rate}_high")]
    return [*counts, *_SIZES, *bounds, *TEST_COLUMNS]


def _counted(counts: npt.NDArray[np.float64], facts: FactCounts) -> dict[str, object]:
    """Return the counts of a group by column name."""
    totals = forgetting_of_totals(
        counts.sum(axis=0), has_full=facts.has_full, has_trace=facts.has_trace
    )
    row: dict[str, object] = dict(zip(_CELLS, totals.table.counts, strict=True))
    row |= {"n": totals.n, "n_clusters": len(counts), "artifacts": totals.artifacts}
    row["full_correct"] = totals.full_correct
    if totals.full_correct is not None:
        row["full_flag"] = _flag(
            totals.full_correct, totals.table.both + totals.table.first_only, totals.n
        )
    return row


def _flag(full_correct: int, del_on_correct: int, n: int) -> str:
    """Return the flag of a group; none for one without facts."""
    if n == 0:
        return ""
    return str(contamination_flags([full_correct], [del_on_correct], n=[n])[0])
