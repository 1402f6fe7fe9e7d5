"""What each deleted fact adds to the ten counts of an audit of forgetting."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.verdicts import (
    MISSING,
    MissingPolicy,
    outcome_cells,
    verdict_codes,
)
from surface_consistency.metrics.forgetting.forgetting_counts import ForgettingCounts
from surface_consistency.metrics.paired.table import PairedTable

__all__ = ["FactCounts", "fact_counts", "forgetting_of_totals"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FactCounts:
    """Ten counts of each fact, each 0 or 1."""

    counts: npt.NDArray[np.int64]
    """Shape `(n_facts, 10)`, columns as in `forgetting_rates`; zeros where not scored."""
    is_scored: npt.NDArray[np.bool_]
    """Facts that lack nothing."""
    has_full: bool
    """Whether FULL was run; otherwise the last five columns mean nothing."""
    has_trace: bool
    """Whether traces are there; otherwise the columns of artifacts mean nothing."""


def fact_counts(
    del_on: npt.ArrayLike,
    del_off: npt.ArrayLike,
    full: npt.ArrayLike | None,
    has_gold: npt.ArrayLike | None,
    *,
    missing: MissingPolicy,
    names: tuple[str, str, str, str],
) -> FactCounts:
    """Read the verdicts of facts, and what each adds to the counts."""
    cells = outcome_cells(del_on, del_off, missing=missing, names=(names[0], names[1]))
    is_scored = cells != MISSING
    is_known = np.zeros(cells.size, dtype=np.bool_)
    is_traced = np.ones(cells.size, dtype=np.bool_)
    if full is not None:
        codes = _codes(full, names[2], names[0], cells.size, missing)
        is_scored &= codes != MISSING
        is_known = codes == 1
    if has_gold is not None:
        codes = _codes(has_gold, names[3], names[0], cells.size, missing)
        is_scored &= codes != MISSING
        is_traced = codes == 1
    counts = np.zeros((cells.size, 10), dtype=np.int64)
    counts[:, :4] = cells[:, None] == np.arange(4)
    # Cells 0 and 1 are right under DEL-ON.
    counts[:, 4] = (cells <= 1) & ~is_traced
    counts[~is_scored] = 0
    counts[:, 5:] = counts[:, :5] * is_known[:, None]
    return FactCounts(
        counts=counts,
        is_scored=is_scored,
        has_full=full is not None,
        has_trace=has_gold is not None,
    )


def forgetting_of_totals(
    totals: npt.NDArray[np.number], *, has_full: bool, has_trace: bool
) -> ForgettingCounts:
    """Return the summed counts by name, None for those that mean nothing."""
    cells = [int(count) for count in totals]
    return ForgettingCounts(
        table=_table(cells[:4]),
        artifacts=cells[4] if has_trace else None,
        full_correct=sum(cells[5:9]) if has_full else None,
        given_full=_table(cells[5:9]) if has_full else None,
        artifacts_given_full=cells[9] if has_full and has_trace else None,
    )


def _codes(
    values: npt.ArrayLike, name: str, like: str, n_facts: int, missing: MissingPolicy
) -> npt.NDArray[np.int8]:
    """Read a vector beside the two verdicts."""
    codes = verdict_codes(values, name)
    if codes.size != n_facts:
        raise ValueError(
            f"{name} must hold one value a fact, as {like} does; got {codes.size} and {n_facts}"
        )
    absent = codes == MISSING
    if missing == "raise" and absent.any():
        raise ValueError(
            f"{name}[{int(np.argmax(absent))}] is missing (in all {int(absent.sum())} of "
            f"{codes.size}): fill it in, or pass missing='drop' to leave such facts out"
        )
    return codes


def _table(cells: list[int]) -> PairedTable:
    """Return four counts as a table."""
    return PairedTable(both=cells[0], first_only=cells[1], second_only=cells[2], neither=cells[3])
