"""What a matching rule is and says, so that one and many predictions get the same verdict."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar

from surface_consistency.text import (
    normalize as default_normalize,
    padded_words,
    tokenize,
    without_accents,
)

AnswerSpan = Literal["first_line", "first_text_line", "whole"]
"""Judged part of a generation: its first line, its first line that is not blank, or all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The result of scoring one prediction by a rule; true exactly if the prediction matches."""

    is_match: bool
    """Whether the rule accepts the prediction."""

    reference: str | None
    """The reference that matched, as it was given; None if none did."""

    score: float
    """How well the best answer fits, in [0, 1], higher is better; 1.0 or 0.0 where a rule knows no
    degrees."""

    rule: str
    """Name of the rule."""

    def __bool__(self) -> bool:
        """Return `is_match`."""
        return self.is_match


Normalizer = Callable[[str], str]
"""A function that returns the form in which a text is compared."""


def plain_keys(texts: Sequence[str], normalize: Normalizer | None) -> list[str]:
    """Return the texts, normalised when asked; what normalises to nothing stays as it is."""
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
    """Bring texts into key form once where several rules judge the same rows in turn."""
    return padded_words(texts)


PreparedT = TypeVar("PreparedT")


class Rule(ABC, Generic[PreparedT]):
    """A matching rule with its options chosen.

    A rule turns texts into keys, a set of accepted answers into whatever makes comparing fast, and
    compares. Both steps depend on their own side alone, so the bulk form does them once for each
    distinct text and answer set. Call a rule to judge one prediction; a subclass of your own works
    wherever a rule's name does.
    """

    __slots__ = ()

    name: ClassVar[str]
    """Name of the rule in verdicts and tables."""

    @abstractmethod
    def keys(self, texts: Sequence[str]) -> list[str]:
        """Return the form in which each text is compared, in order.

        Args:
            texts: Predictions or answers.
        """

    @abstractmethod
    def prepare(self, references: Sequence[str], keys: Sequence[str]) -> PreparedT:
        """Return an answer set made ready for `judge`.

        Args:
            references: The accepted answers as given.
            keys: Their keys.
        """

    @abstractmethod
    def judge(self, prediction: str, key: str, prepared: PreparedT) -> tuple[int, float]:
        """Return the position of the answer that matches, -1 for none, and the score in [0, 1].

        Args:
            prediction: The prediction as given.
            key: Its key.
            prepared: The answer set.
        """

    def __call__(self, prediction: str, references: str | Sequence[str]) -> Match:
        """Score one prediction.

        Args:
            prediction: The scored part of the output, taken as it is given.
            references: Accepted answers; a string is one reference.

        Returns:
            The match.

        Raises:
            TypeError: If `prediction` or a reference is not a string.
            ValueError: If there are no references, or one of them is blank.
        """
        if not isinstance(prediction, str):
            raise TypeError(
                f"`prediction` must be a string, got {type(prediction).__name__}; "
                "`match_columns` leaves missing predictions unscored"
            )
        references = [references] if isinstance(references, str) else references
        check_references(references)
        prepared = self.prepare(references, self.keys(references))
        index, score = self.judge(prediction, self.keys([prediction])[0], prepared)
        matched = references[index] if index >= 0 else None
        return Match(is_match=index >= 0, reference=matched, score=score, rule=self.name)


FOLDED: Final = "+fold_accents"
"""End of the name of a rule that ignores accents, such as "boundary+fold_accents"."""


def folded(rule: str | None, *, fold_accents: bool) -> str | None:
    """Return the name of a rule as two options give it.

    Args:
        rule: Name of a rule; None if no rule is given.
        fold_accents: Whether accents are ignored.

    Returns:
        The name, with `FOLDED` behind it if accents are ignored.

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
        """Name of the rule, and that accents are ignored."""
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


def check_references(references: Sequence[str]) -> None:
    """Refuse accepted answers that no rule can use.

    Args:
        references: Accepted answers.

    Raises:
        TypeError: If `references` is a single string or holds something else than strings.
        ValueError: If it is empty, or an answer is blank, which every prediction would contain.
    """
    if isinstance(references, str):
        raise TypeError(f"`references` must be a list of strings, got the string {references!r}")
    if not len(references):
        raise ValueError("`references` must hold at least one accepted answer, got none")
    for answer in references:
        if not isinstance(answer, str):
            raise TypeError(f"`references` must be strings, got {answer!r}; drop it")
        if not answer or answer.isspace():
            raise ValueError(
                f"`references` must not be blank, got {answer!r} in {list(references)!r}: "
                "every prediction contains it; drop it"
            )
