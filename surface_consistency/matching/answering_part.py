"""The part of a long answer that answers one of its questions: a numbered item, or clauses."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from surface_consistency.text import normalize

_ITEM: Final = re.compile(r"^[*_#>\- \t]*\(?(\d)[.):][*_]*(?=\s|$)", re.MULTILINE)
_ABBREVIATIONS: Final = "".join(
    rf"(?<!\b{word}\.)" for word in ("St", "Dr", "Mr", "Ms", "Mrs", "Jr", "vs", "[A-Z]")
)
_SENTENCE: Final = re.compile(
    rf"(?:(?<=[.!?])|(?<=[.!?][\"'”’)\]*])){_ABBREVIATIONS}\s+|(?<=[。！？])|\n+"
)
_CLAUSE: Final = re.compile(r";\s+|,\s+(?:and|but|while|whereas)\s+")
FUNCTION_WORDS: Final = frozenset(
    """
    a an the of in on at by for from to with into after against under over about as is are
    was were be been being do does did has have had can could will would which what who whom
    whose when where why how many much long often it its that this these those and or not
    than then one year day date name called give gave there s
    """.split()  # noqa: SIM905
)
"""Words that do not distinguish one fact from another."""

_SUFFIXES: Final = ("ing", "ed", "es", "e", "s")
_CLEAR: Final = 0.5
_OTHERS: Final = 2 / 3


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Remove the ending of an English inflection from a word, if 3 letters or more remain.

    Args:
        word: A word in lower case.

    Returns:
        The word without the ending.

    Examples:
        >>> stem("discovered"), stem("gas")
        ('discover', 'gas')
    """
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word


def _stems(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text."""
    return frozenset(stem(word) for word in normalize(text).split() if word not in FUNCTION_WORDS)


class TopicQuestions:
    """The questions that one long answer answers, with the content words of each question.

    Args:
        questions: The questions; their order defines the index of each question.
        topic: Name of their topic, whose words do not distinguish the questions.

    Raises:
        ValueError: If `questions` is empty.
    """

    def __init__(self, questions: Sequence[str], *, topic: str = "") -> None:
        if not questions:
            raise ValueError("`questions` must contain at least one question, got none")
        stems = [_stems(question) for question in questions]
        shared = _stems(topic)
        if len(stems) > 1:
            words = frozenset().union(*stems)
            shared |= {w for w in words if sum(w in one for one in stems) > len(stems) / 2}
        self._own = tuple(one - shared for one in stems)

    def __len__(self) -> int:
        """Return the number of questions."""
        return len(self._own)

    def sets_apart(self, index: int) -> bool:
        """Return whether a question has content words that the topic and most other questions lack.

        Args:
            index: Index of the question, from 0.

        Returns:
            True if it has such words. Otherwise its clauses cannot be identified.
        """
        return bool(self._own[index])

    def coverage(self, text: str) -> tuple[float, ...]:
        """Return the proportion of the distinctive words of each question that a text contains.

        Args:
            text: A sentence or a clause.

        Returns:
            One value per question, in [0, 1]. The distinctive words of a question are its content
            words that the topic and most of the other questions lack; 0.0 if it has none.

        Examples:
            >>> questions = TopicQuestions(
            ...     ["Who discovered Titan?", "Which spacecraft orbited Saturn?"], topic="Saturn"
            ... )
            >>> questions.coverage("Titan was discovered by NASA's Cassini.")
            (1.0, 0.0)
        """
        stems = _stems(text)
        return tuple(len(own & stems) / len(own) if own else 0.0 for own in self._own)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A clause of an answer."""

    text: str
    coverage: tuple[float, ...]

    def belongs_to_another(self, index: int) -> bool:
        """Return whether the clause is about another question, and not about this one."""
        return self.coverage[index] == 0.0 and max(self.coverage) >= _OTHERS

    def fits_another_better(self, index: int) -> bool:
        """Return whether the clause is about another question, and more so than about this one."""
        return self.coverage[index] < max(self.coverage) >= _OTHERS


class LongAnswer:
    """A long answer, cut into parts that may answer one of its questions.

    Args:
        text: The answer.
        questions: The questions that it answers.
    """

    def __init__(self, text: str, questions: TopicQuestions) -> None:
        self._questions = questions
        items = _items(text, len(questions))
        self._items = None if items is None else [_units(item, questions) for item in items]
        self._units = _units(text, questions)

    def parts(self, index: int, *, slot: int | None = None) -> tuple[str, ...]:
        r"""Return the clauses that answer a question.

        If the answer numbers its items as the query did, the result is the item of that number,
        unless the item is about another question. Otherwise it is the clauses with the highest
        coverage of the question (`TopicQuestions.coverage`), if that is 0.5 or more. Otherwise,
        since answers need not repeat the words of a question, it is every clause except those about
        another question: with a coverage of at least 2/3 of that one, and of 0 of this one.

        Args:
            index: Index of the question, from 0.
            slot: Number of the question in the query, from 1; None if the query has no numbers.

        Returns:
            Parts of the text; empty if no part answers the question.

        Examples:
            >>> questions = TopicQuestions(
            ...     ["Who discovered Titan?", "Which spacecraft orbited Saturn?"], topic="Saturn"
            ... )
            >>> LongAnswer("Titan was discovered by Cassini.", questions).parts(1)
            ()
            >>> LongAnswer("1. Huygens\n2. Cassini", questions).parts(1, slot=2)
            ('Cassini',)
        """
        if self._items is not None and slot is not None and slot <= len(self._items):
            item = self._items[slot - 1]
            if item and not all(unit.fits_another_better(index) for unit in item):
                return tuple(unit.text for unit in item)
        if not self._questions.sets_apart(index):
            return tuple(unit.text for unit in self._units)
        best = max((unit.coverage[index] for unit in self._units), default=0.0)
        if best >= _CLEAR:
            return tuple(unit.text for unit in self._units if unit.coverage[index] == best)
        return tuple(unit.text for unit in self._units if not unit.belongs_to_another(index))


def _items(text: str, n: int) -> list[str] | None:
    """Cut a text at the numbers 1 to n at the starts of lines; None if the numbers differ."""
    marks = list(_ITEM.finditer(text))
    if [int(mark[1]) for mark in marks] != [*range(1, n + 1)] or n < 2:
        return None
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return [text[mark.end() : end] for mark, end in zip(marks, ends, strict=True)]


def _units(text: str, questions: TopicQuestions) -> list[_Unit]:
    """Cut a text into distinct clauses."""
    clauses = dict.fromkeys(
        clause.strip() for sentence in _sentences(text) for clause in _CLAUSE.split(sentence)
    )
    return [_Unit(clause, questions.coverage(clause)) for clause in clauses if clause]


def _sentences(text: str) -> Iterable[str]:
    """Cut a text into sentences, without the numbers of its items."""
    return (part for part in _SENTENCE.split(_ITEM.sub("", text)) if part and not part.isspace())
