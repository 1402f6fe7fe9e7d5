"""The base class of matching rules, and the match of one prediction."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

from surface_consistency.reading import shown
from surface_consistency.rows.cells import answers_of
from surface_consistency.text import (
    normalize as default_normalize,
    padded_words,
    tokenize,
    without_accents,
)

AnswerSpan = Literal["first_line", "first_text_line", "whole"]
"""Scored part of a generation: its first line, its first line that is not blank, or all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The result of scoring one prediction by a rule; its truth value is `is_match`."""

    is_match: bool
    """Whether the rule accepts the prediction."""

    reference: str | None
    """The reference that matched, as it was given; None if none did."""

    score: float
    """Score of the best answer, in [0, 1], higher is better; only 1.0 or 0.0 if the rule is not
    graded."""

    rule: str
    """Name of the rule."""

    def __bool__(self) -> bool:
        """Return `is_match`."""
        return self.is_match


Normalizer = Callable[[str], str]
"""A function that returns the form in which a text is compared."""


def plain_keys(texts: Sequence[str], normalize: Normalizer | None) -> list[str]:
    """Return the texts, normalised if possible; a text that would become empty is stripped."""
    if normalize is None:
        return list(texts)
    return [normalize(text) or text.strip() for text in texts]


def padded_keys(texts: Sequence[str], normalize: Normalizer | None) -> list[str]:
    """Return the words of each text between single spaces, with a space at both ends."""
    if normalize is default_normalize:
        return list(_padded_words(tuple(texts)))
    forms = plain_keys(texts, normalize)
    return [f" {' '.join(tokenize(form))} " for form in forms]


@lru_cache(maxsize=4)
def _padded_words(texts: tuple[str, ...]) -> list[str]:
    """Compute keys once if several rules score the same rows in turn."""
    return padded_words(texts)


PreparedT = TypeVar("PreparedT")


class Rule(ABC, Generic[PreparedT]):
    """A matching rule with its options.

    A rule converts texts to keys, prepares a set of accepted answers for fast comparison, and
    compares. The keys and the prepared sets each depend on one side only, so `match_columns`
    computes them once per distinct text and answer set. Call a rule to score one prediction. Your
    own subclass is accepted in place of a rule's name.
    """

    __slots__ = ()

    name: ClassVar[str]
    """Name of the rule in matches and tables."""

    @abstractmethod
    def keys(self, texts: Sequence[str]) -> list[str]:
        """Return the form in which each text is compared, in order.

        Args:
            texts: Predictions or answers.
        """

    @abstractmethod
    def prepare(self, references: Sequence[str], keys: Sequence[str]) -> PreparedT:
        """Return an answer set prepared for `judge`.

        Args:
            references: The accepted answers as given.
            keys: Their keys.
        """

    @abstractmethod
    def judge(self, prediction: str, key: str, prepared: PreparedT) -> tuple[int, float]:
        """Return the position of the matching answer (-1 without one) and the score in [0, 1].

        Args:
            prediction: The prediction as given.
            key: Its key.
            prepared: The answer set.
        """

    def __call__(self, prediction: str, references: str | Sequence[str]) -> Match:
        """Score one prediction.

        Args:
            prediction: The scored part of the output; it is not cut.
            references: Accepted answers; a string is one reference.

        Returns:
            The match.

        Raises:
            TypeError: If `prediction` or a reference is not a string.
            ValueError: If `references` is empty, or one of them is blank.
        """
        if not isinstance(prediction, str):
            raise TypeError(
                f"`prediction` must be a string, got {type(prediction).__name__}; "
                "`match_columns` leaves missing predictions unscored"
            )
        references = one_reference(references) if isinstance(references, str) else references
        check_references(references)
        prepared = self.prepare(references, self.keys(references))
        index, score = self.judge(prediction, self.keys([prediction])[0], prepared)
        matched = references[index] if index >= 0 else None
        return Match(is_match=index >= 0, reference=matched, score=score, rule=self.name)


FOLDED: Final = "+fold_accents"
"""End of the name of a rule that ignores accents, such as "boundary+fold_accents"."""


def folded(rule: str | None, *, fold_accents: bool) -> str | None:
    """Return the name of a rule by the options `rule` and `fold_accents`.

    Args:
        rule: Name of a rule; None if no rule is given.
        fold_accents: Whether accents are ignored.

    Returns:
        The name, followed by `FOLDED` if accents are ignored.

    Raises:
        ValueError: If accents are to be ignored without a rule.
    """
    if fold_accents and rule is None:
        raise ValueError("`fold_accents` changes a matching rule; give `rule` too")
    return f"{rule.removesuffix(FOLDED)}{FOLDED}" if fold_accents and rule is not None else rule


@dataclass(frozen=True, slots=True)
class FoldedRule(Rule[Any]):
    """A rule that ignores the accents of Latin and Greek letters, in predictions and references."""

    rule: Rule[Any]
    """The rule that scores the texts without accents."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the rule, followed by `FOLDED`."""
        return self.rule.name + FOLDED

    def keys(self, texts: Sequence[str]) -> list[str]:
        """Return the keys of the texts without accents."""
        return self.rule.keys([without_accents(text) for text in texts])

    def prepare(self, references: Sequence[str], keys: Sequence[str]) -> object:
        """Prepare the references without accents."""
        return self.rule.prepare([without_accents(one) for one in references], keys)

    def judge(self, prediction: str, key: str, prepared: object) -> tuple[int, float]:
        """Score the prediction without accents."""
        return self.rule.judge(without_accents(prediction), key, prepared)


def one_reference(text: str) -> list[str]:
    """Return a string as a list of one reference; a list that was written as text is an error.

    Raises:
        ValueError: If references are read from it as from a cell of a file; see `answers_of`.
    """
    try:
        is_one = text.lstrip()[:1] not in ("[", "{", "(") or answers_of(text) == (text.strip(),)
    except ValueError:
        is_one = False
    if not is_one:
        raise ValueError(
            f"`references` must be texts, got {shown(text)}, a list or an object written as text; "
            "pass a list of its texts, or [text] if the text is one reference"
        )
    return [text]


def check_references(references: Sequence[str]) -> None:
    """Raise an error for accepted answers that no rule can use.

    Args:
        references: Accepted answers.

    Raises:
        TypeError: If `references` is a single string or contains a value that is not a string.
        ValueError: If it is empty, or an answer is blank; every prediction contains a blank.
    """
    if isinstance(references, str):
        raise TypeError(f"`references` must be a list of strings, got the string {references!r}")
    if not len(references):
        raise ValueError("`references` must contain at least one accepted answer, got none")
    for answer in references:
        if not isinstance(answer, str):
            raise TypeError(f"`references` must be strings, got {answer!r}; drop or convert it")
        if not answer or answer.isspace():
            raise ValueError(
                f"`references` must not be blank, got {answer!r} in {list(references)!r}: "
                "every prediction contains it; drop it"
            )
