"""Alignment of short and long answers within each topic: the four scores of SLAQ."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.verdicts import MISSING, MissingPolicy, warn_unscored
from surface_consistency.metrics.alignment._topic_verdicts import Codes, response_codes, short_codes
from surface_consistency.metrics.paired.table import PairedTable

__all__ = ["TopicAlignmentResult", "topic_alignment"]

# What both, short only, long only and neither add to F_S, F_L, Align and signed Align.
_SCORES = np.array([[1, 1, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, -1]])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopicAlignmentResult:
    """Result of `topic_alignment`: one value a topic, in the order of the topics."""

    short_accuracy: npt.NDArray[np.float64]
    """F_S, in [0, 1]; NaN for a topic without a scored pair."""
    long_accuracy: npt.NDArray[np.float64]
    """F_L, averaged over permutations, in [0, 1]."""
    alignment: npt.NDArray[np.float64]
    """Share of pairs with equal verdicts, in [0, 1]."""
    signed_alignment: npt.NDArray[np.float64]
    """Both right less both wrong, in [-1, 1]."""
    n_pairs: npt.NDArray[np.int64]
    """Scored pairs of a short and a long answer; `n_slots` times `n_permutations` at most."""
    table: PairedTable
    """All scored pairs, the short answer first."""
    n_missing: int
    """Pairs that lacked a verdict and were left out."""


def topic_alignment(
    short: npt.ArrayLike, long: npt.ArrayLike, *, missing: MissingPolicy = "raise"
) -> TopicAlignmentResult:
    """Score short against long answers within each topic.

    With S_k and L_k the verdicts on sub-question k of N: F_S = mean of S_k, F_L = mean of L_k,
    Align = share of k with S_k = L_k, and signed Align = mean of A_k, which is 1 when both are
    right, -1 when both are wrong and 0 when they differ.

    Args:
        short: Verdicts on the short answers, shape `(n_topics, n_slots)`, column k being
            sub-question k: True or False, 1 or 0, and None or NaN where an answer was not judged.
        long: Verdicts on the same sub-questions in the long answers, shape `(n_topics, n_slots)`,
            or `(n_topics, n_permutations, n_slots)` where the long query was asked with its
            sub-questions in several orders. Column k is sub-question k, whatever slot it stood in:
            see `by_question` for verdicts in slot order.
        missing: "raise" refuses missing verdicts; "drop" leaves out each pair of a short and a long
            answer that lacks one, with an `UnscoredWarning`.

    Returns:
        The four scores of each topic, averaged over its permutations, and the table of all pairs.

    Raises:
        ValueError: When shapes do not fit each other, rows have unequal numbers of slots, an input
            is empty, a value is no verdict, or a verdict is missing under "raise".

    Notes:
        A topic without a scored pair scores NaN. With all verdicts there, averaging over
        permutations first or last is the same; under "drop" each scored pair of a topic has equal
        weight, and F_S is over the pairs that F_L is over. The order of topics, permutations and
        sub-questions does not matter. Signed Align = F_S + F_L - 1 always. Swapping the inputs
        swaps F_S and F_L and changes nothing else, where both have one answer a sub-question.

    References:
        SLAQ, arXiv 2510.11218: alignment eq. 1, F_S and F_L eq. 2, Align eq. 3, signed Align eq. 4.

    Examples:
        >>> scores = topic_alignment([[1, 1, 0, 0, 1]], [[1, 0, 0, 0, 1]])
        >>> float(scores.alignment[0]), float(scores.signed_alignment[0])
        (0.8, 0.0)
    """
    short_verdicts = short_codes(short, "short", missing=missing)
    long_verdicts = response_codes(long, "long", missing=missing)
    _check_shapes(short_verdicts, long_verdicts)
    paired = np.broadcast_to(short_verdicts[:, None, :], long_verdicts.shape)
    scored = (paired != MISSING) & (long_verdicts != MISSING)
    counts = _count_cells(paired, long_verdicts, scored)
    n_pairs, totals = counts.sum(axis=1), counts.sum(axis=0)
    n_missing = int(scored.size - n_pairs.sum())
    warn_unscored(n_missing, scored.size, stacklevel=2)
    with np.errstate(invalid="ignore"):
        scores = counts @ _SCORES / n_pairs[:, None]
    return TopicAlignmentResult(
        short_accuracy=scores[:, 0],
        long_accuracy=scores[:, 1],
        alignment=scores[:, 2],
        signed_alignment=scores[:, 3],
        n_pairs=n_pairs,
        table=PairedTable(
            both=int(totals[0]),
            first_only=int(totals[1]),
            second_only=int(totals[2]),
            neither=int(totals[3]),
        ),
        n_missing=n_missing,
    )


def _check_shapes(short: Codes, long: Codes) -> None:
    """Refuse verdicts that are not about the same topics and sub-questions."""
    n_topics, _, n_slots = long.shape
    if short.shape != (n_topics, n_slots):
        raise ValueError(
            "short and long must be about the same topics and sub-questions: got "
            f"{short.shape[0]} topics of {short.shape[1]} slots and {n_topics} topics of "
            f"{n_slots} slots"
        )


def _count_cells(
    paired: Codes, long: Codes, scored: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Count each topic's pairs: both, short only, long only, neither; shape `(n_topics, 4)`."""
    right = (paired == 1, long == 1)
    cells = (
        right[0] & right[1],
        right[0] & ~right[1],
        ~right[0] & right[1],
        ~right[0] & ~right[1],
    )
    return np.column_stack([(cell & scored).sum(axis=(1, 2)) for cell in cells]).astype(np.int64)
