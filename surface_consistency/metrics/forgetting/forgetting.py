"""Audit of forgetting: leakage, retrieval-mediated correctness and artifacts from verdicts."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._inputs import (
    MISSING,
    Codes,
    Flags,
    Integers,
    MissingPolicy,
    check_count,
    outcome_cells,
    refuse_missing,
    verdict_codes,
    warn_undefined,
    warn_unscored,
)
from surface_consistency.metrics.paired.paired_tables import PairedTable, table_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingCounts:
    """Counts of deleted facts by what survived, with the rates that follow from them.

    Each fact is asked in three states: FULL, the database whole; DEL-ON, the fact deleted and
    retrieval on; DEL-OFF, the fact deleted and retrieval off. Rates are fractions in [0, 1]. Counts
    of disjoint sets of facts add up.

    Args:
        table: Verdicts under DEL-ON (first) and DEL-OFF (second): a, b, c, d of the paper.
        artifacts: Facts right under DEL-ON although no retained candidate was gold-equivalent; None
            without retrieval traces.
        full_correct: Facts right under FULL; None where FULL was not run.
        given_full: `table` of the facts right under FULL alone; None where not known.
        artifacts_given_full: `artifacts` among the facts right under FULL; None where not known.

    Raises:
        TypeError: When a count is not an integer.
        ValueError: When a count is negative, or larger than what it is part of.

    Notes:
        Always p(DEL-ON) = L + R - I, with I = c/n, never L + R alone. A rate that is not known, or
        whose denominator is zero, is NaN, with an `UndefinedMetricWarning`. Adding counts of which
        one is not known gives one that is not known.

    References:
        arXiv 2607.00605, section 3 (L, R), proposition 6.1 (A), appendix C (a, b, c, d).

    Examples:
        >>> noise = ForgettingCounts(
        ...     table=PairedTable(both=2, first_only=418, second_only=3, neither=2697),
        ...     artifacts=420, full_correct=1041)
        >>> round(noise.leakage, 4), round(noise.retrieval_mediated, 4)
        (0.0016, 0.134)
        >>> round(noise.leakage + noise.retrieval_mediated, 5), round(noise.del_on_accuracy, 5)
        (0.13558, 0.13462)
    """

    table: PairedTable
    """Verdicts under DEL-ON (first) and DEL-OFF (second)."""
    artifacts: int | None = None
    """Facts right under DEL-ON without a gold-equivalent retained candidate."""
    full_correct: int | None = None
    """Facts right under FULL."""
    given_full: PairedTable | None = None
    """`table` of the facts right under FULL alone."""
    artifacts_given_full: int | None = None
    """`artifacts` among the facts right under FULL."""

    def __post_init__(self) -> None:
        for name in ("artifacts", "full_correct", "artifacts_given_full"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, check_count(value, name))
        if self.full_correct is None and self.given_full is not None:
            object.__setattr__(self, "full_correct", self.given_full.n)
        self._check_parts()

    def __add__(self, other: object) -> "ForgettingCounts":
        if not isinstance(other, ForgettingCounts):
            return NotImplemented
        given_full = None
        if self.given_full is not None and other.given_full is not None:
            given_full = self.given_full + other.given_full
        return ForgettingCounts(
            table=self.table + other.table,
            artifacts=_sum(self.artifacts, other.artifacts),
            full_correct=_sum(self.full_correct, other.full_correct),
            given_full=given_full,
            artifacts_given_full=_sum(self.artifacts_given_full, other.artifacts_given_full),
        )

    @property
    def n(self) -> int:
        """Number of deleted facts that were asked under both DEL-ON and DEL-OFF."""
        return self.table.n

    @property
    def leakage(self) -> float:
        """L, share right under DEL-OFF, (a + c) / n: what the parameters know; lower is better."""
        return self._rate("leakage", self.table.both + self.table.second_only, self.n)

    @property
    def retrieval_mediated(self) -> float:
        """R, share right under DEL-ON and wrong under DEL-OFF, b / n; lower is better."""
        return self._rate("retrieval_mediated", self.table.first_only, self.n)

    @property
    def interference(self) -> float:
        """I, share wrong under DEL-ON and right under DEL-OFF, c / n: retrieval in the way."""
        return self._rate("interference", self.table.second_only, self.n)

    @property
    def del_on_accuracy(self) -> float:
        """p(DEL-ON), share right under DEL-ON, (a + b) / n = L + R - I."""
        return self._rate("del_on_accuracy", self.table.both + self.table.first_only, self.n)

    @property
    def artifact_rate(self) -> float:
        """A, share right under DEL-ON without a gold-equivalent candidate; at most p(DEL-ON)."""
        return self._rate("artifact_rate", self.artifacts, self.n)

    @property
    def full_accuracy(self) -> float:
        """Share right under FULL; near zero, no deletion can be told from a broken retrieval."""
        return self._rate("full_accuracy", self.full_correct, self.n)

    @property
    def survival_given_full(self) -> float:
        """Share still right under DEL-ON of those right under FULL."""
        return self._rate(
            "survival_given_full", self._given_full("both", "first_only"), self.full_correct
        )

    @property
    def leakage_given_full(self) -> float:
        """L among the facts right under FULL: what could have been forgotten and was not."""
        return self._rate(
            "leakage_given_full", self._given_full("both", "second_only"), self.full_correct
        )

    @property
    def retrieval_mediated_given_full(self) -> float:
        """R among the facts right under FULL."""
        return self._rate(
            "retrieval_mediated_given_full", self._given_full("first_only"), self.full_correct
        )

    @property
    def interference_given_full(self) -> float:
        """I among the facts right under FULL."""
        return self._rate(
            "interference_given_full", self._given_full("second_only"), self.full_correct
        )

    @property
    def artifact_rate_given_full(self) -> float:
        """A among the facts right under FULL."""
        return self._rate("artifact_rate_given_full", self.artifacts_given_full, self.full_correct)

    def _check_parts(self) -> None:
        """Refuse parts that are larger than their whole."""
        table, given = self.table, self.given_full
        del_on = table.both + table.first_only
        limits = [
            ("artifacts", self.artifacts, "facts right under DEL-ON", del_on),
            ("full_correct", self.full_correct, "facts", table.n),
            ("artifacts_given_full", self.artifacts_given_full, "artifacts", self.artifacts),
        ]
        if given is not None:
            limits.append(
                (
                    "artifacts_given_full",
                    self.artifacts_given_full,
                    "given_full right under DEL-ON",
                    given.both + given.first_only,
                )
            )
            for name in ("both", "first_only", "second_only", "neither"):
                part, whole = getattr(given, name), getattr(table, name)
                limits.append((f"given_full.{name}", part, f"table.{name}", whole))
            if given.n != self.full_correct:
                raise ValueError(
                    f"given_full must hold the full_correct facts: got {given.n} and "
                    f"{self.full_correct}"
                )
        for name, part, whole, limit in limits:
            if part is not None and limit is not None and part > limit:
                raise ValueError(f"{name} must not exceed {whole}; got {part} of {limit}")

    def _given_full(self, *cells: str) -> int | None:
        """Count the facts right under FULL in these cells; None where they were not counted."""
        table = self.given_full
        return None if table is None else sum(getattr(table, cell) for cell in cells)

    def _rate(self, name: str, part: int | None, whole: int | None) -> float:
        """Return a share, with a warning where it is undefined."""
        if part is not None and whole:
            return part / whole
        reason = "no fact enters its denominator" if whole == 0 else "it was not counted"
        warn_undefined(f"{name} is undefined (NaN): {reason} in {self}", stacklevel=3)
        return math.nan


def _sum(first: int | None, second: int | None) -> int | None:
    """Add two counts, either of which may be unknown."""
    return None if first is None or second is None else first + second


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FactCounts:
    """Ten counts of each fact, each 0 or 1."""

    counts: Integers
    """Shape `(n_facts, 10)`, columns as in `forgetting_of_totals`; zeros where not scored."""
    is_scored: Flags
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
        table=table_of(cells[:4]),
        artifacts=cells[4] if has_trace else None,
        full_correct=sum(cells[5:9]) if has_full else None,
        given_full=table_of(cells[5:9]) if has_full else None,
        artifacts_given_full=cells[9] if has_full and has_trace else None,
    )


def _codes(
    values: npt.ArrayLike, name: str, like: str, n_facts: int, missing: MissingPolicy
) -> Codes:
    """Read a vector beside the two verdicts."""
    codes = verdict_codes(values, name)
    if codes.size != n_facts:
        raise ValueError(
            f"{name} must hold one value a fact, as {like} does; got {codes.size} and {n_facts}"
        )
    refuse_missing(codes == MISSING, name, missing, rows="facts")
    return codes


def forgetting_counts(
    del_on: npt.ArrayLike,
    del_off: npt.ArrayLike,
    *,
    full: npt.ArrayLike | None = None,
    has_gold: npt.ArrayLike | None = None,
    missing: MissingPolicy = "raise",
) -> ForgettingCounts:
    """Count what survived the deletion of facts, and by which way.

    For a fact f with gold object o and answer Y(f, state): leakage L(f) = [Y(f, DEL-OFF) = o],
    retrieval-mediated correctness R(f) = [Y(f, DEL-ON) = o and Y(f, DEL-OFF) != o], interference
    I(f) = [Y(f, DEL-ON) != o and Y(f, DEL-OFF) = o], artifact A(f) = [Y(f, DEL-ON) = o] (1 - G(f)),
    where G(f) says whether some retained candidate was gold-equivalent.

    Args:
        del_on: Verdicts with the fact deleted and retrieval on, shape `(n_facts,)`: True or False,
            1 or 0, and None, NaN or `pandas.NA` where an answer was not scored.
        del_off: Verdicts on the same facts with retrieval off.
        full: Verdicts on the same facts with the database whole.
        has_gold: G(f) for each fact, from the trace of the DEL-ON answer.
        missing: "raise" refuses missing values; "drop" leaves out each fact that lacks one in any
            of the vectors given, with an `UnscoredWarning`.

    Returns:
        The counts, with L, R, I, A, p(DEL-ON) and the rates given FULL as properties.

    Raises:
        ValueError: When lengths differ, an input is not one-dimensional, a value is no verdict, or
            (under "raise") missing.

    Notes:
        p(DEL-ON) = L + R - I always. Where no fact leaks and no retained candidate is
        gold-equivalent, R = A fact by fact, so A then carries no information of its own. No facts
        give counts of zero, whose rates are NaN. The order of the facts does not matter.
        Interference and the rates given FULL are not in the paper; a later audit of the same
        authors' reports them. For intervals and tests see `forgetting_by`.

    References:
        arXiv 2607.00605, section 3 (L, R); proposition 6.1 (A, and R = A); proposition C.1, eqs. 1
        and 2 (p(DEL-ON) = L + R - c/n).

    Examples:
        >>> counts = forgetting_counts([1, 1, 0, 0], [1, 0, 1, 0], has_gold=[0, 0, 0, 0])
        >>> counts.leakage, counts.retrieval_mediated, counts.interference, counts.del_on_accuracy
        (0.5, 0.25, 0.25, 0.5)
    """
    facts = fact_counts(
        del_on,
        del_off,
        full,
        has_gold,
        missing=missing,
        names=("del_on", "del_off", "full", "has_gold"),
    )
    n_missing = int(np.count_nonzero(~facts.is_scored))
    warn_unscored(n_missing, facts.is_scored.size, what="facts", stacklevel=2)
    return forgetting_of_totals(
        facts.counts.sum(axis=0), has_full=facts.has_full, has_trace=facts.has_trace
    )
