"""Log-likelihoods of the tokens of several texts, checked."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.verdicts import is_missing

__all__ = ["token_rows"]


def token_rows(log_likelihoods: Sequence[Sequence[float | None]]) -> list[npt.NDArray[np.float64]]:
    """Return one array a text; only its first token may lack a value, which is then NaN."""
    rows = []
    for index, tokens in enumerate(log_likelihoods):
        values = [np.nan if is_missing(value) else value for value in tokens]
        row = np.asarray(values, dtype=np.float64)
        if row.ndim != 1:
            raise ValueError(
                f"log_likelihoods[{index}] must hold one number a token; got shape {row.shape}"
            )
        if np.isnan(row[1:]).any() or (row > 1e-6).any():
            raise ValueError(
                f"log_likelihoods[{index}] must hold natural logarithms of probabilities, so at "
                "most 0, and only the first token may lack one"
            )
        rows.append(row)
    return rows
