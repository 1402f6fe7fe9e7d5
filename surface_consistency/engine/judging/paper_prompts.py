"""The prompts that papers print, word for word.

The texts stand in the folder `papers`, whose NOTICE says which table each is and what is not told.

A preset is named with the digest of its texts, "paper@1f0c...", so that a run that was made with
other texts is told from one that was made with these.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal

OWN_WORDS: Final = "own"
"""Name of the prompts in this package's words."""

PresetRole = Literal["instructions", "judge", "writer"]
"""What a preset of SLAQ is for: the model under test, the judge, or the writer of questions."""

PAPER_PROMPTS: Final[Mapping[PresetRole, tuple[str, ...]]] = {
    "instructions": ("slaq_short", "slaq_long"),
    "judge": ("slaq_judge_short", "slaq_judge_long"),
    "writer": ("slaq_writer",),
}
"""Names of the texts by what they are for; all are of SLAQ (arXiv 2510.11218), tables 1 to 4."""

_FOLDER: Final = Path(__file__).with_name("papers")
_PAPER: Final = "paper"
_DIGITS: Final = 12
_HOLE: Final = re.compile(r"\{(\w+)\}")


@cache
def paper_prompt(name: str) -> str:
    """Read a prompt as its paper prints it.

    Args:
        name: A name of `PAPER_PROMPTS`.

    Returns:
        The text with its holes, such as "{question}".

    Raises:
        ValueError: If there is no such text.

    Examples:
        >>> print(paper_prompt("slaq_short"))
        Answer the question with factual single sentence response for the Topic: {topic}.
        Question: {question}
    """
    known = [text for texts in PAPER_PROMPTS.values() for text in texts]
    if name not in known:
        raise ValueError(f"name must be one of {', '.join(known)}; got {name!r}")
    return (_FOLDER / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n")


def fill_holes(text: str, values: Mapping[str, str]) -> str:
    """Put values into the holes of a text, all at once.

    Args:
        text: A text with holes.
        values: Value by name of the hole.

    Returns:
        The text; braces within values, and braces around other words, stay as they are.

    Examples:
        >>> fill_holes("{q} {x}", {"q": "{x}?", "y": "no"})
        '{x}? {x}'
    """
    return _HOLE.sub(lambda hole: values.get(hole[1], hole[0]), text)


def pin_prompts(choice: str, role: PresetRole) -> str:
    """Name prompts with the digest of their texts.

    Args:
        choice: "own" or "paper", or what this function returned before.
        role: What they are for.

    Returns:
        "own", or "paper@" and the first 12 digits of the SHA-256 of the role's texts.

    Raises:
        ValueError: If it is neither, or names texts that are not those of this version.
    """
    name, _, digest = choice.partition("@")
    if choice == OWN_WORDS:
        return choice
    if name != _PAPER:
        raise ValueError(f"prompts must be {OWN_WORDS} or {_PAPER}; got {choice!r}")
    texts = "\0".join(paper_prompt(text) for text in PAPER_PROMPTS[role])
    pinned = hashlib.sha256(texts.encode()).hexdigest()[:_DIGITS]
    if digest not in ("", pinned):
        raise ValueError(
            f"{choice} are other texts than those of this version, {_PAPER}@{pinned}; take the "
            "version of the package that they were made with, or leave out the digest"
        )
    return f"{_PAPER}@{pinned}"
