"""Which of the retained candidates answers a lookup."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from surface_consistency.schemas.memory import Candidate

__all__ = ["Fallback", "Selection", "check_policy", "select_candidate"]

Fallback = Literal["abstain", "top1_anyway"]
"""What happens where no candidate reaches the threshold: nothing, or the closest one is taken."""

_FALLBACKS = get_args(Fallback)


class Selection(NamedTuple):
    """What a lookup is answered with."""

    candidate: Candidate | None
    """The candidate; None on abstention."""
    is_fallback: bool
    """Whether it was below the threshold and taken all the same."""


def check_policy(threshold: float | None, fallback: Fallback) -> None:
    """Refuse a policy that is none.

    Args:
        threshold: Lowest score that is accepted; None for no limit.
        fallback: What happens below it.

    Raises:
        ValueError: If the threshold is NaN or there is no such fallback.
    """
    if threshold is not None and threshold != threshold:
        raise ValueError("threshold must be a number or None; got NaN")
    if fallback not in _FALLBACKS:
        raise ValueError(f"fallback must be one of {', '.join(_FALLBACKS)}; got {fallback!r}")


def select_candidate(
    retained: Sequence[Candidate], *, threshold: float | None, fallback: Fallback = "abstain"
) -> Selection:
    """Choose the closest candidate whose score is at least the threshold.

    Works on the candidates of a stored trace, so another threshold needs no other search. Scores
    are of single precision, so a score of 0.7, which is 0.69999999 there, meets a threshold of 0.7.

    Args:
        retained: The candidates after masking, closest first.
        threshold: Lowest score that is accepted; None for no limit.
        fallback: "abstain" answers nothing where none is accepted; "top1_anyway" then takes the
            closest, as the published audit does.

    Returns:
        The candidate and whether it is a fallback; no candidate where nothing was retained.

    Raises:
        ValueError: If the threshold is NaN or there is no such fallback.
    """
    check_policy(threshold, fallback)
    if not retained:
        return Selection(None, is_fallback=False)
    if threshold is None or retained[0].score >= _lowest(threshold):
        return Selection(retained[0], is_fallback=False)
    if fallback == "top1_anyway":
        return Selection(retained[0], is_fallback=True)
    return Selection(None, is_fallback=False)


def _lowest(threshold: float) -> float:
    """Return the lowest score that is the threshold in double or single precision, or above."""
    with np.errstate(over="ignore"):
        return min(threshold, float(np.float32(threshold)))
