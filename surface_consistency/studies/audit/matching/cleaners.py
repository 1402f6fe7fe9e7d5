"""Extract the answer that is scored from an output: by the published rule, or a corrected one."""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from surface_consistency.schemas.memory import AuditPrompt, Lookup
from surface_consistency.studies.audit.matching.markup import (
    LOOKUP_TOKENS,
    WrittenLookup,
    parse_lookups,
    strip_lookups,
)
from surface_consistency.text import token_key

_UNKNOWN: Final = frozenset(
    (
        "",
        "unknown",
        "n a",
        "na",
        "none",
        "no answer",
        "i don't know",
        "i don’t know",
        "i do not know",
        "i don t know",
    )
)


def says_unknown(answer: str) -> bool:
    """Return whether an answer states that the model or the store does not know.

    Args:
        answer: A cleaned answer.

    Returns:
        Whether it is empty or one of "unknown", "n/a", "none", "no answer", "I don't know" and
        their spellings, the list of the published audit.

    Examples:
        >>> says_unknown("Unknown."), says_unknown(""), says_unknown("Norway")
        (True, True, False)
    """
    return token_key(answer) in _UNKNOWN


_LEAD_INS = ("the answer is ", "it is ", "it's ")
_SECTIONS = re.compile(r"\n(?:Question:|Context:|Fact:|Prompt:|Answer:|\n)")
# In this order, so that an HTML tag without an end does not include the text before a token.
# Each with its end; text after the last occurrence of the end is not searched.
_MARKUP = (
    (re.compile(r"<\|db_[^|]+\|>.*?<\|db_end\|>", re.DOTALL), "<|db_end|>"),
    (re.compile(r"<\|db_[^|]+\|>"), "|>"),
    (re.compile(r"<[^>]+>"), ">"),
)
_LABELS = re.compile(r"(?:[Aa][Nn][Ss][Ww][Ee][Rr]:\s*+)+")
_SENTENCE_END = re.compile(r"""(?<=[.!?])\s+(?=[A-Z"'])""")
_QUOTES = " \t\n\r\"'`"


def published_clean(text: str) -> str:
    """Clean a text as the published code does.

    The first "sentence" ends at any full stop before a capital letter, and punctuation is removed
    at both ends: "George W. Bush" becomes "George W", ".us" becomes "us".

    Args:
        text: A continuation or a value of a store.

    Returns:
        The answer.
    """
    text = text.strip()
    if labels := _LABELS.match(text):
        text = text[labels.end() :]
    for lead_in in _LEAD_INS:
        if text.lower().startswith(lead_in):
            text = text[len(lead_in) :].strip()
            break
    text = html.unescape(_SECTIONS.split(text, maxsplit=1)[0].strip())
    for markup, closes in _MARKUP:
        closed, end, rest = text.rpartition(closes)
        text = markup.sub(" ", closed + end) + rest
    text = " ".join(text.split()).strip(_QUOTES)
    return _SENTENCE_END.split(text, maxsplit=1)[0].strip().strip(_QUOTES + ",;:.")


def published_answer(text: str, *, prompt_text: str = "", lookups: Sequence[Lookup] = ()) -> str:
    """Return the answer by the rule of the published audit (arXiv 2607.00605).

    If the store answered a lookup, the answer is its first value, regardless of the text around it.
    Without a store, if the prompt is a question or has a blank ("____"), it is the first value that
    the model generated in a lookup, else its text without lookups.

    Args:
        text: The continuation that a runner returns.
        prompt_text: Text of the prompt.
        lookups: The lookups that a store answered.

    Returns:
        The answer, cut at the first full stop before a capital letter, as in the published code;
        this is a fault of the published rule.

    Examples:
        >>> published_answer("George W. Bush")
        'George W'
    """
    written = parse_lookups(text)
    if lookups and LOOKUP_TOKENS[2] in text:
        return published_clean(next((lookup.value for lookup in written if lookup.value), ""))
    values = [published_clean(lookup.value or "") for lookup in written if lookup.is_closed]
    values = [value for value in values if value]
    plain = published_clean(strip_lookups(text, values="drop"))
    asks = prompt_text.strip().endswith("?") or "____" in prompt_text
    if values and (asks or not plain):
        return values[0]
    return plain


Cleaner = Callable[[str, AuditPrompt, Sequence[Lookup]], str]
"""Returns the answer, from the text, the prompt and the lookups that a store answered."""

