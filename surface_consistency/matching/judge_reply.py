"""Strict parsing of the replies of an LLM judge: any other form is an error, and not a 0."""

import json
import re
from typing import Final, Literal, TypeAlias

FactState: TypeAlias = Literal["right", "wrong", "absent"]
"""How a free text states a fact: correctly, incorrectly or not at all."""

_STATES: Final[dict[object, FactState]] = {"right": "right", "wrong": "wrong", "absent": "absent"}
_THOUGHTS: Final = re.compile(r"^\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE: Final = re.compile(r"^```\w*\n(.*)\n```$", re.DOTALL)
_SHOWN: Final = 80


class JudgeReplyError(ValueError):
    """A reply that is not in the requested form."""


def parse_verdict(reply: str) -> bool:
    r"""Parse the reply on one short answer.

    Args:
        reply: The reply of the judge; reasoning in a leading `<think>` block and a code fence are
            removed.

    Returns:
        True for 1, False for 0.

    Raises:
        JudgeReplyError: If it is not one of these two characters.

    Examples:
        >>> parse_verdict(" 1 "), parse_verdict("<think>hm</think>0")
        (True, False)
    """
    bare = _bare(reply)
    if bare not in ("0", "1"):
        raise JudgeReplyError(f"expected 1 or 0 and nothing else, got {_shown(bare)}")
    return bare == "1"


def parse_verdicts(reply: str, n: int) -> tuple[bool, ...]:
    """Parse the reply on the facts of a long answer.

    Args:
        reply: The reply of the judge: numbers separated by commas, in brackets or without them.
        n: Number of facts.

    Returns:
        One label per fact: True for 1, False for 0.

    Raises:
        JudgeReplyError: If it is not a list of `n` numbers, each 1 or 0.

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
    """Parse the reply on the facts of a free text.

    Args:
        reply: The reply of the judge: a JSON list of "right", "wrong" and "absent".
        n: Number of facts.

    Returns:
        One state per fact.

    Raises:
        JudgeReplyError: If it is not a list of `n` of these words.

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
    """Remove reasoning, white space and a code fence from a reply."""
    bare = _THOUGHTS.sub("", reply).strip()
    fenced = _FENCE.match(bare)
    return fenced.group(1).strip() if fenced else bare


def _shown(text: str) -> str:
    """Quote a reply, truncated if it is long."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...") if text else "nothing"
