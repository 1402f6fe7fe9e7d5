"""Answers that say that there is none."""

from typing import Final

from surface_consistency.text import token_key

__all__ = ["says_unknown"]

_UNKNOWN: Final = frozenset(
    (
        "",
        "unknown",
        "n a",
        "na",
        "none",
        "no answer",
        "i don't know",
        "i don’t know",
        "i do not know",
        "i don t know",
    )
)


def says_unknown(answer: str) -> bool:
    """Tell whether an answer says that the model or the store does not know.

    Args:
        answer: A cleaned answer.

    Returns:
        Whether it is empty or one of "unknown", "n/a", "none", "no answer", "I don't know" and
        their spellings, the list of the published audit.

    Examples:
        >>> says_unknown("Unknown."), says_unknown(""), says_unknown("Norway")
        (True, True, False)
    """
    return token_key(answer) in _UNKNOWN
