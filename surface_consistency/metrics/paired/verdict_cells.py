"""Verdicts written as text, as files hold them."""

from typing import Final

import numpy as np

from surface_consistency.metrics._shared.verdicts import is_missing

__all__ = ["parse_verdict"]

_WORDS: Final = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


def parse_verdict(value: object) -> bool | None:
    """Read one cell as a verdict.

    Args:
        value: True or False, 1 or 0, their text in any case ("true", "False", "1", "0.0"), or what
            stands for no verdict: None, NaN, `pandas.NA` or an empty cell.

    Returns:
        True for right, False for wrong, None for no verdict.

    Raises:
        ValueError: For anything else, "NA" and "null" among it: a cell that was meant to be empty
            must be empty.

    Notes:
        White space around text is ignored. Numbers other than 0 and 1, such as a token F1, are
        refused: turn them into verdicts by a threshold of your choice.

    References:
        RFC 4180 for the cells of CSV files, which are all text.

    Examples:
        >>> [parse_verdict(cell) for cell in ("1", "False", "", None, 1.0)]
        [True, False, None, None, True]
    """
    if is_missing(value):
        return None
    if isinstance(value, str):
        word = value.strip().casefold()
        if not word:
            return None
        if word in _WORDS:
            return _WORDS[word]
    elif isinstance(value, _NUMBERS) and (value == 0 or value == 1):
        return bool(value)
    raise ValueError(
        f"{value!r} is no verdict: give 1 or 0, true or false, or leave the cell empty where the "
        "answer was not scored"
    )
