"""Labels of any hashable kind, such as clusters, groups and strata, numbered."""

from collections.abc import Hashable, Iterable

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.verdicts import is_missing

__all__ = ["label_codes"]


def label_codes(
    labels: Iterable[Hashable] | None, n: int, name: str, *, row: str = "row"
) -> npt.NDArray[np.int64]:
    """Number the labels of `n` rows in order of first appearance; None labels each row by itself.

    A missing label (None, NaN, NaT or pandas.NA) is refused, and so is any other number of labels.
    """
    if labels is None:
        return np.arange(n, dtype=np.int64)
    numbers: dict[Hashable, int] = {}
    codes = []
    for index, label in enumerate(labels):
        if is_missing(label):
            raise ValueError(f"{name}[{index}] is {label!r}: every {row} needs a label, so name it")
        codes.append(numbers.setdefault(label, len(numbers)))
    if len(codes) != n:
        raise ValueError(
            f"{name} must hold one label a {row}: got {len(codes)} labels for {n} {row}s"
        )
    return np.asarray(codes, dtype=np.int64)
