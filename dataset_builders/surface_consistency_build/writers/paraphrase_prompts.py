"""The request for paraphrases of a question, in this package's words: RedirectQA prints none.

Solved examples stand before it, since small models follow these better than rules. None is of the
relations of RedirectQA, so that no wording of its own is suggested.
"""

from collections.abc import Sequence
from typing import Final

from surface_consistency.schemas import Message, Prompt
from surface_consistency.schemas.prompts import PromptFormat

_TASK: Final = """\
Ask each question in other words. Every new wording asks for exactly the same thing, in the \
language of the question; the name stands in it once, exactly as it is written; nothing is added \
about it, and the question is not answered. Write one question a line, numbered, and nothing \
else."""

_EXAMPLES: Final = (
    (
        "When was the Eiffel Tower built?",
        "Eiffel Tower",
        (
            "In which year was the Eiffel Tower built?",
            "What is the year in which the Eiffel Tower was constructed?",
            "Can you tell when the Eiffel Tower was put up?",
        ),
    ),
    (
        "What language is spoken in Peru?",
        "Peru",
        (
            "Which language do people speak in Peru?",
            "What is the language of Peru?",
            "In Peru, what language is used?",
        ),
    ),
    (
        "Who founded Ikea?",
        "Ikea",
        (
            "Who is the founder of Ikea?",
            "By whom was Ikea founded?",
            "Which person started Ikea?",
        ),
    ),
)


def paraphrase_prompt(
    question: str,
    name: str,
    *,
    number: int,
    prompt_id: str,
    taken: Sequence[str] = (),
    prompt_format: PromptFormat = "chat",
) -> Prompt:
    """Ask for paraphrases of a question.

    Args:
        question: The question.
        name: The name of its subject, which shall stay.
        number: How many paraphrases, from 1.
        prompt_id: Identifier of the prompt.
        taken: Questions that are not asked for again.
        prompt_format: Turns of a conversation, or plain text that ends in "1.".

    Returns:
        The prompt.

    Raises:
        ValueError: If `number` is below 1, or there is no such format.
    """
    if number < 1:
        raise ValueError(f"number counts paraphrases and must be 1 or more, got {number}")
    if prompt_format not in ("chat", "completion"):
        raise ValueError(f"prompt_format must be one of chat, completion; got {prompt_format!r}")
    solved = [
        (_request(example, held, number), _listed(answers[:number]))
        for example, held, answers in _EXAMPLES
    ]
    request = _request(question, name, number)
    if taken:
        request = f"Taken already: {' | '.join(taken)}\n{request}"
    if prompt_format == "completion":
        shown = "\n\n".join(f"{asked}\n{answer}" for asked, answer in solved)
        return Prompt(id=prompt_id, text=f"{_TASK}\n\n{shown}\n\n{request}\n1.")
    turns: list[Message] = []
    for asked, answer in solved:
        content = asked if turns else f"{_TASK}\n\n{asked}"
        turns.append(Message(role="user", content=content))
        turns.append(Message(role="assistant", content=answer))
    return Prompt(id=prompt_id, messages=(*turns, Message(role="user", content=request)))


def _request(question: str, name: str, number: int) -> str:
    """Name a question and what is to stay of it."""
    wordings = "1 wording" if number == 1 else f"{number} wordings"
    return f"Question: {question}\nName: {name}\nWrite {wordings}."


def _listed(lines: Sequence[str]) -> str:
    """Number lines."""
    return "\n".join(f"{place}. {line}" for place, line in enumerate(lines, start=1))
