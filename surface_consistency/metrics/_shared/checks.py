"""Checks of arguments that several metrics share."""

import operator

__all__ = ["check_confidence", "check_count", "check_n_resamples"]


def check_confidence(confidence: float) -> float:
    """Return `confidence` when it lies strictly between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(
            f"confidence must lie strictly between 0 and 1, as in 0.95; got {confidence!r}"
        )
    return float(confidence)


def check_count(value: object, name: str) -> int:
    """Return `value` as an `int` when it is a whole number of at least 0, and no bool."""
    if type(value).__name__ in {"bool", "bool_"} or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer count; got {value!r}")
    count = operator.index(value)
    if count < 0:
        raise ValueError(f"{name} must be a count of at least 0; got {count}")
    return count


def check_n_resamples(n_resamples: object) -> int:
    """Return `n_resamples` when it is an integer of at least 1."""
    count = check_count(n_resamples, "n_resamples")
    if count == 0:
        raise ValueError("n_resamples must be at least 1, and 1,000 or more to be of use; got 0")
    return count
