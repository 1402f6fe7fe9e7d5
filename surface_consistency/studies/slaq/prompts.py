"""Topics to prompts: each fact alone, all five at once in balanced orders, and free form."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from surface_consistency.data.slaq_records import SlaqTopic
from surface_consistency.schemas import Message, Prompt
from surface_consistency.schemas.prompts import PromptFormat
from surface_consistency.studies.slaq.queries import (
    QueryWording,
    TopicQuery,
    free_query,
    latin_square_orders,
    topic_query,
)
from surface_consistency.studies.slaq.records import PromptTarget, SlaqForm

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
        for name in _FORMS:
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
        if form not in _FORMS:
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
        forms: Which forms to ask, in this order: "short" asks every fact alone, "long" all five of
            a topic at once, in several orders, and "free" for the topic without listing its facts.
        n_permutations: Orders a topic; with a multiple of five each sub-question stands in each
            slot equally often, see `latin_square_orders`.
        seed: Seed of the orders.
        wording: Where the clauses of the long query come from.
        prompt_format: Chat turn or plain text that ends in "Answer:".
        instructions: The wording around questions.

    Returns:
        The prompts, form by form: five short ones a topic, under `<question id>/short`;
        `n_permutations` long ones, under `<topic id>/long/<permutation>`, the order of each in its
        details; one free one, under `<topic id>/free`.

    Raises:
        ValueError: If a form is unknown, given twice, or none is given, `n_permutations` is below
            1, or `wording` or `prompt_format` is unknown.
    """
    if not forms or len(set(forms)) != len(forms) or not set(forms) <= set(_FORMS):
        raise ValueError(f"forms must be some of {', '.join(_FORMS)}, each once; got {list(forms)}")
    if prompt_format not in ("chat", "completion"):
        raise ValueError(f"prompt_format must be one of chat, completion; got {prompt_format!r}")
    queries = {}
    if "long" in forms:
        queries = {topic.id: topic_query(topic, wording=wording) for topic in topics}
    details, prompts = [], []
    for form in forms:
        for topic in topics:
            for target, question in _targets(
                topic, form, queries.get(topic.id), n_permutations, seed
            ):
                details.append(target)
                content = instructions.fill(form, topic=topic.topic, question=question)
                prompts.append(_prompt(target, content, prompt_format))
    return SlaqPrompts(
        prompts=tuple(prompts),
        details=tuple(details),
        rebuilt=tuple(dict.fromkeys(name for name, query in queries.items() if query.is_rebuilt)),
    )


def _targets(
    topic: SlaqTopic, form: SlaqForm, parts: TopicQuery | None, n_permutations: int, seed: int
) -> Iterator[tuple[PromptTarget, str]]:
    """List what the prompts of a topic in a form ask for, with their questions."""
    if form == "short":
        for item in topic.questions:
            yield (
                PromptTarget(
                    prompt_id=f"{item.id}/short", topic_id=topic.id, form=form, question_id=item.id
                ),
                item.question,
            )
    elif parts is None or form == "free":
        yield (
            PromptTarget(prompt_id=f"{topic.id}/free", topic_id=topic.id, form=form),
            free_query(topic),
        )
    else:
        orders = latin_square_orders(n_permutations, seed=seed, topic_id=topic.id)
        for permutation, order in enumerate(orders):
            target = PromptTarget(
                prompt_id=f"{topic.id}/long/{permutation}",
                topic_id=topic.id,
                form=form,
                permutation=permutation,
                order=order,
            )
            yield target, parts.query.render(order)


def _prompt(target: PromptTarget, content: str, prompt_format: PromptFormat) -> Prompt:
    """Write a prompt under the id of its target."""
    group = f"slaq|{target.form}|{target.topic_id}"
    if prompt_format == "chat":
        turns = (Message(role="user", content=content),)
        return Prompt(id=target.prompt_id, messages=turns, group=group)
    return Prompt(id=target.prompt_id, text=f"{content}\nAnswer:", group=group)
