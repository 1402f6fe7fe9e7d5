"""SLAQ: topics of five facts, asked one by one and all at once, and what came of it."""

import hashlib
import re
from typing import Literal

from pydantic import Field, model_validator

from surface_consistency.schemas._record import Items, NonEmpty, Record
from surface_consistency.schemas.outcomes import PairedOutcome
from surface_consistency.schemas.verdicts import Verdict

SlaqForm = Literal["short", "long", "free"]
"""One fact alone, all five listed in one query, or a query on the topic that lists none."""

Popularity = Literal["popular", "obscure"]
"""The half with more page views, and the other."""

_N_FACTS = 5


def topic_id_of(topic: str) -> str:
    """Name a topic by what it is called, so that the name survives a new order of the rows.

    Args:
        topic: The topic, as its source spells it.

    Returns:
        Its letters and digits, lower case, joined by hyphens, and the first eight hexadecimal
        digits of its SHA-256: topics that differ in punctuation alone stay apart.

    Examples:
        >>> topic_id_of("The Punic Wars"), topic_id_of("Null")
        ('the-punic-wars-f29bf10f', 'null-fa1d2db6')
    """
    words = "-".join(re.findall(r"[^\W_]+", topic.lower())) or "topic"
    return f"{words}-{hashlib.sha256(topic.encode()).hexdigest()[:8]}"


class SlaqArticle(Record):
    """What the question writer reads: one article, cleaned to plain text."""

    title: NonEmpty
    """Title of the article: the topic."""

    category: NonEmpty
    """Category that it was taken from."""

    text: NonEmpty
    """The article's text."""

    url: str | None = None
    """Its address; None when not given."""

    pageviews: int | None = Field(default=None, ge=0)
    """Its views over the period of the data set; None when unknown."""

    @property
    def topic_id(self) -> str:
        """Identifier of the topic made from it."""
        return topic_id_of(self.title)


class SlaqQuestion(Record):
    """One fact of a topic: a question that stands on its own, and its short answer."""

    id: NonEmpty
    """`<topic id>/<index>`."""

    index: int = Field(ge=1, le=_N_FACTS)
    """Place in the source's columns, 1 to 5."""

    question: NonEmpty
    """The short question."""

    answer: NonEmpty
    """The reference answer, under ten words by the paper's rule."""

    is_entity: bool | None
    """Whether the answer is a named entity; None when the source does not say."""


class SlaqTopic(Record):
    """A topic: five facts, and one long query that asks for all of them."""

    id: NonEmpty
    """Stable identifier, unique in its data set."""

    category: NonEmpty
    """Wikipedia category, such as "Astronomy"."""

    topic: NonEmpty
    """Name of the topic; never normalised."""

    url: str | None
    """Address of the article; None when not given."""

    questions: Items[SlaqQuestion]
    """The five facts, by index."""

    long_question: NonEmpty
    """The long query, which lists the five in the source's order."""

    long_answer: NonEmpty
    """The five answers as one paragraph."""

    pageviews: int | None = Field(default=None, ge=0)
    """Views of the article over the source's period; None when unknown."""

    popularity: Popularity | None = None
    """Half by page views; None when these are unknown."""

    @model_validator(mode="after")
    def _has_five_questions(self) -> "SlaqTopic":
        """Refuse a topic whose questions are not the five of this topic in order."""
        given = [question.index for question in self.questions]
        if given != list(range(1, _N_FACTS + 1)):
            raise ValueError(f"a topic has five questions with index 1 to 5 in order, got {given}")
        for question in self.questions:
            if question.id != f"{self.id}/{question.index}":
                raise ValueError(
                    f"question {question.index} of topic {self.id!r} must have the id "
                    f"'{self.id}/{question.index}', got {question.id!r}"
                )
        return self


class PromptTarget(Record):
    """What a prompt asks for: kept beside the `Prompt`, under its id."""

    prompt_id: NonEmpty
    """Identifier of the prompt, and so of its generation."""

    topic_id: NonEmpty
    """The topic."""

    form: SlaqForm
    """Short, long, or free."""

    question_id: str | None = None
    """The one question of a short prompt; None otherwise."""

    permutation: int | None = Field(default=None, ge=0)
    """Number of the long prompt among those of its topic, from 0; None otherwise."""

    order: Items[int] = ()
    """For a long prompt the index (1 to 5) of the question in each slot; empty otherwise."""

    @model_validator(mode="after")
    def _fits_its_form(self) -> "PromptTarget":
        """Refuse a prompt whose fields belong to another form."""
        if (self.question_id is not None) != (self.form == "short"):
            raise ValueError("`question_id` is given exactly for short prompts")
        is_long = self.form == "long"
        if (self.permutation is not None) != is_long or bool(self.order) != is_long:
            raise ValueError("`permutation` and `order` are given exactly for long prompts")
        if is_long and sorted(self.order) != list(range(1, _N_FACTS + 1)):
            raise ValueError(f"`order` holds 1 to {_N_FACTS} once each, got {list(self.order)}")
        return self

    @property
    def order_id(self) -> str | None:
        """The order as text, such as "3-1-5-2-4"; None unless the prompt is long."""
        return "-".join(map(str, self.order)) or None

    @property
    def zero_based_order(self) -> tuple[int, ...]:
        """The order with questions counted from 0, as `metrics.alignment` takes `orders`."""
        return tuple(index - 1 for index in self.order)

    def slot_of(self, index: int) -> int:
        """Find where a question stands in a long prompt.

        Args:
            index: Index of the question, 1 to 5.

        Returns:
            Its slot, from 1.

        Raises:
            ValueError: If the prompt is not long or there is no such question.
        """
        if index not in self.order:
            raise ValueError(f"{self.form} prompt {self.prompt_id!r} has no slot of {index}")
        return self.order.index(index) + 1


class SlaqVerdict(Verdict):
    """The judgement of one fact in one answer."""

    is_recalled: bool | None = None
    """Whether the answer speaks of the fact at all, rightly or wrongly; None when not asked."""

    attempts: int = Field(default=0, ge=0)
    """How often a model that judges was asked; 0 when there was nothing to ask about."""

    @model_validator(mode="after")
    def _right_is_recalled(self) -> "SlaqVerdict":
        """Refuse a right answer that is not there."""
        if self.is_correct and self.is_recalled is False:
            raise ValueError("a fact that is not recalled cannot be correct")
        return self


class SlaqOutcome(PairedOutcome):
    """A fact of SLAQ, asked alone and in one long query."""

    topic_id: NonEmpty
    """The topic: the coarser cluster."""

    category: NonEmpty
    """Category of the topic."""

    popularity: Popularity | None
    """Half of the topic by page views."""

    is_entity: bool | None
    """Whether the answer is a named entity."""

    question_index: int = Field(ge=1, le=_N_FACTS)
    """Place of the fact in the source, 1 to 5."""

    permutation: int | None = Field(ge=0)
    """Number of the long prompt among those of its topic; None in free form."""

    slot: int | None = Field(ge=1, le=_N_FACTS)
    """Where the long query asks for the fact, from 1; None in free form."""

    n_slots: int | None = Field(ge=1, le=_N_FACTS)
    """Slots of the long query; None in free form."""

    order_id: str | None
    """Order of the long query, such as "3-1-5-2-4"; None in free form."""

    is_recalled: bool | None
    """Whether the long answer speaks of the fact at all; None when the judge was not asked."""

    first_prediction: str | None
    """The short answer; None when there is none."""

    second_prediction: str | None
    """The long answer, whole; None when there is none."""
