"""The six prompt styles of the audit of forgetting (arXiv 2607.00605, appendix A.1, table 1).

A relation has two wordings, a question and a statement that its object completes; the styles are
frames around them. `audit_wordings.tsv` beside this module words the relations of the published
databases, so that the same fact gives the published text.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from surface_consistency.prompts._audit_wording import (
    AuditWording,
    filled,
    load_wordings,
    possessive,
    wording_of,
)
from surface_consistency.schemas import AuditPrompt

__all__ = [
    "AUDIT_STYLES",
    "AuditWording",
    "audit_prompt_text",
    "audit_prompts",
    "load_wordings",
    "style_writers",
]

_PROFILE: Final = (
    "Context: I am compiling a concise factual profile for {subject}. Answer with a short factual "
    "phrase.\nQuestion: {question}"
)
_SHOTS: Final = (
    "Answer the final question with a short factual phrase.\n\n"
    "Question: Where was Ada Lovelace born?\nAnswer: London\n\n"
    "Question: In what year was Pride and Prejudice published?\nAnswer: 1813\n\n"
    "Question: {question}\nAnswer:"
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


def audit_prompt_text(
    subject: str,
    relation: str,
    *,
    style: str,
    wordings: Mapping[str, AuditWording] | None = None,
) -> str:
    """Put a fact into words.

    Args:
        subject: Whom or what is asked about.
        relation: What is asked.
        style: One of `AUDIT_STYLES`.
        wordings: Wordings by relation; a relation may hold slots, such as "Leader after {person}".
            None for those of the published databases. A relation without wording is asked as
            "What is the <relation> of <subject>?".

    Returns:
        What the model reads.

    Raises:
        ValueError: If there is no such style.

    Examples:
        >>> audit_prompt_text("Japan", "Capital", style="cloze")
        'Complete the sentence with the missing fact: The capital of Japan is ____.'
        >>> audit_prompt_text("Quito", "Elevation", style="direct_questions")
        'What is the elevation of Quito?'
    """
    if style not in _FRAMES:
        raise ValueError(f"style must be one of {', '.join(AUDIT_STYLES)}, got {style!r}")
    known = load_wordings() if wordings is None else wordings
    wording, slots = wording_of(relation, known)
    slots = {**slots, "subject": subject, "subject's": possessive(subject)}
    question, statement = filled(wording.question, slots), filled(wording.statement, slots)
    return filled(
        _FRAMES[style], {"subject": subject, "question": question, "statement": statement}
    )


def audit_prompts(
    targets: Sequence[AuditPrompt],
    *,
    style: str,
    wordings: Mapping[str, AuditWording] | None = None,
) -> list[AuditPrompt]:
    """Put targets into words.

    Args:
        targets: Facts; what their `prompt_text` says now does not matter.
        style: One of `AUDIT_STYLES`.
        wordings: As in `audit_prompt_text`.

    Returns:
        The same rows, each with the text of the style.

    Raises:
        ValueError: If there is no such style.
    """
    known = load_wordings() if wordings is None else wordings
    return [
        target.model_copy(
            update={
                "prompt_text": audit_prompt_text(
                    target.subject, target.relation, style=style, wordings=known
                )
            }
        )
        for target in targets
    ]


def style_writers(
    styles: Sequence[str] = AUDIT_STYLES, *, wordings: Mapping[str, AuditWording] | None = None
) -> dict[str, Callable[[Sequence[AuditPrompt]], list[AuditPrompt]]]:
    """Give a prompt writer for each style.

    Args:
        styles: Names of styles.
        wordings: As in `audit_prompt_text`.

    Returns:
        By style, a function from targets to prompts.

    Raises:
        ValueError: If there is no such style.
    """
    unknown = [style for style in styles if style not in _FRAMES]
    if unknown:
        raise ValueError(f"style must be one of {', '.join(AUDIT_STYLES)}, got {unknown[0]!r}")
    return {style: partial(audit_prompts, style=style, wordings=wordings) for style in styles}
