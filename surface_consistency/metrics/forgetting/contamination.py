"""Cells of an audit whose FULL state looks broken, so that nothing can be said of forgetting.

Where retrieval serves another database than the one under audit, FULL is near zero, or deleting a
fact changes nothing because it was never there: FULL equals DEL-ON.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.frames import check_frame, grouping_columns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["contamination_by", "contamination_flags"]

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
    """Flag cells in which FULL is near zero or equals DEL-ON.

    Args:
        full_correct: Facts right under FULL in each cell, shape `(n_cells,)`.
        del_on_correct: Facts right under DEL-ON in each cell.
        n: Facts in each cell.
        near_zero: Largest FULL accuracy that counts as near zero, in [0, 1).

    Returns:
        For each cell "" (nothing to see), "full_near_zero", "full_equals_del_on" or "both".

    Raises:
        TypeError: When a count is not an integer.
        ValueError: When lengths differ, a cell has no facts, a count is negative or exceeds `n`, or
            `near_zero` is out of range.

    Notes:
        A flag is a reason to look, not a verdict: a weak model has a low FULL of its own, and in a
        small cell the two counts may be equal by chance. Facts that were known before and after
        alike need the verdicts, not the counts: see `paired_table(full, del_on).flip_rate`.

    References:
        arXiv 2607.00605, table 5: three of its thirteen databases, 2,880 of 12,228 pairs, were
        answered from the index of another database and are flagged here in all their cells.

    Examples:
        >>> contamination_flags([58, 1, 0], [8, 1, 0], n=[100, 100, 200]).tolist()
        ['', 'both', 'both']
        >>> contamination_flags([4, 40], [0, 40], n=[100, 100]).tolist()
        ['full_near_zero', 'full_equals_del_on']
    """
    if not 0.0 <= near_zero < 1.0:
        raise ValueError(f"near_zero must be an accuracy in [0, 1), as in 0.05; got {near_zero!r}")
    counts = [
        _counts(values, name)
        for name, values in (
            ("full_correct", full_correct),
            ("del_on_correct", del_on_correct),
            ("n", n),
        )
    ]
    full, del_on, facts = counts
    if not full.size == del_on.size == facts.size:
        raise ValueError(
            "full_correct, del_on_correct and n must have equal lengths, one value a cell; "
            f"got {full.size}, {del_on.size} and {facts.size}"
        )
    if (facts == 0).any():
        raise ValueError(f"n[{int(np.argmax(facts == 0))}] is 0: a cell must hold facts")
    for name, values in (("full_correct", full), ("del_on_correct", del_on)):
        if (values > facts).any():
            cell = int(np.argmax(values > facts))
            raise ValueError(
                f"{name}[{cell}] must not exceed n; got {values[cell]} of {facts[cell]}"
            )
    low, equal = full <= near_zero * facts, full == del_on
    return np.select([low & equal, low, equal], [_BOTH, _NEAR_ZERO, _EQUAL], default=_CLEAN)


def contamination_by(
    frame: "pd.DataFrame",
    *,
    by: str | Sequence[str] = ("domain", "variant"),
    full_correct: str = "full_correct",
    del_on_correct: str = "del_on_correct",
    n: str = "n",
    near_zero: float = 0.05,
) -> "pd.DataFrame":
    """Tell which databases of an audit look contaminated: flagged in every one of their cells.

    Args:
        frame: One row a cell, such as a database under one prompt style.
        by: Columns that make a database.
        full_correct: Column of facts right under FULL.
        del_on_correct: Column of facts right under DEL-ON.
        n: Column of facts.
        near_zero: Largest FULL accuracy that counts as near zero, in [0, 1).

    Returns:
        One row a database, sorted by label, with the columns `by`, n, n_cells, n_near_zero,
        n_equal, full_accuracy, del_on_accuracy and is_contaminated, which is True where every cell
        is flagged.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame.
        TypeError: When `frame` is no DataFrame, or a count is not an integer.
        ValueError: When the frame or `by` is empty, and for what `contamination_flags` refuses.

    Notes:
        Asking for every cell keeps a single weak prompt style from damning a database; the counts
        of flagged cells are there for a stricter rule.

    References:
        arXiv 2607.00605, table 5; see `contamination_flags`.

    Examples:
        >>> import pandas as pd
        >>> cells = pd.DataFrame(
        ...     {"domain": "sports", "variant": ["Base", "Base", "Noise", "Noise"],
        ...      "n": [100, 100, 160, 160], "full_correct": [1, 1, 43, 74],
        ...      "del_on_correct": [1, 1, 6, 9]})
        >>> contamination_by(cells)[["variant", "full_accuracy", "is_contaminated"]].values.tolist()
        [['Base', 0.01, True], ['Noise', 0.365625, False]]
    """
    keys = grouping_columns(by, _RESULTS)
    if not keys:
        raise ValueError("by must name the columns that make a database; got none")
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


def _counts(values: npt.ArrayLike, name: str) -> npt.NDArray[np.int64]:
    """Return a vector of counts."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, one value a cell; got {array.shape}")
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} must hold integer counts; got dtype {array.dtype}")
    if (array < 0).any():
        cell = int(np.argmax(array < 0))
        raise ValueError(f"{name}[{cell}] must be a count of at least 0; got {array[cell]}")
    return array.astype(np.int64)
