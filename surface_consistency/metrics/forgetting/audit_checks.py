"""Checks of an audit of forgetting: contaminated cells, and consistency of rates with counts.

FULL is the state with the complete database; DEL-ON and DEL-OFF are those with the fact deleted and
retrieval on or off. If retrieval uses another database than the audited one, FULL accuracy is near
zero; or FULL equals DEL-ON, because a fact that was never in the database cannot be deleted.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics._groups import check_frame, grouping_columns
from surface_consistency.metrics._inputs import Integers, check_count, check_equal_lengths
from surface_consistency.metrics.paired.paired_tables import PairedTable, table_of

_RESULTS = (
    *("n", "n_cells", "n_near_zero", "n_equal", "n_flagged"),
    *("full_accuracy", "del_on_accuracy", "is_contaminated"),
)
_CLEAN, _NEAR_ZERO, _EQUAL, _BOTH = "", "full_near_zero", "full_equals_del_on", "both"


def contamination_flags(
    full_correct: npt.ArrayLike,
    del_on_correct: npt.ArrayLike,
    *,
    n: npt.ArrayLike,
    near_zero: float = 0.05,
) -> npt.NDArray[np.str_]:
    """Flag cells in which FULL accuracy is near zero or equals DEL-ON accuracy.

    Args:
        full_correct: Number of facts correct under FULL in each cell, shape `(n_cells,)`.
        del_on_correct: Number of facts correct under DEL-ON in each cell.
        n: Number of facts in each cell.
        near_zero: Maximum FULL accuracy that counts as near zero, in [0, 1).

    Returns:
        For each cell "" (no flag), "full_near_zero", "full_equals_del_on" or "both".

    Raises:
        TypeError: If a count is not an integer.
        ValueError: If lengths differ, a cell has no facts, a count is negative or exceeds `n`, or
            `near_zero` is out of range.

    Notes:
        A flag is a reason to inspect a cell, not a proof. A weak model can have a low FULL
        accuracy, and in a small cell the two counts may be equal by chance. To find facts with
        equal correctness before and after deletion use the labels, not the counts: see
        `paired_table(full, del_on).flip_rate`.

    References:
        arXiv 2607.00605, table 5: three of its thirteen databases, 2,880 of 12,228 pairs, were
        scored with the index of another database and are flagged here in all their cells.

    Examples:
        >>> contamination_flags([58, 1, 0], [8, 1, 0], n=[100, 100, 200]).tolist()
        ['', 'both', 'both']
        >>> contamination_flags([4, 40], [0, 40], n=[100, 100]).tolist()
        ['full_near_zero', 'full_equals_del_on']
    """
    if not 0.0 <= near_zero < 1.0:
        raise ValueError(f"near_zero must be in [0, 1), such as 0.05; got {near_zero!r}")
    counts = [
        _counts(values, name)
        for name, values in (
            ("full_correct", full_correct),
            ("del_on_correct", del_on_correct),
            ("n", n),
        )
    ]
    full, del_on, facts = counts
    check_equal_lengths(full_correct=full.size, del_on_correct=del_on.size, n=facts.size)
    if (facts == 0).any():
        raise ValueError(f"n[{int(np.argmax(facts == 0))}] is 0: a cell must contain facts")
    for name, values in (("full_correct", full), ("del_on_correct", del_on)):
        if (values > facts).any():
            cell = int(np.argmax(values > facts))
            raise ValueError(
                f"{name}[{cell}] must not exceed n; got {values[cell]} of {facts[cell]}"
            )
    low, equal = full <= near_zero * facts, full == del_on
    return np.select([low & equal, low, equal], [_BOTH, _NEAR_ZERO, _EQUAL], default=_CLEAN)


def contamination_by(
    frame: pd.DataFrame,
    *,
    by: str | Sequence[str] = ("domain", "topology"),
    full_correct: str = "full_correct",
    del_on_correct: str = "del_on_correct",
    n: str = "n",
    near_zero: float = 0.05,
) -> pd.DataFrame:
    """Find databases of an audit that may be contaminated: all of their cells are flagged.

    Args:
        frame: One row per cell, such as a database under one prompt style.
        by: Columns that identify a database.
        full_correct: Column of the number of facts correct under FULL.
        del_on_correct: Column of the number of facts correct under DEL-ON.
        n: Column of the number of facts.
        near_zero: Maximum FULL accuracy that counts as near zero, in [0, 1).

    Returns:
        One row per database, sorted by label, with the columns `by`, n, n_cells, n_near_zero,
        n_equal, full_accuracy, del_on_accuracy and is_contaminated, which is True if every cell is
        flagged.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        TypeError: If `frame` is not a DataFrame, or a count is not an integer.
        ValueError: If the frame or `by` is empty, or `contamination_flags` rejects the counts.

    Notes:
        All cells must be flagged, so that a weak prompt style alone does not mark a database. For a
        stricter rule use the counts of flagged cells.

    References:
        arXiv 2607.00605, table 5; see `contamination_flags`.

    Examples:
        >>> import pandas as pd
        >>> cells = pd.DataFrame(
        ...     {"domain": "sports", "topology": ["Base", "Base", "Noise", "Noise"],
        ...      "n": [100, 100, 160, 160], "full_correct": [1, 1, 43, 74],
        ...      "del_on_correct": [1, 1, 6, 9]})
        >>> rows = contamination_by(cells)
        >>> rows[["topology", "full_accuracy", "is_contaminated"]].values.tolist()
        [['Base', 0.01, True], ['Noise', 0.365625, False]]
    """
    keys = grouping_columns(by, _RESULTS)
    if not keys:
        raise ValueError("by must name the columns that identify a database; it is empty")
    needed = [*keys, full_correct, del_on_correct, n]
    check_frame(frame, needed, options="by, full_correct, del_on_correct or n", row="cell")
    flags = contamination_flags(
        frame[full_correct].to_numpy(),
        frame[del_on_correct].to_numpy(),
        n=frame[n].to_numpy(),
        near_zero=near_zero,
    )
    cells = frame[keys].assign(
        n=frame[n],
        n_cells=1,
        n_near_zero=np.isin(flags, (_NEAR_ZERO, _BOTH)).astype(int),
        n_equal=np.isin(flags, (_EQUAL, _BOTH)).astype(int),
        n_flagged=(flags != _CLEAN).astype(int),
        full_accuracy=frame[full_correct],
        del_on_accuracy=frame[del_on_correct],
    )
    rows = cells.groupby(keys, sort=True, dropna=False).sum().reset_index()
    rows["full_accuracy"] /= rows["n"]
    rows["del_on_accuracy"] /= rows["n"]
    rows["is_contaminated"] = rows.pop("n_flagged") == rows["n_cells"]
    return rows


def _counts(values: npt.ArrayLike, name: str) -> Integers:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, one value per cell; got {array.shape}")
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} must be integer counts; got dtype {array.dtype}")
    if (array < 0).any():
        cell = int(np.argmax(array < 0))
        raise ValueError(f"{name}[{cell}] must be a count of at least 0; got {array[cell]}")
    return array.astype(np.int64)


# Tolerance for rates in full precision: rounding errors of a division and of its printing.
_FULL_PRECISION = 1e-9
# With more candidates than this, more than one table is possible.
_MAX_CANDIDATES = 10_000


def recover_table(
    *, n: int, del_on: float, leakage: float, retrieval_mediated: float, decimals: int | None = None
) -> PairedTable:
    """Return the paired table (a, b, c, d) from the rates of an audit of forgetting.

    b = n R, a = n p(DEL-ON) - b, c = n L - a, d = n - a - b - c, each an integer.

    Args:
        n: Number of facts queried under both DEL-ON and DEL-OFF.
        del_on: p(DEL-ON), proportion correct under DEL-ON, in [0, 1].
        leakage: L = p(DEL-OFF), proportion correct under DEL-OFF, in [0, 1].
        retrieval_mediated: R, proportion correct under DEL-ON and incorrect under DEL-OFF, in
            [0, 1].
        decimals: Number of decimals to which the rates were rounded; None for rates in full
            precision.

    Returns:
        The table, DEL-ON first: `both` is a, `first_only` b, `second_only` c, `neither` d.

    Raises:
        TypeError: If `n` or `decimals` is not an integer.
        ValueError: If a rate is not in [0, 1]; if no count divided by `n` rounds to a rate, or a
            cell would be negative, so that the rates are not of the same facts; or if several
            tables give these rates, so that more decimals are needed.

    Notes:
        Rates rounded half up, half down or half to even are accepted. With d decimals the table is
        unique up to n = 10^d - 1. The rates must come from the same labels. Exact match for one and
        containment for another may also give integer counts, which are meaningless.

    References:
        arXiv 2607.00605, proposition C.2, eq. 3.

    Examples:
        >>> recover_table(n=160, del_on=0.056, leakage=0.013, retrieval_mediated=0.044, decimals=3)
        PairedTable(both=2, first_only=7, second_only=0, neither=151)
    """
    n = check_count(n, "n")
    if n == 0:
        raise ValueError("n must be at least 1: a rate of 0 facts is undefined")
    margin = _FULL_PRECISION
    if decimals is not None:
        margin += 0.5 * 10.0 ** -check_count(decimals, "decimals")
    rates = {"del_on": del_on, "leakage": leakage, "retrieval_mediated": retrieval_mediated}
    counts = [_whole_counts(name, rate, n, margin) for name, rate in rates.items()]
    n_candidates = math.prod(len(candidates) for candidates in counts)
    if n_candidates > _MAX_CANDIDATES:
        raise ValueError(
            f"{n_candidates} triples of counts over {n} facts round to these rates: pass more "
            "decimals"
        )
    tables = {
        (on - mediated, mediated, off - on + mediated, n - off - mediated)
        for on in counts[0]
        for off in counts[1]
        for mediated in counts[2]
    }
    possible = sorted(cells for cells in tables if min(cells) >= 0)
    if not possible:
        raise ValueError(
            f"the rates cannot be of the same {n} facts: a, b, c, d would be {min(tables)}; "
            "check that all three come from the same correctness labels"
        )
    if len(possible) > 1:
        raise ValueError(
            f"{len(possible)} tables of {n} facts round to these rates, from {possible[0]} to "
            f"{possible[-1]}: pass more decimals"
        )
    return table_of(possible[0])


def decomposition_residual(
    *, del_on: float, leakage: float, retrieval_mediated: float, interference: float = 0.0
) -> float:
    """Return p(DEL-ON) - (L + R - I), which is 0 for rates of the same facts.

    Args:
        del_on: p(DEL-ON), proportion correct under DEL-ON.
        leakage: L, proportion correct under DEL-OFF.
        retrieval_mediated: R, proportion correct under DEL-ON and incorrect under DEL-OFF.
        interference: I = c/n, proportion incorrect under DEL-ON and correct under DEL-OFF. If it is
            omitted, the result is -c/n: L + R exceeds p(DEL-ON) by c/n.

    Returns:
        The residual, in [-1, 1] for rates of the same facts; 0, up to rounding, if the four rates
        are consistent.

    Raises:
        ValueError: If a rate is not in [0, 1].

    Notes:
        The identity also applies to averages of groups weighted by their numbers of facts.

    References:
        arXiv 2607.00605, proposition C.1, eq. 2.

    Examples:
        >>> residual = decomposition_residual(
        ...     del_on=32 / 599, leakage=152 / 599, retrieval_mediated=7 / 599)
        >>> round(-residual * 599)
        127
    """
    rates = {
        "del_on": del_on,
        "leakage": leakage,
        "retrieval_mediated": retrieval_mediated,
        "interference": interference,
    }
    for name, rate in rates.items():
        _check_rate(name, rate)
    return del_on - (leakage + retrieval_mediated - interference)


def _check_rate(name: str, rate: float) -> None:
    """Raise an error if a rate is not in [0, 1] or is NaN."""
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"{name} must be a rate in [0, 1]; got {rate!r}")


def _whole_counts(name: str, rate: float, n: int, margin: float) -> range:
    """Return the counts whose proportion of n rounds to the rate."""
    _check_rate(name, rate)
    low, high = math.ceil(n * (rate - margin)), math.floor(n * (rate + margin))
    counts = range(max(low, 0), min(high, n) + 1)
    if not counts:
        nearest = round(n * rate)
        raise ValueError(
            f"{name}={rate!r} cannot come from integer counts of {n} facts: the nearest is "
            f"{nearest} of them, {nearest / n:.6g}; check n, and decimals if it is rounded"
        )
    return counts
