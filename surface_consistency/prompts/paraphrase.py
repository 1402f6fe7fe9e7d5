"""The request for paraphrases of a question, in this package's words: RedirectQA prints none."""

from collections.abc import Sequence
from typing import Final

from surface_consistency.prompts.few_shot import PromptFormat
from surface_consistency.prompts.paper_prompts import fill_holes
from surface_consistency.schemas import Message, Prompt

__all__ = ["paraphrase_prompt"]

_TASK: Final = """\
Ask the question below in other words, in {how_many} different ways.

Rules
1. Each way asks for exactly the same thing, in the language of the question, and no more.
2. The name {name} stands in each exactly as it is written here, once.
3. Say nothing about {name} that the question does not say, and do not answer it.
4. One question a line, numbered, and nothing else.

An example for the name Middlemarch: "Who is the author of Middlemarch?" becomes "Who wrote \
Middlemarch?"
{others}
Question: {question}"""

_OTHERS: Final = """
These are taken already; find others:
{listed}
"""


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
        prompt_format: A turn of a conversation, or plain text that ends in "1.".

    Returns:
        The prompt.

    Raises:
        ValueError: If `number` is below 1, or there is no such format.
    """
    if number < 1:
        raise ValueError(f"number counts paraphrases and must be 1 or more, got {number}")
    if prompt_format not in ("chat", "completion"):
        raise ValueError(f"prompt_format must be one of chat, completion; got {prompt_format!r}")
    listed = "\n".join(f"- {one}" for one in taken)
    parts = {
        "how_many": str(number),
        "name": name,
        "others": _OTHERS.replace("{listed}", listed) if taken else "",
        "question": question,
    }
    content = fill_holes(_TASK, parts)
    if prompt_format == "completion":
        return Prompt(id=prompt_id, text=f"{content}\n1.")
    return Prompt(id=prompt_id, messages=(Message(role="user", content=content),))
