"""Answers to linking questions, read into the four cells of a linking table."""

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import UnscoredWarning
from surface_consistency.metrics._shared.vectors import check_missing
from surface_consistency.metrics._shared.verdicts import MISSING, MissingPolicy, verdict_codes

__all__ = ["LINKING_KINDS", "linking_cells", "warn_unanswered"]

LINKING_KINDS = ("positive", "surface_negative", "semantic_negative")
"""Kinds of examples: a true pair, one character replaced, the name of a similar entity."""


def linking_cells(
    correct: npt.ArrayLike,
    kinds: Sequence[object],
    *,
    missing: MissingPolicy,
    names: tuple[str, str] = ("correct", "kinds"),
) -> npt.NDArray[np.int8]:
    """Return each example's cell: 0, 1 positives right, wrong; 2, 3 negatives; -1 missing."""
    check_missing(missing)
    codes, labels = verdict_codes(correct, names[0]), list(kinds)
    if len(labels) != codes.size:
        raise ValueError(
            f"{names[0]} and {names[1]} must have equal lengths, one entry an example; "
            f"got {codes.size} and {len(labels)}"
        )
    for index, label in enumerate(labels):
        if label not in LINKING_KINDS:
            raise ValueError(
                f"{names[1]}[{index}] must be one of {', '.join(LINKING_KINDS)}; got {label!r}"
            )
    lacking = codes == MISSING
    if missing == "raise" and lacking.any():
        raise ValueError(
            f"{names[0]}[{int(np.argmax(lacking))}] has no verdict (in all {int(lacking.sum())} of "
            f"{codes.size} are missing): score them, or pass missing='drop' to leave them out"
        )
    negative = np.array([label != "positive" for label in labels], dtype=np.bool_)
    cells = (2 * negative + 1 - codes).astype(np.int8)
    cells[lacking] = MISSING
    return cells


def warn_unanswered(cells: npt.NDArray[np.int8], *, stacklevel: int) -> None:
    """Say how many examples were left out, where any were."""
    n_missing = int(np.count_nonzero(cells == MISSING))
    if n_missing:
        warnings.warn(
            f"{n_missing} of {cells.size} linking examples lack a verdict and were left out",
            UnscoredWarning,
            stacklevel=stacklevel + 1,
        )
