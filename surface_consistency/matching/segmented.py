"""Containment of whole words, also in scripts without spaces between words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import ClassVar, Literal

from surface_consistency.errors import MissingDependencyError
from surface_consistency.matching.boundary import starts
from surface_consistency.matching.rule import Normalizer, Rule, plain_keys
from surface_consistency.text import has_unspaced_script, normalize, script_runs

Segmenter = Callable[[str], Sequence[str]]
"""A function that cuts a text into words, whose concatenation is the text, such as `jieba.lcut` or
`pythainlp.word_tokenize`."""

SegmentedAnswers = tuple[str, ...]
"""The normalised answers, with single spaces between words if the script has spaces."""

_MARK = "\x1f"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentedRule(Rule[SegmentedAnswers]):
    """Accepts a prediction that contains an accepted answer as whole words, in any script.

    The prediction is cut into words: at white space, and by the segmenter in scripts without
    spaces. An answer is found if it begins at the start of a word and ends at the end of a word, so
    "京都" is not in "東京都", which is the words "東京" and "都". The match has the first answer
    found; the score is 1.0 or 0.0.

    Raises:
        ValueError: If `segmenter` is unknown, or when called, if its words do not form the text.
        MissingDependencyError: When called, if ICU is needed and icu4py is not installed.

    Notes:
        If every script has spaces, this is `BoundaryRule`, except for answers without letter or
        number: "서울" is not found in "서울은", unless a function separates the particle.
        Segmenters make errors. If a name is not in the dictionary, it may be cut into short words,
        so that a part of it is accepted, or joined to its neighbour, so that it is rejected.
        "script" is strict: it rejects "東京" in "東京都". It fits Japanese, in which particles are
        Hiragana, and accepts almost nothing in a Chinese or Thai sentence. An empty prediction is
        incorrect.

    References:
        Unicode Standard Annex 29, "Unicode Text Segmentation"; ICU, "Boundary Analysis".

    Examples:
        >>> SegmentedRule(segmenter="script")("それは東京都です", ["京都"]).is_match
        False
        >>> SegmentedRule(segmenter="script")("それは東京です", ["東京"]).is_match
        True
    """

    name: ClassVar[str] = "segmented"

    segmenter: Literal["icu", "script"] | Segmenter = "icu"
    """Segmenter of words. "icu" uses the word boundaries of ICU, whose dictionaries cover Chinese,
    Japanese, Thai, Lao, Khmer and Burmese (extra `lexical`); "script" needs no library and ends a
    word where the script changes, so an answer must be a whole run of Han, Hiragana, Katakana or
    other letters. A function returns the words of a text, such as `jieba.lcut`, for texts of one
    language; it is called with the words between two spaces of every text, in any script, so that
    it can separate a Korean particle or an Arabic article from its noun."""

    normalize: Normalizer | None = normalize
    """Function applied to all texts first. With None the texts are unchanged."""

    def __post_init__(self) -> None:
        """Raise an error for an unknown segmenter."""
        if self.segmenter not in ("icu", "script") and not callable(self.segmenter):
            raise ValueError(
                f"`segmenter` must be 'icu', 'script' or a function, got {self.segmenter!r}"
            )

    def keys(self, texts: Sequence[str]) -> list[str]:
        """Return the texts between spaces, with a mark at each end of a word that lacks a space."""
        forms = [" ".join(form.split()) for form in plain_keys(texts, self.normalize)]
        if callable(self.segmenter):
            segment = self.segmenter
            return [
                f" {' '.join(_marked(part, segment) for part in form.split(' '))} "
                for form in forms
            ]
        return [
            f" {_marked(form, _segmenter(self.segmenter))} "
            if has_unspaced_script(form)
            else f" {form} "
            for form in forms
        ]

    def prepare(self, references: Sequence[str], keys: Sequence[str]) -> SegmentedAnswers:
        """Remove the marks: only the words of the prediction count."""
        return tuple(key.replace(_MARK, "").strip() for key in keys)

    def judge(self, prediction: str, key: str, prepared: SegmentedAnswers) -> tuple[int, float]:
        """Find the first answer that begins and ends at the boundaries of words."""
        if _MARK not in key:
            for position, answer in enumerate(prepared):
                if f" {answer} " in key:
                    return position, 1.0
            return -1, 0.0
        parts = key.split(_MARK)
        text, ends = "".join(parts), {*accumulate(map(len, parts))}
        for position, answer in enumerate(prepared):
            for start in starts(text, answer):
                end = start + len(answer)
                is_begun = start in ends or text[start - 1] == " "
                if is_begun and (end in ends or text[end] == " "):
                    return position, 1.0
        return -1, 0.0


def _marked(text: str, segment: Segmenter) -> str:
    """Put a mark between two words that are not separated by a space."""
    words = list(segment(text))
    if "".join(words) != text:
        raise ValueError(f"the words of `segmenter` must form its text; {text!r} gave {words!r}")
    marked = words[:1]
    for before, word in pairwise(words):
        is_parted = before[-1:].isspace() or word[:1].isspace()
        marked.append(word if is_parted else f"{_MARK}{word}")
    return "".join(marked)


@lru_cache(maxsize=2)
def _segmenter(chosen: Literal["icu", "script"]) -> Segmenter:
    """Return the segmenter with a name."""
    if chosen == "script":
        return script_runs
    try:
        from icu4py.breakers import WordBreaker
    except ImportError as error:
        raise MissingDependencyError("the rule `segmented`", "icu4py", "lexical") from error
    # The dictionaries are chosen by script, so the language argument makes no difference.
    return lambda text: [str(word) for word in WordBreaker(text, "en")]
