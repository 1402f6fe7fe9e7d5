"""A matrix of token similarities, checked."""

import numpy as np
import numpy.typing as npt

__all__ = ["token_matrix"]


def token_matrix(matrix: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return a matrix of finite numbers with a token on each side."""
    array = np.asarray(matrix, dtype=np.float64)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(
            "matrix must have shape (n_short_tokens, n_long_tokens) with a token on each side; "
            f"got {array.shape}"
        )
    if not np.isfinite(array).all():
        row, column = (int(index) for index in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"matrix[{row}, {column}] is {array[row, column]}: leave out tokens whose similarity "
            "is undefined"
        )
    return array
