"""Identifiers of an audit in the wording for people."""

from typing import Final

from surface_consistency.schemas.audit import Attribution
from surface_consistency.schemas.memory import MemoryState

__all__ = ["KIND_MEANINGS", "KIND_TITLES", "STATE_COLOURS", "STATE_COLUMNS", "group_title"]

KIND_TITLES: Final[dict[Attribution, str]] = {
    "surviving_equivalent": "entry that survived",
    "same_object": "same object elsewhere",
    "echo": "echo of the prompt",
    "same_subject": "other object of the subject",
    "unrelated": "unrelated entry",
    "no_candidate": "no entry",
}
"""Where a right answer after deletion came from, in few words."""

KIND_MEANINGS: Final[dict[Attribution, str]] = {
    "surviving_equivalent": "an entry that still states the deleted fact was given to the model",
    "same_object": "an entry with the right object under another subject or relation was given",
    "echo": "the answer stands in the prompt, and no entry given holds it",
    "same_subject": "an entry about the subject with another object was given, so the model "
    "answered against it",
    "unrelated": "an entry that shares neither was given, so the parameters are what is left",
    "no_candidate": "no entry was given at all, so the parameters are what is left",
}
"""The same in a sentence."""

STATE_COLOURS: Final[dict[MemoryState, str]] = {
    "FULL": "#2171b5",
    "DEL-ON": "#ef6c00",
    "DEL-OFF": "#757575",
}
"""Colours of the states in figures."""


STATE_COLUMNS: Final[dict[MemoryState, str]] = {
    "FULL": "full",
    "DEL-ON": "first",
    "DEL-OFF": "second",
}
"""Each state and the first word of its columns in an outcomes frame."""


def group_title(column: str, value: str) -> str:
    """Word a variant, prompt style or other label."""
    if column == "style":
        value = value.removesuffix("_questions").replace("fewshot", "few-shot")
    return value.replace("_", " ")
