"""What a judge replied, read strictly: a reply in another form is no verdict, and no 0."""

import json
import re
from typing import Final, Literal, TypeAlias

__all__ = ["FactState", "JudgeReplyError", "parse_states", "parse_verdict", "parse_verdicts"]

FactState: TypeAlias = Literal["right", "wrong", "absent"]
"""What a free text says of a fact."""

_STATES: Final[dict[object, FactState]] = {"right": "right", "wrong": "wrong", "absent": "absent"}
_THOUGHTS: Final = re.compile(r"^\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE: Final = re.compile(r"^```\w*\n(.*)\n```$", re.DOTALL)
_SHOWN: Final = 80


class JudgeReplyError(ValueError):
    """A reply that is not in the form that was asked for."""


def parse_verdict(reply: str) -> bool:
    r"""Read the reply on one short answer.

    Args:
        reply: What the judge wrote; reasoning in a leading `<think>` block and a code fence are
            taken off.

    Returns:
        True for 1, False for 0.

    Raises:
        JudgeReplyError: If it is anything but one of these two characters.

    Examples:
        >>> parse_verdict(" 1 "), parse_verdict("<think>hm</think>0")
        (True, False)
    """
    said = _bare(reply)
    if said not in ("0", "1"):
        raise JudgeReplyError(f"expected 1 or 0 and nothing else, got {_shown(said)}")
    return said == "1"


def parse_verdicts(reply: str, n: int) -> tuple[bool, ...]:
    """Read the reply on the facts of a long answer.

    Args:
        reply: What the judge wrote: numbers in brackets, or without them, separated by commas.
        n: Number of facts.

    Returns:
        One verdict a fact.

    Raises:
        JudgeReplyError: If it is anything but `n` times 1 or 0.

    Examples:
        >>> parse_verdicts("[1, 0, 1]", 3), parse_verdicts("0,1", 2)
        ((True, False, True), (False, True))
    """
    said = _bare(reply)
    inner = said[1:-1] if said.startswith("[") and said.endswith("]") else said
    parts = [part.strip() for part in inner.split(",")]
    if any(part not in ("0", "1") for part in parts):
        raise JudgeReplyError(
            f"expected a list of {n} numbers, each 1 or 0, and nothing else, got {_shown(said)}"
        )
    if len(parts) != n:
        raise JudgeReplyError(f"expected {n} numbers, got {len(parts)}: {_shown(said)}")
    return tuple(part == "1" for part in parts)


def parse_states(reply: str, n: int) -> tuple[FactState, ...]:
    """Read the reply on the facts of a free text.

    Args:
        reply: What the judge wrote: a JSON list of "right", "wrong" and "absent".
        n: Number of facts.

    Returns:
        One state a fact.

    Raises:
        JudgeReplyError: If it is anything but `n` of these words.

    Examples:
        >>> parse_states('["right", "absent"]', 2)
        ('right', 'absent')
    """
    said = _bare(reply)
    try:
        found = json.loads(said)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or any(
        not isinstance(word, str) or word.lower() not in _STATES for word in found
    ):
        raise JudgeReplyError(
            f'expected a JSON list of {n} words, each "right", "wrong" or "absent", got '
            f"{_shown(said)}"
        )
    if len(found) != n:
        raise JudgeReplyError(f"expected {n} words, got {len(found)}: {_shown(said)}")
    return tuple(_STATES[word.lower()] for word in found)


def _bare(reply: str) -> str:
    """Take reasoning, white space and a code fence off a reply."""
    said = _THOUGHTS.sub("", reply).strip()
    fenced = _FENCE.match(said)
    return fenced.group(1).strip() if fenced else said


def _shown(said: str) -> str:
    """Quote a reply, a long one cut."""
    return repr(said if len(said) <= _SHOWN else said[:_SHOWN] + "...") if said else "nothing"
