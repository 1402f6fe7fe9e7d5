r"""Questions to few-shot prompts.

The plain form is PopQA's (Mallen et al., 2023), which RedirectQA keeps: demonstrations
`Q: <question> A: <answer>` joined by blank lines, then `Q: <question> A:`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal

from surface_consistency.prompts.demonstrations import Demonstration, DemonstrationPool
from surface_consistency.schemas import Message, Prompt, QuestionRealization

__all__ = ["PromptStyle", "build_prompts", "render_chat", "render_completion"]

PromptStyle = Literal["completion", "chat"]
"""Plain text to continue, or turns for the chat template of an instruction-tuned model."""

_STYLES: Final = ("completion", "chat")


def render_completion(question: str, demonstrations: Sequence[Demonstration]) -> str:
    r"""Write a question after its demonstrations as plain text.

    Args:
        question: The question to answer.
        demonstrations: Solved questions, in order.

    Returns:
        The text; it ends with "A:" and no space.

    Examples:
        >>> render_completion("Who?", [Demonstration(question="Where?", answer="Rome")])
        'Q: Where? A: Rome\n\nQ: Who? A:'
    """
    solved = [f"Q: {item.question} A: {item.answer}" for item in demonstrations]
    return "\n\n".join([*solved, f"Q: {question} A:"])


def render_chat(question: str, demonstrations: Sequence[Demonstration]) -> tuple[Message, ...]:
    """Write a question after its demonstrations as turns of a conversation.

    Args:
        question: The question to answer.
        demonstrations: Solved questions, in order.

    Returns:
        One user and one assistant turn for each demonstration, then the user's question.
    """
    turns: list[Message] = []
    for item in demonstrations:
        turns.append(Message(role="user", content=f"Q: {item.question} A:"))
        turns.append(Message(role="assistant", content=item.answer))
    return (*turns, Message(role="user", content=f"Q: {question} A:"))


def build_prompts(
    questions: Sequence[QuestionRealization],
    pool: DemonstrationPool,
    *,
    shots: int = 15,
    style: PromptStyle = "completion",
    fits: Callable[[Prompt], bool] | None = None,
) -> Iterator[Prompt]:
    """Turn questions into prompts, one each, under the questions' ids.

    All questions of a fact under one template get the same demonstrations, so the members of a
    pair differ in the surface form alone.

    Args:
        questions: What to ask.
        pool: Where the demonstrations come from.
        shots: Demonstrations a prompt: 15 for RedirectQA v1.0.0, 14 for v0.1.0.
        style: "completion" or "chat".
        fits: Tells whether a prompt fits the model. When given, facts of which any prompt does not
            fit lose demonstrations from the front, all their prompts alike, until they fit or none
            is left. None leaves every prompt at its full length.

    Yields:
        The prompts, in the order of the questions. `group` names what shares its demonstrations,
        as `<template>|<relation or fact>|<number of demonstrations>`.

    Raises:
        ValueError: If `style` is unknown or the pool is too small for `shots`.
    """
    if style not in _STYLES:
        raise ValueError(f"style must be one of {', '.join(_STYLES)}, got {style!r}")

    def prompt_of(question: QuestionRealization, n_shots: int) -> Prompt:
        demonstrations = pool.draw(question, shots)[shots - n_shots :]
        group = f"{question.template}|{pool.unit(question)}|{n_shots}"
        if style == "chat":
            messages = render_chat(question.question, demonstrations)
            return Prompt(id=question.id, messages=messages, group=group)
        text = render_completion(question.question, demonstrations)
        return Prompt(id=question.id, text=text, group=group)

    shots_of = {} if fits is None else _fitting_shots(questions, shots, prompt_of, fits)
    for question in questions:
        yield prompt_of(question, shots_of.get((question.triple.id, question.template), shots))


def _fitting_shots(
    questions: Iterable[QuestionRealization],
    shots: int,
    prompt_of: Callable[[QuestionRealization, int], Prompt],
    fits: Callable[[Prompt], bool],
) -> dict[tuple[str, str], int]:
    """Count for each fact and template the demonstrations with which all its prompts fit."""
    shots_of: dict[tuple[str, str], int] = {}
    for question in questions:
        key = (question.triple.id, question.template)
        n_shots = shots_of.get(key, shots)
        while n_shots and not fits(prompt_of(question, n_shots)):
            n_shots -= 1
        shots_of[key] = n_shots
    return shots_of