_ANSWER_LABELS = re.compile(r"(?:answer\s*:\s*)+", re.IGNORECASE)
_LEAD_IN = re.compile(r"(?:(?:the|my) answer is|it is|it's|it’s)\b[\s:]*", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)
_BOUNDARY = re.compile(r"(?P<mark>[.!?])[\"'”’)]*\s+(?=[\"'“‘]?(?P<next>\w+))")
_ABBREVIATION_WORDS: Final = (
    "bros capt co col corp dept dr ft gen gov hon inc jr lt ltd mr mrs ms mt no pres prof rep rev "
    "sen sgt sr st univ v vol vs"
)
_ABBREVIATIONS: Final = frozenset(_ABBREVIATION_WORDS.split())
_STARTING_WORDS: Final = (
    "a although an and answer as at but for he her his however i if in it its my on our question "
    "she since that the their there these they this those we when where which while you"
)
_SENTENCE_STARTS: Final = frozenset(_STARTING_WORDS.split())
_DOTTED = re.compile(r"(?:\b\w\.){2}\Z")


def audit_answer(text: str) -> str:
    """Return the answer in the output of a model, lookups included.

    If only a lead-in precedes a lookup, the answer is the complete value of the lookup. If the
    store had no value ("unknown"), the answer is the value of a lookup that follows immediately,
    else the text after the lookup, if any. In all other cases, the answer is the first sentence of
    the first line of the visible text, without labels ("Answer:"), lead-ins ("It is"), tags,
    quotation marks and final punctuation. A full stop after an initial or abbreviation does not end
    a sentence unless the next word begins one, so that "George W. Bush" and "U.S. Dollar" are not
    cut; a leading full stop is kept (".us").

    Args:
        text: The continuation that a runner returns.

    Returns:
        The answer; empty if there is none.

    Examples:
        >>> audit_answer("Answer: It is George W. Bush. He was born in New Haven.")
        'George W. Bush'
        >>> audit_answer("<|db_entity|> US<|db_relationship|> TLD<|db_return|> .us<|db_end|>.")
        '.us'
    """
    lookups = parse_lookups(text)
    if lookups and not _without_lead_in(text[: lookups[0].start]):
        first = _first_found(text, lookups)
        value = _trimmed(" ".join((first.value or "").split()))
        if value and not says_unknown(value):
            return value
        return _first_sentence(strip_lookups(text[first.end :])) or value
    return _first_sentence(strip_lookups(text))


def _first_found(text: str, lookups: Sequence[WrittenLookup]) -> WrittenLookup:
    """Skip lookups without a value that another lookup immediately follows."""
    for lookup, following in pairwise(lookups):
        if not says_unknown(lookup.value or "") or text[lookup.end : following.start].strip(" .,;"):
            return lookup
    return lookups[-1]


def _first_sentence(text: str) -> str:
    """Return the answer in a visible text: the first sentence of its first line."""
    plain = _without_lead_in(_TAG.sub(" ", html.unescape(text)))
    line = " ".join(plain.split("\n", 1)[0].split())
    start = 0
    for mark in _BOUNDARY.finditer(line):
        if _ends_sentence(line, mark, start):
            line = line[: mark.end("mark")]
            break
        start = mark.end()
    return _trimmed(line)


def _without_lead_in(text: str) -> str:
    """Drop labels and one lead-in from the beginning."""
    text = text.strip(" \t\r\n\"'`“”‘’")
    if label := _ANSWER_LABELS.match(text):
        text = text[label.end() :]
    if lead_in := _LEAD_IN.match(text):
        text = text[lead_in.end() :]
    return text.strip()


def _ends_sentence(line: str, mark: re.Match[str], start: int) -> bool:
    """Return whether a mark between two words ends the sentence that begins at `start`."""
    following = mark["next"]
    if not (following[0].isupper() or line[mark.end()] in "\"'“‘"):
        return False
    words = re.findall(r"\w+", line[start : mark.start()])
    is_short = bool(words) and (len(words[-1]) == 1 or words[-1].casefold() in _ABBREVIATIONS)
    if mark["mark"] != "." or not is_short:
        return True
    return following.casefold() in _SENTENCE_STARTS


def _trimmed(text: str) -> str:
    """Drop quotation marks and punctuation at the ends that do not belong to the answer."""
    text = text.strip(" \t\"'`“”‘’,;:")
    text = re.sub(r"\A[.…]+(?=\s|\Z)|\A(?:\.{2,}|…)", "", text)
    if text.endswith(".") and not _DOTTED.search(text):
        text = text.rstrip(".")
    return text.strip(" \t\"'`“”‘’,;:")


def _audit(text: str, prompt: AuditPrompt, lookups: Sequence[Lookup]) -> str:
    """Clean by the text only."""
    return audit_answer(text)


def _published(text: str, prompt: AuditPrompt, lookups: Sequence[Lookup]) -> str:
    """Clean as the published audit did."""
    return published_answer(text, prompt_text=prompt.prompt_text, lookups=lookups)


CLEANERS: Mapping[str, Cleaner] = MappingProxyType({"audit": _audit, "published": _published})
"""The cleaners by name: that of this package, and that of the published code."""
