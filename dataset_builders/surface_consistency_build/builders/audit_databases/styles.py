"""The six prompt styles of the audit of forgetting (arXiv 2607.00605, appendix A.1, table 1).

A relation has two wordings, a question and a statement that its object completes; the styles are
frames around them. `audit_wordings.tsv` next to this module contains the wordings of the published
databases, so that the same fact gives the published text.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from surface_consistency.schemas import AuditPrompt

_FILE: Final = Path(__file__).parent / "audit_wordings.tsv"
_SLOT: Final = re.compile(r"\{([^{}]+)\}")
_NAMED: Final = re.compile(r"\{([A-Za-z_]\w*)\}")
_LOWER: Final = "|lower"
_PROFILE: Final = (
    "Context: I am compiling a concise factual profile for {subject}. Answer with a short factual "
    "phrase.\nQuestion: {question}"
)
_SHOTS: Final = (
    "Answer the final question with a short factual phrase.\n\nQuestion: Where was Ada Lovelace "
    "born?\nAnswer: London\n\nQuestion: In what year was Pride and Prejudice published?\nAnswer: "
    "1813\n\nQuestion: {question}\nAnswer:"
)

_FRAMES: Final = {
    "direct_questions": "{question}",
    "paraphrased_questions": "Could you answer this question: {question}",
    "contextual_questions": _PROFILE,
    "cloze": "Complete the sentence with the missing fact: {statement} ____.",
    "continuations": "Tell me about {subject}. {statement}",
    "fewshot_questions": _SHOTS,
}

AUDIT_STYLES: Final = tuple(_FRAMES)
"""Names of the styles, as in the published file names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditWording:
    """The two wordings of a relation.

    `{subject}` is replaced by the subject, `{subject's}` by its possessive ("James'"), a slot of
    the relation's name by its value, and `{slot|lower}` by the value in lower case.
    """

    question: str
    """A question that the object answers."""

    statement: str
    """A statement that the object completes, without the object."""


def audit_prompt_text(
    subject: str, relation: str, *, style: str, wordings: Mapping[str, AuditWording] | None = None
) -> str:
    """Return the prompt of a fact.

    Args:
        subject: Subject of the question.
        relation: Relation of the question.
        style: One of `AUDIT_STYLES`.
        wordings: Wordings by relation; a relation may contain slots, such as "Leader after
            {person}". None for those of the published databases. The question of a relation without
            wording is "What is the <relation> of <subject>?".

    Returns:
        The prompt.

    Raises:
        ValueError: If the style does not exist.

    Examples:
        >>> audit_prompt_text("Japan", "Capital", style="cloze")
        'Complete the sentence with the missing fact: The capital of Japan is ____.'
        >>> audit_prompt_text("Quito", "Elevation", style="direct_questions")
        'What is the elevation of Quito?'
    """
    if style not in _FRAMES:
        raise ValueError(f"style must be one of {', '.join(AUDIT_STYLES)}, got {style!r}")
    wording, slots = _wording_of(relation, load_wordings() if wordings is None else wordings)
    possessive = f"{subject}'" if subject.endswith("s") else f"{subject}'s"
    slots = {**slots, "subject": subject, "subject's": possessive}
    texts = {name: _filled(getattr(wording, name), slots) for name in ("question", "statement")}
    return _filled(_FRAMES[style], {"subject": subject, **texts})


def audit_prompts(
    targets: Sequence[AuditPrompt],
    *,
    style: str,
    wordings: Mapping[str, AuditWording] | None = None,
) -> list[AuditPrompt]:
    """Return targets with the prompts of a style.

    Args:
        targets: Facts; their current `prompt_text` is not used.
        style: One of `AUDIT_STYLES`.
        wordings: As in `audit_prompt_text`.

    Returns:
        The same rows with the prompts of the style.

    Raises:
        ValueError: If the style does not exist.
    """
    texts = (
        audit_prompt_text(target.subject, target.relation, style=style, wordings=wordings)
        for target in targets
    )
    return [
        target.model_copy(update={"prompt_text": text})
        for target, text in zip(targets, texts, strict=True)
    ]


def style_writers(
    styles: Sequence[str] = AUDIT_STYLES, *, wordings: Mapping[str, AuditWording] | None = None
) -> dict[str, Callable[[Sequence[AuditPrompt]], list[AuditPrompt]]]:
    """Return a prompt writer per style.

    Args:
        styles: Names of styles.
        wordings: As in `audit_prompt_text`.

    Returns:
        Style to a function from targets to prompts.

    Raises:
        ValueError: If the style does not exist.
    """
    unknown = [style for style in styles if style not in _FRAMES]
    if unknown:
        raise ValueError(f"style must be one of {', '.join(AUDIT_STYLES)}, got {unknown[0]!r}")
    return {style: partial(audit_prompts, style=style, wordings=wordings) for style in styles}


@cache
def load_wordings() -> Mapping[str, AuditWording]:
    """Read the wordings of the published databases.

    Returns:
        Relation to its wordings; the table is read once.

    Examples:
        >>> load_wordings()["Capital"].question
        'What is the capital of {subject}?'
    """
    lines = _FILE.read_text(encoding="utf-8").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    wordings = {name: AuditWording(question=ask, statement=say) for name, ask, say in rows}
    return MappingProxyType(wordings)


def _wording_of(
    relation: str, wordings: Mapping[str, AuditWording]
) -> tuple[AuditWording, dict[str, str]]:
    """Return the wordings of a relation, or the default ones, and the values of its slots."""
    if relation in wordings:
        return wordings[relation], {}
    for pattern, wording in wordings.items():
        match = _pattern(pattern).fullmatch(relation) if _NAMED.search(pattern) else None
        if match:
            slots = match.groupdict()
            return wording, slots | {name + _LOWER: slots[name].lower() for name in slots}
    words = (
        word if word.isupper() and len(word) > 1 else word.lower() for word in relation.split()
    )
    name = " ".join(words).replace("{", "").replace("}", "")
    plain = AuditWording(
        question=f"What is the {name} of {{subject}}?", statement=f"The {name} of {{subject}} is"
    )
    return plain, {}


def _filled(frame: str, values: Mapping[str, str]) -> str:
    """Fill the slots of a frame once; braces in a value are unchanged."""
    return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), frame)


@cache
def _pattern(relation: str) -> re.Pattern[str]:
    """Convert a relation with slots to a pattern."""
    parts = enumerate(_NAMED.split(relation))
    return re.compile("".join(f"(?P<{x}>.+)" if i % 2 else re.escape(x) for i, x in parts))
