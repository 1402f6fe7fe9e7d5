"""Topics to prompts: each fact alone, all five at once in balanced orders, and free form."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from surface_consistency.schemas import Message, Prompt
from surface_consistency.schemas.prompts import PromptFormat
from surface_consistency.studies.slaq.queries import (
    QueryWording,
    free_query,
    latin_square_orders,
    topic_query,
)
from surface_consistency.studies.slaq.records import PromptTarget, SlaqForm, SlaqTopic

__all__ = [
    "DEFAULT_INSTRUCTIONS",
    "SlaqInstructions",
    "SlaqPrompts",
    "free_prompts",
    "long_prompts",
    "short_prompts",
    "slaq_prompts",
]

_FORMS: Final = ("short", "long", "free")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlaqInstructions:
    """The wording around a question, one for each form.

    In each text `{topic}` and `{question}` are replaced; other braces stay as they are.

    Raises:
        ValueError: If a text leaves no place for the question.
    """

    short: str = (
        "Give a factual answer to this question on the topic: {topic}. Write one sentence.\n"
        "Question: {question}"
    )
    """For one question alone."""

    long: str = (
        "Answer the question. Cover everything that it asks for, be clear and concise, and add "
        "nothing that it does not ask for.\n"
        "Question: {question}"
    )
    """For the query that lists five."""

    free: str = (
        "Answer the question with the most important facts, clearly and concisely.\n"
        "Question: {question}"
    )
    """For the query that lists none."""

    def __post_init__(self) -> None:
        """Refuse a wording without the question."""
        for name in ("short", "long", "free"):
            if "{question}" not in getattr(self, name):
                raise ValueError(
                    f"the {name} instruction needs {{question}} where the question goes"
                )

    def fill(self, form: str, *, topic: str, question: str) -> str:
        """Write the instruction of a form with its question.

        Args:
            form: "short", "long" or "free".
            topic: Name of the topic.
            question: The question or query.

        Returns:
            The text; braces within topic and question are left alone.

        Raises:
            ValueError: If there is no such form.

        Examples:
            >>> SlaqInstructions(short="On {topic}: {question}").fill(
            ...     "short", topic="sets", question="Is {question} a set?"
            ... )
            'On sets: Is {question} a set?'
        """
        if form not in ("short", "long", "free"):
            raise ValueError(f"form must be one of short, long, free; got {form!r}")
        text: str = getattr(self, form)
        before, _, after = text.partition("{question}")
        return f"{before.replace('{topic}', topic)}{question}{after.replace('{topic}', topic)}"


DEFAULT_INSTRUCTIONS: Final = SlaqInstructions()
"""Own words for what table 4 of the paper asks: one sentence; everything asked, and no more."""


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
    prompt_format: PromptFormat = "chat",
    instructions: SlaqInstructions = DEFAULT_INSTRUCTIONS,
) -> SlaqPrompts:
    """Ask every fact alone.

    Args:
        topics: The topics.
        prompt_format: Chat turn or plain text that ends in "Answer:".
        instructions: The wording around the question.

    Returns:
        Five prompts a topic, in order, under `<question id>/short`.

    Raises:
        ValueError: If `prompt_format` is unknown.
    """
    targets = (
        (
            PromptTarget(
                prompt_id=f"{question.id}/short",
                topic_id=topic.id,
                form="short",
                question_id=question.id,
            ),
            topic.topic,
            question.question,
        )
        for topic in topics
        for question in topic.questions
    )
    return _written(targets, prompt_format, instructions)


def long_prompts(
    topics: Iterable[SlaqTopic],
    *,
    n_permutations: int = 5,
    seed: int = 0,
    wording: QueryWording = "auto",
    prompt_format: PromptFormat = "chat",
    instructions: SlaqInstructions = DEFAULT_INSTRUCTIONS,
) -> SlaqPrompts:
    """Ask all five facts of a topic at once, in several orders.

    Args:
        topics: The topics.
        n_permutations: Orders a topic; with a multiple of five each sub-question stands in each
            slot equally often, see `latin_square_orders`.
        seed: Seed of the orders.
        wording: Where the clauses of the query come from.
        prompt_format: Chat turn or plain text that ends in "Answer:".
        instructions: The wording around the query.

    Returns:
        `n_permutations` prompts a topic, in order, under `<topic id>/long/<permutation>`; the order
        of each stands in its details.

    Raises:
        ValueError: If `n_permutations` is below 1, or `wording` or `prompt_format` is unknown.
    """
    targets, rebuilt = [], []
    for topic in topics:
        parts = topic_query(topic, wording=wording)
        if parts.is_rebuilt:
            rebuilt.append(topic.id)
        orders = latin_square_orders(n_permutations, seed=seed, topic_id=topic.id)
        for permutation, order in enumerate(orders):
            target = PromptTarget(
                prompt_id=f"{topic.id}/long/{permutation}",
                topic_id=topic.id,
                form="long",
                permutation=permutation,
                order=order,
            )
            targets.append((target, topic.topic, parts.query.render(order)))
    return replace(_written(targets, prompt_format, instructions), rebuilt=tuple(rebuilt))


def free_prompts(
    topics: Iterable[SlaqTopic],
    *,
    prompt_format: PromptFormat = "chat",
    instructions: SlaqInstructions = DEFAULT_INSTRUCTIONS,
) -> SlaqPrompts:
    """Ask for a topic without listing its facts.

    Args:
        topics: The topics.
        prompt_format: Chat turn or plain text that ends in "Answer:".
        instructions: The wording around the query.

    Returns:
        One prompt a topic, in order, under `<topic id>/free`.

    Raises:
        ValueError: If `prompt_format` is unknown.
    """
    targets = (
        (PromptTarget(prompt_id=f"{t.id}/free", topic_id=t.id, form="free"), t.topic, free_query(t))
        for t in topics
    )
    return _written(targets, prompt_format, instructions)


def slaq_prompts(
    topics: Sequence[SlaqTopic],
    *,
    forms: Sequence[SlaqForm] = ("short", "long"),
    n_permutations: int = 5,
    seed: int = 0,
    wording: QueryWording = "auto",
    prompt_format: PromptFormat = "chat",
    instructions: SlaqInstructions = DEFAULT_INSTRUCTIONS,
) -> SlaqPrompts:
    """Build all prompts of a study.

    Args:
        topics: The topics.
        forms: Which forms to ask, in this order.
        n_permutations: As for `long_prompts`.
        seed: As for `long_prompts`.
        wording: As for `long_prompts`.
        prompt_format: Chat turn or plain text that ends in "Answer:".
        instructions: The wording around questions.

    Returns:
        The prompts, form by form.

    Raises:
        ValueError: If a form is unknown, given twice, or none is given, or as `long_prompts` does.
    """
    if not forms or len(set(forms)) != len(forms) or not set(forms) <= set(_FORMS):
        raise ValueError(f"forms must be some of {', '.join(_FORMS)}, each once; got {list(forms)}")
    long = partial(long_prompts, n_permutations=n_permutations, seed=seed, wording=wording)
    builders: dict[str, Callable[..., SlaqPrompts]] = {"short": short_prompts, "free": free_prompts}
    builders["long"] = long
    built = SlaqPrompts(prompts=(), details=())
    for form in forms:
        built += builders[form](topics, prompt_format=prompt_format, instructions=instructions)
    return built


def _written(
    targets: Iterable[tuple[PromptTarget, str, str]],
    prompt_format: PromptFormat,
    instructions: SlaqInstructions,
) -> SlaqPrompts:
    """Write the prompt of each target, its topic's name and its question, under the target's id."""
    if prompt_format not in ("chat", "completion"):
        raise ValueError(f"prompt_format must be one of chat, completion; got {prompt_format!r}")
    details, prompts = [], []
    for target, topic, question in targets:
        content = instructions.fill(target.form, topic=topic, question=question)
        group = f"slaq|{target.form}|{target.topic_id}"
        details.append(target)
        if prompt_format == "chat":
            turns = (Message(role="user", content=content),)
            prompts.append(Prompt(id=target.prompt_id, messages=turns, group=group))
        else:
            text = f"{content}\nAnswer:"
            prompts.append(Prompt(id=target.prompt_id, text=text, group=group))
    return SlaqPrompts(prompts=tuple(prompts), details=tuple(details))
