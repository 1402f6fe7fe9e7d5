"""Containment that tolerates spelling errors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rapidfuzz import fuzz, process

from surface_consistency.matching.rule import Normalizer, Rule, padded_keys
from surface_consistency.text import normalize

Scorer = Literal["partial_ratio", "ratio"]


FuzzyAnswers = tuple[tuple[str, ...], int]
"""The words of each answer with a space at both ends, and the maximum length of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzyRule(Rule[FuzzyAnswers]):
    """Accepts a prediction that contains a string very similar to an accepted answer.

    The similarity is that of rapidfuzz: `ratio` is 100 (1 - insertions and deletions / length of
    both), and `partial_ratio` is the highest `ratio` of the answer and a substring of the
    prediction of the same length. Both compare the words with a space at both ends, so a substring
    that begins or ends inside a word reduces the similarity. The match has the most similar answer
    (the first among equals) and its similarity / 100 as score; 0.0 below the cutoff.

    Raises:
        ValueError: If `scorer` is unknown or `score_cutoff` is not in (0, 100].

    Notes:
        An answer longer than the prediction is always compared by `ratio`: a match with a part of
        the *answer* is not evidence ("a" is not "Washington, D.C."). In short names one different
        letter can prevent a match ("Pariz" for "Paris" is 0.86), but long names that differ in one
        digit match ("2003 Tour de France" and "2004 Tour de France"). An empty prediction is
        incorrect.

    References:
        https://rapidfuzz.github.io/RapidFuzz/Usage/fuzz.html

    Examples:
        >>> rule = FuzzyRule()
        >>> rule("It was Chriz Metzen.", ["Chris Metzen"]).reference
        'Chris Metzen'
        >>> rule("It is Tirana.", ["Iran"]).is_match, rule("a", ["Washington, D.C."]).score
        (False, 0.0)
    """

    name: ClassVar[str] = "fuzzy"

    scorer: Scorer = "partial_ratio"
    """"partial_ratio" also matches an answer inside the prediction; "ratio" compares all of it."""

    score_cutoff: float = 90.0
    """Minimum similarity of a match, on rapidfuzz's scale, in (0, 100]."""

    normalize: Normalizer | None = normalize
    """Function applied to all texts first. With None the texts are unchanged."""

    def __post_init__(self) -> None:
        """Raise an error for a scorer or a cutoff that is not valid."""
        if self.scorer not in ("partial_ratio", "ratio"):
            raise ValueError(f"`scorer` must be 'partial_ratio' or 'ratio', got {self.scorer!r}")
        if not 0.0 < self.score_cutoff <= 100.0:
            raise ValueError(f"`score_cutoff` must be in (0, 100], got {self.score_cutoff!r}")

    def keys(self, texts: Sequence[str]) -> list[str]:
        """Return the words of each text between spaces."""
        return padded_keys(texts, self.normalize)

    def prepare(self, references: Sequence[str], keys: Sequence[str]) -> FuzzyAnswers:
        """Return the answers and their maximum length."""
        return tuple(keys), max(map(len, keys))

    def judge(self, prediction: str, key: str, prepared: FuzzyAnswers) -> tuple[int, float]:
        """Find the answer with the highest similarity, the first among equals."""
        needles, longest = prepared
        room = len(key) if self.scorer == "partial_ratio" else -1
        if longest <= room:
            score, place = self._best(key, needles, fuzz.partial_ratio)
        else:
            inside = [needle if len(needle) <= room else None for needle in needles]
            whole = [needle if len(needle) > room else None for needle in needles]
            score, place = max(
                self._best(key, inside, fuzz.partial_ratio), self._best(key, whole, fuzz.ratio)
            )
        return (-place, score / 100.0) if score else (-1, 0.0)

    def _best(
        self, key: str, needles: Sequence[str | None], scorer: Callable[..., float]
    ) -> tuple[float, int]:
        """Return the highest score and minus the position of its first answer; 0.0 if no match."""
        best = process.extractOne(key, needles, scorer=scorer, score_cutoff=self.score_cutoff)
        return (0.0, 0) if best is None else (best[1], -best[2])
