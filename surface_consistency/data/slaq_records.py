"""Records of SLAQ's topics: five facts each, and one long query for all of them."""

import hashlib
import re
from typing import Final, Literal

from pydantic import Field, model_validator

from surface_consistency.reading import shown
from surface_consistency.schemas._record import Items, NonEmpty, Record

Popularity = Literal["popular", "obscure"]
"""Half of the topics of a category by page views: the more viewed one, and the other."""

N_FACTS: Final = 5
"""Facts per topic."""


def topic_id_of(topic: str) -> str:
    """Return an id of a topic from its name, which does not depend on the order of the rows.

    Args:
        topic: The topic, as its source spells it.

    Returns:
        Its letters and digits, lower case, joined by hyphens, and the first eight hexadecimal
        digits of its SHA-256: topics that differ only in punctuation have different ids.

    Examples:
        >>> topic_id_of("The Punic Wars"), topic_id_of("Null")
        ('the-punic-wars-f29bf10f', 'null-fa1d2db6')
    """
    words = "-".join(re.findall(r"[^\W_]+", topic.lower())) or "topic"
    return f"{words}-{hashlib.sha256(topic.encode()).hexdigest()[:8]}"


class SlaqArticle(Record):
    """Input of the question writer: one article, cleaned to plain text."""

    title: NonEmpty
    """Title of the article: the topic."""

    category: NonEmpty
    """Category that it was taken from."""

    text: NonEmpty
    """The article's text."""

    url: str | None = None
    """Its URL; None if not given."""

    pageviews: int | None = Field(default=None, ge=0)
    """Its views over the period of the data set; None if unknown."""

    @property
    def topic_id(self) -> str:
        """Identifier of the topic made from it."""
        return topic_id_of(self.title)


class SlaqQuestion(Record):
    """One fact of a topic: a self-contained question, and its short answer."""

    id: NonEmpty
    """`<topic id>/<index>`."""

    index: int = Field(ge=1, le=N_FACTS)
    """Place in the source's columns, 1 to 5."""

    question: NonEmpty
    """The short question."""

    answer: NonEmpty
    """The reference answer, under ten words by the paper's rule."""

    is_entity: bool | None
    """Whether the answer is a named entity; None if the source does not contain it."""


class SlaqTopic(Record):
    """A topic: five facts, and one long query for all of them."""

    id: NonEmpty
    """Stable identifier, unique in its data set."""

    category: NonEmpty
    """Wikipedia category, such as "Astronomy"."""

    topic: NonEmpty
    """Name of the topic; never normalised."""

    url: str | None
    """URL of the article; None if not given."""

    questions: Items[SlaqQuestion]
    """The five facts, by index."""

    long_question: NonEmpty
    """The long query, which lists the five in the source's order."""

    long_answer: NonEmpty
    """The five answers as one paragraph."""

    pageviews: int | None = Field(default=None, ge=0)
    """Views of the article over the source's period; None if unknown."""

    popularity: Popularity | None = None
    """Half by page views; None if these are unknown, or the topic is in neither half."""

    @model_validator(mode="after")
    def _has_five_questions(self) -> "SlaqTopic":
        """Check that the questions are the five of this topic in order."""
        given = [question.index for question in self.questions]
        if given != list(range(1, N_FACTS + 1)):
            raise ValueError(f"a topic has five questions with index 1 to 5 in order, got {given}")
        for question in self.questions:
            if question.id != f"{self.id}/{question.index}":
                raise ValueError(
                    f"question {question.index} of topic {shown(self.id)} must have the id "
                    f"'{self.id}/{question.index}', got {shown(question.id)}"
                )
        return self
