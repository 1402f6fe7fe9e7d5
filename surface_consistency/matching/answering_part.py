"""Which part of a long answer answers one of its questions: a numbered item, or a sentence."""

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
"""Words that tell no fact from another."""

_SUFFIXES: Final = ("ing", "ed", "es", "e", "s")
_CLEAR: Final = 0.5
_OTHERS: Final = 2 / 3


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Cut the ending of an English inflection off a word of some length.

    Args:
        word: A word in lower case.

    Returns:
        The word without it.

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
    """The questions that one long answer answers, by what each asks for apart from the others.

    Args:
        questions: The questions, in any order that the caller keeps.
        topic: Name of their topic, whose words tell no question from another.

    Raises:
        ValueError: If there is no question.
    """

    def __init__(self, questions: Sequence[str], *, topic: str = "") -> None:
        if not questions:
            raise ValueError("a long answer answers at least one question, got none")
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
        """Tell whether a question has content words that the topic and most others lack.

        Args:
            index: Place of the question, from 0.

        Returns:
            Whether a clause can be told to speak of what it asks for.
        """
        return bool(self._own[index])

    def coverage(self, text: str) -> tuple[float, ...]:
        """Tell how much of what each question asks for a text speaks of.

        Args:
            text: A sentence or a clause.

        Returns:
            For each question the share of its own content words, those that the topic and most of
            the other questions lack, that stand in the text, in [0, 1]; 0.0 where it has none.

        Examples:
            >>> asked = TopicQuestions(
            ...     ["Who discovered Titan?", "Which spacecraft orbited Saturn?"], topic="Saturn"
            ... )
            >>> asked.coverage("Titan was discovered by NASA's Cassini.")
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
        """Tell whether it speaks of another question's matter, and of nothing of this one's."""
        return self.coverage[index] == 0.0 and max(self.coverage) >= _OTHERS

    def fits_another_better(self, index: int) -> bool:
        """Tell whether it speaks of another question's matter, and more than of this one's."""
        return self.coverage[index] < max(self.coverage) >= _OTHERS


class LongAnswer:
    """A long answer, cut into what may answer one of its questions.

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

        Where the answer numbers its items as the query did, it is the item of that number, unless
        the item is about another question. Else it is the clauses that speak most of what the
        question asks for, where they speak of half of it or more. Else, since answers need not
        repeat the words of a question, it is every clause but those that are about another one:
        those that hold two thirds of what sets that one apart, and nothing of this.

        Args:
            index: Place of the question among the questions, from 0.
            slot: Number under which the query asked it, from 1; None where it numbered nothing.

        Returns:
            Parts of the text; none where nothing answers the question.

        Examples:
            >>> asked = TopicQuestions(
            ...     ["Who discovered Titan?", "Which spacecraft orbited Saturn?"], topic="Saturn"
            ... )
            >>> LongAnswer("Titan was discovered by Cassini.", asked).parts(1)
            ()
            >>> LongAnswer("1. Huygens\n2. Cassini", asked).parts(1, slot=2)
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
    """Cut a text at its numbers 1 to n at the beginnings of lines; None where there are others."""
    marks = list(_ITEM.finditer(text))
    if [int(mark[1]) for mark in marks] != [*range(1, n + 1)] or n < 2:
        return None
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return [text[mark.end() : end] for mark, end in zip(marks, ends, strict=True)]


def _units(text: str, questions: TopicQuestions) -> list[_Unit]:
    """Cut a text into clauses; what is repeated stands once."""
    clauses = dict.fromkeys(
        clause.strip() for sentence in _sentences(text) for clause in _CLAUSE.split(sentence)
    )
    return [_Unit(clause, questions.coverage(clause)) for clause in clauses if clause]


def _sentences(text: str) -> Iterable[str]:
    """Cut a text into sentences, without the numbers of its items."""
    return (part for part in _SENTENCE.split(_ITEM.sub("", text)) if part and not part.isspace())
