"""What a judge replied, read strictly: a reply in another form is no verdict, and no 0."""

import json
import re
from typing import Final, Literal, TypeAlias

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
    bare = _bare(reply)
    if bare not in ("0", "1"):
        raise JudgeReplyError(f"expected 1 or 0 and nothing else, got {_shown(bare)}")
    return bare == "1"


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
    bare = _bare(reply)
    inner = bare[1:-1] if bare.startswith("[") and bare.endswith("]") else bare
    parts = [part.strip() for part in inner.split(",")]
    if any(part not in ("0", "1") for part in parts):
        raise JudgeReplyError(
            f"expected a list of {n} numbers, each 1 or 0, and nothing else, got {_shown(bare)}"
        )
    if len(parts) != n:
        raise JudgeReplyError(f"expected {n} numbers, got {len(parts)}: {_shown(bare)}")
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
    bare = _bare(reply)
    try:
        states = json.loads(bare)
    except (ValueError, RecursionError):
        states = None
    if not isinstance(states, list) or any(
        not isinstance(word, str) or word.lower() not in _STATES for word in states
    ):
        raise JudgeReplyError(
            f'expected a JSON list of {n} words, each "right", "wrong" or "absent", got '
            f"{_shown(bare)}"
        )
    if len(states) != n:
        raise JudgeReplyError(f"expected {n} words, got {len(states)}: {_shown(bare)}")
    return tuple(_STATES[word.lower()] for word in states)


def _bare(reply: str) -> str:
    """Take reasoning, white space and a code fence off a reply."""
    bare = _THOUGHTS.sub("", reply).strip()
    fenced = _FENCE.match(bare)
    return fenced.group(1).strip() if fenced else bare


def _shown(text: str) -> str:
    """Quote a reply, a long one cut."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...") if text else "nothing"
