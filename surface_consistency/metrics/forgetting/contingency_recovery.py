"""From published rates back to the counts of the paired table, where whole counts can give them."""

import math

from surface_consistency.metrics._shared.checks import check_count
from surface_consistency.metrics.paired.table import PairedTable

__all__ = ["decomposition_residual", "recover_table"]

# Rates printed in full carry the rounding of a division and of its printing.
_FULL_PRECISION = 1e-9
# More candidates than this cannot leave a single table.
_MAX_CANDIDATES = 10_000


def recover_table(
    *,
    n: int,
    del_on: float,
    leakage: float,
    retrieval_mediated: float,
    decimals: int | None = None,
) -> PairedTable:
    """Recover a, b, c and d from the rates of an audit of forgetting.

    b = n R, a = n p(DEL-ON) - b, c = n L - a, d = n - a - b - c, each a whole number.

    Args:
        n: Number of facts asked under both DEL-ON and DEL-OFF.
        del_on: p(DEL-ON), share right under DEL-ON, in [0, 1].
        leakage: L = p(DEL-OFF), share right under DEL-OFF, in [0, 1].
        retrieval_mediated: R, share right under DEL-ON and wrong under DEL-OFF, in [0, 1].
        decimals: Number of decimals to which the rates were rounded; None for rates in full
            precision.

    Returns:
        The table, DEL-ON first: `both` is a, `first_only` b, `second_only` c, `neither` d.

    Raises:
        TypeError: When `n` or `decimals` is not an integer.
        ValueError: When a rate is not in [0, 1]; when no whole count over `n` rounds to a rate, or
            the counts would make a cell negative, so that the rates cannot belong together; or when
            several tables round to these rates, so that more decimals are needed.

    Notes:
        A rate rounded half up, half down or half to even is accepted. With d decimals the table is
        unique up to n = 10^d - 1. The rates must come from the same verdicts: exact match for one
        and containment for another may give whole counts all the same, which mean nothing.

    References:
        arXiv 2607.00605, proposition C.2, eq. 3.

    Examples:
        >>> recover_table(n=160, del_on=0.056, leakage=0.013, retrieval_mediated=0.044, decimals=3)
        PairedTable(both=2, first_only=7, second_only=0, neither=151)
    """
    n = check_count(n, "n")
    if n == 0:
        raise ValueError("n must be at least 1: no rate of no facts is defined")
    margin = _FULL_PRECISION
    if decimals is not None:
        margin += 0.5 * 10.0 ** -check_count(decimals, "decimals")
    rates = {"del_on": del_on, "leakage": leakage, "retrieval_mediated": retrieval_mediated}
    counts = [_whole_counts(name, rate, n, margin) for name, rate in rates.items()]
    n_candidates = math.prod(len(candidates) for candidates in counts)
    if n_candidates > _MAX_CANDIDATES:
        raise ValueError(
            f"{n_candidates} triples of counts over {n} facts round to these rates: give more "
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
            f"the rates cannot belong to the same {n} facts: a, b, c, d would be {min(tables)}; "
            "check that all three come from the same verdicts"
        )
    if len(possible) > 1:
        raise ValueError(
            f"{len(possible)} tables of {n} facts round to these rates, from {possible[0]} to "
            f"{possible[-1]}: give more decimals"
        )
    both, first_only, second_only, neither = possible[0]
    return PairedTable(both=both, first_only=first_only, second_only=second_only, neither=neither)


def decomposition_residual(
    *, del_on: float, leakage: float, retrieval_mediated: float, interference: float = 0.0
) -> float:
    """Return p(DEL-ON) - (L + R - I), which is 0 for rates of the same facts.

    Args:
        del_on: p(DEL-ON), share right under DEL-ON.
        leakage: L, share right under DEL-OFF.
        retrieval_mediated: R, share right under DEL-ON and wrong under DEL-OFF.
        interference: I = c/n, share wrong under DEL-ON and right under DEL-OFF. Left out, the
            result is -c/n: what the stack L + R overstates.

    Returns:
        The residual, in [-1, 1] for rates of the same facts; 0 up to rounding where all is right.

    Raises:
        ValueError: When a rate is not in [0, 1].

    Notes:
        Adding up rates of groups with their numbers of facts as weights keeps the identity.

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
    """Refuse what is not a share, NaN included."""
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"{name} must be a rate in [0, 1]; got {rate!r}")


def _whole_counts(name: str, rate: float, n: int, margin: float) -> range:
    """Return the counts whose share of n rounds to the rate."""
    _check_rate(name, rate)
    low, high = math.ceil(n * (rate - margin)), math.floor(n * (rate + margin))
    counts = range(max(low, 0), min(high, n) + 1)
    if not counts:
        nearest = round(n * rate)
        raise ValueError(
            f"{name}={rate!r} cannot come from whole counts of {n} facts: the nearest is "
            f"{nearest} of them, {nearest / n:.6g}; check n, and decimals where it is rounded"
        )
    return counts
