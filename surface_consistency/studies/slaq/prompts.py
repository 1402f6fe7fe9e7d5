"""Prompts of topics: one fact per query, all five in one query in several orders, and free form."""

from collections.abc import Iterator

import pandas as pd

from surface_consistency.data.questions import plain_values
from surface_consistency.schemas import Message, Prompt
from surface_consistency.studies.slaq.queries import (
    free_query,
    latin_square_orders,
    random_orders,
    topic_query,
)
from surface_consistency.studies.slaq.records import SlaqForm
from surface_consistency.studies.slaq.settings import SlaqSettings


def fill_instruction(instruction: str, *, topic: str, question: str) -> str:
    """Write an instruction with its question.

    Args:
        instruction: Text with `{question}` and optionally `{topic}`; other braces are unchanged.
        topic: Name of the topic.
        question: The question or query.

    Returns:
        The text; braces within topic and question are unchanged.

    Examples:
        >>> fill_instruction(
        ...     "On {topic}: {question}", topic="sets", question="Is {question} a set?"
        ... )
        'On sets: Is {question} a set?'
    """
    before, _, after = instruction.partition("{question}")
    return f"{before.replace('{topic}', topic)}{question}{after.replace('{topic}', topic)}"


def slaq_prompts(rows: pd.DataFrame, settings: SlaqSettings) -> tuple[list[Prompt], pd.DataFrame]:
    """Build all prompts of a study.

    Args:
        rows: Facts, columns of `data.slaq.TOPIC_COLUMNS`, the five of a topic in order.
        settings: The forms, the number and seed of orders, and the wording.

    Returns:
        The prompts, form by form, with their ids: five short ones per topic, `<fact id>/short`;
        `permutations` long ones, `<topic id>/long/<permutation>`; one free one, `<topic id>/free`.
        And one row per prompt, in the same order: prompt_id, topic_id, form; permutation, the
        number of a long prompt within its topic, from 0; order, the indices (1 to 5) of the
        questions in their slots, one index for a short prompt and an empty tuple for a free one;
        order_id, the order of a long prompt as text, such as "3-1-5-2-4"; is_rebuilt, whether a
        long query was built from the short questions of its topic.
    """
    prompts: list[Prompt] = []
    listed = []
    for form in settings.forms:
        instruction = getattr(settings, f"{form}_instruction")
        for topic_id, facts in rows.groupby("topic_id", sort=False):
            topic = facts["topic"].iloc[0]
            for name, permutation, order, is_rebuilt, question in _questions(facts, form, settings):
                content = fill_instruction(instruction, topic=topic, question=question)
                order_id = "-".join(map(str, order)) if form == "long" else None
                listed.append((name, topic_id, form, permutation, order, order_id, is_rebuilt))
                prompts.append(_prompt(name, content, f"slaq|{form}|{topic_id}", settings))
    columns = ["prompt_id", "topic_id", "form", "permutation", "order", "order_id", "is_rebuilt"]
    return prompts, pd.DataFrame(listed, columns=columns).astype({"permutation": "Int64"})


def _questions(
    facts: pd.DataFrame, form: SlaqForm, settings: SlaqSettings
) -> Iterator[tuple[str, int | None, tuple[int, ...], bool, str]]:
    """List the questions on a topic: prompt, permutation, order, whether it is rebuilt, text."""
    topic_id, topic, long_question = facts[["topic_id", "topic", "long_question"]].iloc[0]
    if form == "short":
        columns = ("item", "question_index", "question")
        for item, index, question in plain_values(facts, columns):
            yield f"{item}/short", None, (index,), False, question
    elif form == "free":
        yield f"{topic_id}/free", None, (), False, free_query(topic)
    else:
        query, is_rebuilt = topic_query(
            topic, long_question, facts["question"], wording=settings.wording
        )
        draw = random_orders if settings.orders == "random" else latin_square_orders
        orders = draw(settings.permutations, seed=settings.seed, topic_id=topic_id)
        for permutation, order in enumerate(orders):
            name = f"{topic_id}/long/{permutation}"
            yield name, permutation, order, is_rebuilt, query.render(order)


def _prompt(name: str, content: str, group: str, settings: SlaqSettings) -> Prompt:
    """Write a chat turn, or plain text that ends in "Answer:"."""
    if settings.completion:
        return Prompt(id=name, text=f"{content}\nAnswer:", group=group)
    return Prompt(id=name, messages=(Message(role="user", content=content),), group=group)
