"""Containment that forgives slips of spelling."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rapidfuzz import fuzz, process

from surface_consistency.matching.rule import Normalizer, Rule, padded_keys
from surface_consistency.text import normalize

Scorer = Literal["partial_ratio", "ratio"]


FuzzyAnswers = tuple[tuple[str, ...], int]
"""For each answer its words with a space at both ends, and the length of the longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzyRule(Rule[FuzzyAnswers]):
    """Accepts a prediction that contains a string very similar to an accepted answer.

    Similarity is rapidfuzz's: `ratio` is 100 (1 - insertions and deletions / length of both), and
    `partial_ratio` the best `ratio` of the answer with a stretch of the prediction of its length.
    Both compare the words with a space at both ends, so a stretch that begins or ends inside a word
    costs similarity. The verdict has the most similar answer (the first among equals) and its
    similarity / 100 as score; 0.0 below the cutoff.

    Raises:
        ValueError: If `scorer` is unknown or `score_cutoff` is not in (0, 100].

    Notes:
        An answer longer than the prediction is compared by `ratio` in either case: a stretch of the
        *answer* is no evidence ("a" is not "Washington, D.C."). In short names one letter weighs
        too much to be forgiven ("Pariz" for "Paris" is 0.86), while long names that differ in one
        digit match ("2003 Tour de France" and "2004 Tour de France"). An empty prediction is
        wrong.

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
    """Whether an answer may stand inside the prediction or is compared with all of it."""

    score_cutoff: float = 90.0
    """Lowest similarity that is a match, on rapidfuzz's scale, in (0, 100]."""

    normalize: Normalizer | None = normalize
    """Applied to both sides first; None compares them as they are."""

    def __post_init__(self) -> None:
        """Refuse options that rapidfuzz does not know, or that accept everything or nothing."""
        if self.scorer not in ("partial_ratio", "ratio"):
            raise ValueError(f"`scorer` must be 'partial_ratio' or 'ratio', got {self.scorer!r}")
        if not 0.0 < self.score_cutoff <= 100.0:
            raise ValueError(f"`score_cutoff` must be in (0, 100], got {self.score_cutoff!r}")

    def keys(self, texts: Sequence[str]) -> list[str]:
        """Return the words of each text between spaces."""
        return padded_keys(texts, self.normalize)

    def prepare(self, references: Sequence[str], keys: Sequence[str]) -> FuzzyAnswers:
        """Keep the answers with their greatest length."""
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
        """Return the highest score and the negative position of its first answer; 0.0 for none."""
        best = process.extractOne(key, needles, scorer=scorer, score_cutoff=self.score_cutoff)
        return (0.0, 0) if best is None else (best[1], -best[2])
