"""Checks on the vectors that an encoder returns."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import RetrievalError

__all__ = ["check_vectors"]

_LONGEST = 1.001
_N_NAMED = 3


def check_vectors(vectors: npt.ArrayLike, texts: Sequence[object]) -> npt.NDArray[np.float32]:
    """Return the vectors as float32 rows, one a text or query, or say which has none.

    Raises:
        RetrievalError: If there is not one row a text, or a row is not finite or longer than 1.
    """
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    if rows.ndim != 2 or len(rows) != len(texts):
        raise RetrievalError(
            f"the encoder must return one vector a text, shape ({len(texts)}, dimension); "
            f"got shape {rows.shape}"
        )
    squares = np.einsum("ij,ij->i", rows, rows)
    wrong = np.flatnonzero(~(squares <= _LONGEST**2))
    if len(wrong):
        named = ", ".join(repr(texts[i]) for i in wrong[:_N_NAMED])
        more = f" and {len(wrong) - _N_NAMED} more" if len(wrong) > _N_NAMED else ""
        broken = not np.isfinite(squares[wrong]).all()
        what = "is not finite (NaN or infinite)" if broken else "is longer than 1"
        raise RetrievalError(
            f"the vector of {named}{more} {what}, so its scores mean nothing; an encoder must "
            "return finite vectors of length 1"
        )
    return rows
