"""Topics to prompts: each fact alone, all five at once in balanced orders, and free form."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from surface_consistency.prompts.slaq.instructions import DEFAULT_INSTRUCTIONS, SlaqInstructions
from surface_consistency.prompts.slaq.orders import latin_square_orders
from surface_consistency.prompts.slaq.queries import QueryWording, free_query, topic_query
from surface_consistency.schemas import Message, Prompt
from surface_consistency.schemas.slaq import SlaqForm, PromptTarget, SlaqTopic

__all__ = [
    "SlaqPrompts",
    "SlaqStyle",
    "free_prompts",
    "long_prompts",
    "short_prompts",
    "slaq_prompts",
]

SlaqStyle = Literal["chat", "completion"]
"""A turn for the model's chat template, or plain text that ends in "Answer:"."""

_FORMS: Final = ("short", "long", "free")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlaqPrompts:
    """Prompts, and what each of them asks for."""

    prompts: tuple[Prompt, ...]
    """What is sent to the model."""

    details: tuple[PromptTarget, ...]
    """What each asks for: `details[i]` belongs to `prompts[i]`."""

    rebuilt: tuple[str, ...] = ()
    """Topics whose long query was built from their short questions."""

    def __add__(self, other: "SlaqPrompts") -> "SlaqPrompts":
        """Put two lots of prompts one after the other."""
        return SlaqPrompts(
            prompts=self.prompts + other.prompts,
            details=self.details + other.details,
            rebuilt=tuple(dict.fromkeys(self.rebuilt + other.rebuilt)),
        )


def short_prompts(
    topics: Iterable[SlaqTopic],
    *,
    style: SlaqStyle = "chat",
    instructions: SlaqInstructions = DEFAULT_INSTRUCTIONS,
) -> SlaqPrompts:
    """Ask every fact alone.

    Args:
        topics: The topics.
        style: Chat turn or plain text.
        instructions: The wording around the question.

    Returns:
        Five prompts a topic, in order, under `<question id>/short`.

    Raises:
        ValueError: If `style` is unknown.
    """
    details, prompts = [], []
    for topic in topics:
        for question in topic.questions:
            detail = PromptTarget(
                prompt_id=f"{question.id}/short",
                topic_id=topic.id,
                form="short",
                question_id=question.id,
            )
            details.append(detail)
            prompts.append(_prompt(detail, topic, question.question, style, instructions))
    return SlaqPrompts(prompts=tuple(prompts), details=tuple(details))


def long_prompts(
    topics: Iterable[SlaqTopic],
    *,
    n_permutations: int = 5,
    seed: int = 0,
    wording: QueryWording = "auto",
    style: SlaqStyle = "chat",
    instructions: SlaqInstructions = DEFAULT_INSTRUCTIONS,
) -> SlaqPrompts:
    """Ask all five facts of a topic at once, in several orders.

    Args:
        topics: The topics.
        n_permutations: Orders a topic; with a multiple of five each sub-question stands in each
            slot equally often, see `latin_square_orders`.
        seed: Seed of the orders.
        wording: Where the clauses of the query come from.
        style: Chat turn or plain text.
        instructions: The wording around the query.

    Returns:
        `n_permutations` prompts a topic, in order, under `<topic id>/long/<permutation>`; the order
        of each stands in its details.

    Raises:
        ValueError: If `n_permutations` is below 1, or `wording` or `style` is unknown.
    """
    details, prompts, rebuilt = [], [], []
    for topic in topics:
        parts = topic_query(topic, wording=wording)
        if parts.is_rebuilt:
            rebuilt.append(topic.id)
        orders = latin_square_orders(n_permutations, seed=seed, topic_id=topic.id)
        for permutation, order in enumerate(orders):
            detail = PromptTarget(
                prompt_id=f"{topic.id}/long/{permutation}",
                topic_id=topic.id,
                form="long",
                permutation=permutation,
                order=order,
            )
            details.append(detail)
            prompts.append(_prompt(detail, topic, parts.query.render(order), style, instructions))
    return SlaqPrompts(prompts=tuple(prompts), details=tuple(details), rebuilt=tuple(rebuilt))


def free_prompts(
    topics: Iterable[SlaqTopic],
    *,
    style: SlaqStyle = "chat",
    instructions: SlaqInstructions = DEFAULT_INSTRUCTIONS,
) -> SlaqPrompts:
    """Ask for a topic without listing its facts.

    Args:
        topics: The topics.
        style: Chat turn or plain text.
        instructions: The wording around the query.

    Returns:
        One prompt a topic, in order, under `<topic id>/free`.

    Raises:
        ValueError: If `style` is unknown.
    """
    details, prompts = [], []
    for topic in topics:
        detail = PromptTarget(prompt_id=f"{topic.id}/free", topic_id=topic.id, form="free")
        details.append(detail)
        prompts.append(_prompt(detail, topic, free_query(topic), style, instructions))
    return SlaqPrompts(prompts=tuple(prompts), details=tuple(details))


def slaq_prompts(
    topics: Sequence[SlaqTopic],
    *,
    forms: Sequence[SlaqForm] = ("short", "long"),
    n_permutations: int = 5,
    seed: int = 0,
    wording: QueryWording = "auto",
    style: SlaqStyle = "chat",
    instructions: SlaqInstructions = DEFAULT_INSTRUCTIONS,
) -> SlaqPrompts:
    """Build all prompts of a study.

    Args:
        topics: The topics.
        forms: Which forms to ask, in this order.
        n_permutations: As for `long_prompts`.
        seed: As for `long_prompts`.
        wording: As for `long_prompts`.
        style: Chat turn or plain text.
        instructions: The wording around questions.

    Returns:
        The prompts, form by form.

    Raises:
        ValueError: If a form is unknown, given twice, or none is given, or as `long_prompts` does.
    """
    if not forms or len(set(forms)) != len(forms) or not set(forms) <= set(_FORMS):
        raise ValueError(f"forms must be some of {', '.join(_FORMS)}, each once; got {list(forms)}")
    parts = {
        "short": lambda: short_prompts(topics, style=style, instructions=instructions),
        "long": lambda: long_prompts(
            topics,
            n_permutations=n_permutations,
            seed=seed,
            wording=wording,
            style=style,
            instructions=instructions,
        ),
        "free": lambda: free_prompts(topics, style=style, instructions=instructions),
    }
    return sum((parts[form]() for form in forms), SlaqPrompts(prompts=(), details=()))


def _prompt(
    detail: PromptTarget,
    topic: SlaqTopic,
    question: str,
    style: SlaqStyle,
    instructions: SlaqInstructions,
) -> Prompt:
    """Write one prompt under its details' id."""
    content = instructions.fill(detail.form, topic=topic.topic, question=question)
    group = f"slaq|{detail.form}|{topic.id}"
    if style == "chat":
        messages = (Message(role="user", content=content),)
        return Prompt(id=detail.prompt_id, messages=messages, group=group)
    if style == "completion":
        return Prompt(id=detail.prompt_id, text=f"{content}\nAnswer:", group=group)
    raise ValueError(f"style must be one of chat, completion; got {style!r}")
