"""Audit of forgetting: leakage, retrieval-mediated correctness and artifacts from verdicts."""

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.verdicts import MissingPolicy, warn_unscored
from surface_consistency.metrics.forgetting._fact_counts import fact_counts, forgetting_of_totals
from surface_consistency.metrics.forgetting.forgetting_counts import ForgettingCounts

__all__ = ["forgetting_counts"]


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
