"""How much a component of a model matters for an answer token, from logits with and without it."""

import warnings
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import UndefinedMetricWarning

__all__ = ["ImportanceForm", "component_importance"]

ImportanceForm: TypeAlias = Literal["signed", "magnitude"]
"""With the sign of the change (eq. 6), or without it (section 2 of the paper)."""


def component_importance(
    base: npt.ArrayLike,
    ablated: npt.ArrayLike,
    *,
    form: ImportanceForm = "signed",
    negative: Literal["raise", "absolute"] = "raise",
) -> npt.NDArray[np.float64]:
    """Measure the importance of each component for each answer token.

    "signed" is (base - ablated) / base: the share of the token's logit that goes when the component
    is removed. "magnitude" is |base - ablated| / |base|.

    Args:
        base: Logit of each gold token in the whole model, shape `(n_tokens,)`.
        ablated: Logit of each gold token with one component set to zero, shape
            `(n_tokens, n_components)`.
        form: "signed" or "magnitude".
        negative: What "signed" does with a negative base logit, where its formula turns the sign of
            every importance: "raise" refuses it, "absolute" divides by |base|.

    Returns:
        Importance, shape `(n_tokens, n_components)`. Positive: the token needs the component;
        negative: the component works against it. No bounds, but at least 0 under "magnitude".

    Raises:
        ValueError: When shapes do not fit, a logit is not finite, a base logit is negative under
            "signed" and "raise", or an option is unknown.
        TypeError: When an input holds no numbers.

    Notes:
        A base logit of 0 makes the token's row NaN, with an `UndefinedMetricWarning`. The paper
        gives both forms (eq. 6 and section 2) and does not say what happens to negative logits,
        which some model families have throughout. The scale of the logits does not matter.

    References:
        SLAQ, arXiv 2510.11218, eq. 6 and section 2.

    Examples:
        >>> component_importance([20.0], [[15.0, 20.0, 22.0]]).tolist()
        [[0.25, 0.0, -0.1]]
    """
    if form not in ("signed", "magnitude"):
        raise ValueError(f"form must be 'signed' or 'magnitude'; got {form!r}")
    if negative not in ("raise", "absolute"):
        raise ValueError(f"negative must be 'raise' or 'absolute'; got {negative!r}")
    whole, without = _logits(base, "base", 1), _logits(ablated, "ablated", 2)
    if len(whole) != len(without):
        raise ValueError(
            "base and ablated must be about the same tokens, shapes (n_tokens,) and "
            f"(n_tokens, n_components); got {whole.shape} and {without.shape}"
        )
    if form == "signed" and negative == "raise" and (whole < 0).any():
        token = int(np.argmax(whole < 0))
        raise ValueError(
            f"base[{token}] is {whole[token]:g}: dividing by a negative logit turns the sign of "
            "every importance; pass negative='absolute' to divide by its magnitude, or "
            "form='magnitude'"
        )
    if (whole == 0).any():
        warnings.warn(
            f"importance is undefined (NaN) for {int((whole == 0).sum())} of {whole.size} tokens, "
            f"whose base logit is 0, such as token {int(np.argmax(whole == 0))}",
            UndefinedMetricWarning,
            stacklevel=2,
        )
    change = whole[:, None] - without
    scale = np.where(whole == 0, np.nan, np.abs(whole))[:, None]
    return np.asarray((np.abs(change) if form == "magnitude" else change) / scale)


def _logits(values: npt.ArrayLike, name: str, n_axes: int) -> npt.NDArray[np.float64]:
    """Return finite logits with so many axes."""
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold logits; got dtype {array.dtype}")
    if array.ndim != n_axes or 0 in array.shape:
        raise ValueError(
            f"{name} must have {n_axes} axes and hold something; got shape {array.shape}"
        )
    if not np.isfinite(array).all():
        place = ", ".join(str(int(index)) for index in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name}[{place}] is not finite")
    return array.astype(np.float64)
