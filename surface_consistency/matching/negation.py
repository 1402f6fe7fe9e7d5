"""Occurrences of answers that the prediction denies."""

import re
from collections.abc import Iterator, Sequence

__all__ = ["first_affirmed"]

_DENIAL = re.compile(
    r" (?:not|never|neither|nor|cannot|instead of|rather than"
    r"|(?:is|was|are|were|do|does|did|has|have|had|ca|could|would|should|wo)n['’ ]t)"
    r"(?: (?:a|an|the|at|by|for|from|in|of|on|to|with))* $",
    re.IGNORECASE,
)


def first_affirmed(key: str, needles: Sequence[str]) -> int:
    """Return the position of the first needle that occurs outside every denied needle.

    Args:
        key: Words between single spaces, with a space at both ends.
        needles: Answers in the same form.

    Returns:
        The position; -1 when no needle occurs, or each occurrence is denied.

    Examples:
        >>> first_affirmed(" not mark twain ", [" mark twain ", " twain "])
        -1
        >>> first_affirmed(" not twain but samuel clemens ", [" twain ", " samuel clemens "])
        1
    """
    spans = [
        (position, start, start + len(needle) - 1)
        for position, needle in enumerate(needles)
        for start in _starts(key, needle)
    ]
    denied = [
        (start, end) for _, start, end in spans if _DENIAL.search(key, 0, start + 1) is not None
    ]
    for position, start, end in spans:
        if not any(start < last and first < end for first, last in denied):
            return position
    return -1


def _starts(key: str, needle: str) -> Iterator[int]:
    """Yield every place where the needle begins."""
    start = key.find(needle)
    while start >= 0:
        yield start
        start = key.find(needle, start + 1)
