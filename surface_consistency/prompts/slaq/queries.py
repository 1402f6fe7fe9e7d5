"""The long query of a topic, ready to be put in any order."""

from dataclasses import dataclass
from typing import Literal

from surface_consistency.schemas.slaq import SlaqTopic
from surface_consistency.schemas.slaq_query import LongQuery, parse_long_query

__all__ = ["QueryWording", "TopicQuery", "free_query", "topic_query"]

QueryWording = Literal["auto", "query", "questions"]
"""Where the clauses come from: the topic's own long query, or its short questions. "auto" takes the
query unless a clause of it may point at another ("he", "the latter")."""

_LABELS = ("(1)", "(2)", "(3)", "(4)", "(5)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicQuery:
    """A long query in parts, and where its wording comes from."""

    query: LongQuery
    """The parts; clause k asks for question k of the topic."""

    is_rebuilt: bool
    """Whether the clauses are the short questions rather than the topic's own long query."""


def topic_query(topic: SlaqTopic, *, wording: QueryWording = "auto") -> TopicQuery:
    """Take a topic's long query apart, or build one from its short questions.

    It is built where the topic's own lists anything but five sub-questions. The clauses of the own
    query are taken to be in the order of the short questions, as the layout of SLAQ has them.

    Args:
        topic: The topic.
        wording: Where the clauses come from; "query" keeps the own wording wherever it parses.

    Returns:
        The query in parts.

    Raises:
        ValueError: If `wording` is unknown.
    """
    if wording not in ("auto", "query", "questions"):
        raise ValueError(f"wording must be one of auto, query, questions; got {wording!r}")
    query = None if wording == "questions" else parse_long_query(topic.long_question)
    if query is None or (wording == "auto" and query.dependent):
        return TopicQuery(query=_from_questions(topic), is_rebuilt=True)
    if not query.lead:
        query = query.model_copy(update={"lead": f"Discuss {topic.topic} by covering"})
    return TopicQuery(query=query, is_rebuilt=False)


def free_query(topic: SlaqTopic) -> str:
    """Ask for a topic without listing what shall be told.

    Args:
        topic: The topic.

    Returns:
        The query, such as "Tell me about the Punic Wars."
    """
    name = topic.topic.strip()
    if name.startswith("The "):
        name = "the " + name.removeprefix("The ")
    mark = "" if name.endswith((".", "?", "!")) else "."
    return f"Tell me about {name}{mark}"


def _from_questions(topic: SlaqTopic) -> LongQuery:
    """List the short questions, each a sentence of its own."""
    name = topic.topic.strip()
    return LongQuery(
        lead=f"Discuss the topic {name} by answering these questions:",
        clauses=tuple(_sentence(question.question) for question in topic.questions),
        labels=_LABELS,
        separator="",
    )


def _sentence(question: str) -> str:
    """Put a short question on one line that ends with a mark."""
    plain = " ".join(question.split())
    return plain if plain.endswith(("?", ".", "!")) else f"{plain}?"
