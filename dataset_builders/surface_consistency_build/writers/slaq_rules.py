"""Check questions by the paper's rules, as far as a program can do this.

Texts that pass are still in the review sheet: a program cannot detect that a fact is incorrect, or
that another answer is also correct.
"""

import re
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from surface_consistency.data.slaq_records import SlaqArticle
from surface_consistency.studies.slaq.queries import parse_long_query
from surface_consistency.text import normalize, tokenize
from surface_consistency_build.writers.slaq_written import WrittenTopic

_WORDS: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_STOP: Final = frozenset(_WORDS["stop_words"].split())
_GENERIC: Final = tuple(_WORDS["generic"].split())
_SOURCE: Final = re.compile(_WORDS["source"])
_LIST: Final = re.compile(_WORDS["list"])
_SECOND: Final = re.compile(_WORDS["second"])
_POINTING: Final = re.compile(_WORDS["pointing"].replace("GENERIC", "|".join(_GENERIC)))
_NAME: Final = re.compile(_WORDS["name"])
_BULLET: Final = re.compile(_WORDS["bullet"])
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_STEM: Final = 5
_N: Final = 5
_MAX_WORDS: Final = 9
_ENOUGH: Final = 0.5
_SPECIFIC: Final = 3


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that one text breaks."""

    rule: str
    """Name of the rule; see `check_topic`."""

    field: str
    """The text that breaks it, such as "ShortQ2"."""

    what: str
    """Description of the fault, and how to correct it."""

    @property
    def message(self) -> str:
        """The fault in the form that is sent to the model."""
        return f"{self.field} {self.what}"


def check_topic(written: WrittenTopic, article: SlaqArticle) -> list[Violation]:
    """Check the texts of a writer by the paper's rules (appendix A.1, table 1).

    The rules, by name: `five_pairs` (five different questions, each with an answer, and both long
    texts); `short_answer` (under ten words); `source_reference` (questions do not refer to the
    text); `subject_named` (a question names the topic or another proper name, or is specific enough
    with three content words, and does not refer to "it" or "the war" without a name before);
    `one_answer` (no "name one", no two questions in one); `long_query_covers` (five marked clauses;
    clause k, with the lead-in, has half of the content words of question k except the topic's);
    `long_answer_covers` (the numbers and half of the other content words of each answer);
    `long_answer_adds` (no list, no number that the short pairs lack); `grounded` (the numbers and
    half of the other words of each answer occur in the article).

    Args:
        written: The texts.
        article: The article that they were written from.

    Returns:
        The violations; empty if all rules are satisfied.
    """
    violations = [*_pairs(written)]
    for index, fact in enumerate(written.facts, start=1):
        if fact.question is not None:
            violations += _question(fact.question, article.title, f"ShortQ{index}")
        if fact.answer is not None:
            violations += _answer(fact.answer, article.text, f"ShortA{index}")
    if written.long_question is not None:
        violations += _long_question(written, written.long_question, article.title)
    if written.long_answer is not None:
        violations += _long_answer(written, written.long_answer, article.title)
    return violations


def _pairs(written: WrittenTopic) -> Iterator[Violation]:
    """Require five complete and different pairs, and both long texts."""
    if len(written.facts) > _N:
        yield Violation("five_pairs", "ShortQ6", f"there are {len(written.facts)} pairs; give five")
    seen: dict[str, int] = {}
    for index, fact in enumerate(written.five, start=1):
        if fact.question is None:
            yield Violation("five_pairs", f"ShortQ{index}", "is missing")
        elif (first := seen.setdefault(normalize(fact.question), index)) != index:
            yield Violation("five_pairs", f"ShortQ{index}", f"repeats ShortQ{first}")
        if fact.answer is None:
            yield Violation("five_pairs", f"ShortA{index}", "is missing")
    if written.long_question is None:
        yield Violation("five_pairs", "LongQ", "is missing")
    if written.long_answer is None:
        yield Violation("five_pairs", "LongA", "is missing")


def _question(question: str, title: str, field: str) -> Iterator[Violation]:
    """Check one short question."""
    for rule, pattern, what in (
        ("source_reference", _SOURCE, "speaks of its source ({!r}); ask about the fact"),
        ("one_answer", _LIST, "asks for one of several ({!r}); ask what has one answer"),
        ("one_answer", _SECOND, "asks for two things; ask for one fact"),
    ):
        if phrase := pattern.search(question):
            yield Violation(rule, field, what.format(phrase[0]))
    words, of_title = _content_words(question), _content_words(title)
    # The words that name the topic: "punic" and not "wars", unless the title has no other words.
    naming = [word for word in of_title if not _word_in(word, _GENERIC)] or of_title
    if any(_word_in(word, words) for word in naming):
        return
    name, pointing = _NAME.search(question), _POINTING.search(question)
    if name is None and len(words) < _SPECIFIC:
        yield Violation("subject_named", field, "names no subject; name it in full")
    elif pointing and (name is None or name.start() >= pointing.start()):
        yield Violation("subject_named", field, f"points at {pointing[0]!r} without naming it")


def _answer(answer: str, text: str, field: str) -> Iterator[Violation]:
    """Check one short answer: its length, and that it occurs in the article."""
    n_words = len(answer.split())
    if n_words > _MAX_WORDS:
        yield Violation("short_answer", field, f"has {n_words} words; use fewer than ten")
    if missing := _missing(answer, text):
        yield Violation("grounded", field, f"is not in the article ({missing}); take it from there")


def _long_question(written: WrittenTopic, text: str, title: str) -> Iterator[Violation]:
    """Check that the long question names the topic and covers the short questions in order."""
    if phrase := _SOURCE.search(text):
        what = f"speaks of its source ({phrase[0]!r}); ask about the topic"
        yield Violation("source_reference", "LongQ", what)
    topic = _content_words(title)
    if topic and not any(_word_in(word, _content_words(text)) for word in topic):
        yield Violation("subject_named", "LongQ", f"does not name the topic, {title!r}")
    query = parse_long_query(text)
    if query is None:
        what = "does not list five parts as (1) ... (5)"
        yield Violation("long_query_covers", "LongQ", what)
        return
    for index, (fact, clause) in enumerate(zip(written.facts, query.clauses, strict=False), 1):
        words = [word for word in _content_words(fact.question or "") if not _word_in(word, topic)]
        if _proportion_found(words, _content_words(f"{query.lead} {clause}")) < _ENOUGH:
            what = f"part ({index}) does not ask what ShortQ{index} asks"
            yield Violation("long_query_covers", "LongQ", what)


def _long_answer(written: WrittenTopic, text: str, title: str) -> Iterator[Violation]:
    """Check that the long answer contains the short ones, and no additional number."""
    for index, fact in enumerate(written.facts, start=1):
        if fact.answer is not None and (missing := _missing(fact.answer, text)):
            yield Violation("long_answer_covers", "LongA", f"lacks ShortA{index} ({missing})")
    if _BULLET.search(text):
        yield Violation("long_answer_adds", "LongA", "is a list; write one paragraph")
    pairs = " ".join(f"{fact.question} {fact.answer}" for fact in written.facts)
    given = _numbers_in(f"{title} {written.long_question or ''} {pairs}")
    if added := sorted(_numbers_in(text) - given):
        what = f"adds what no short answer says: {added[0]}"
        yield Violation("long_answer_adds", "LongA", what)


def _missing(answer: str, text: str) -> str:
    """Name a word of an answer that a text lacks; "" if the text contains enough of it."""
    if numbers := sorted(_numbers_in(answer) - _numbers_in(text)):
        return f"no {numbers[0]}"
    if f" {normalize(answer)} " in f" {normalize(text)} ":
        return ""
    words = set(_content_words(text))
    wanted = [word for word in _content_words(answer) if not word.isdigit()]
    if _proportion_found(wanted, words) >= _ENOUGH:
        return ""
    return f"no {next(word for word in wanted if not _word_in(word, words))!r}"


def _content_words(text: str) -> list[str]:
    """Return the content words of a text, in order, normalised; numbers are kept.

    Examples:
        >>> _content_words("When did the First Punic War occur?")
        ['first', 'punic', 'war', 'occur']
    """
    return [word for word in tokenize(normalize(text)) if word not in _STOP]


def _word_in(word: str, words: Collection[str]) -> bool:
    """Check whether a word, or another form of it, is among others.

    Another form shares its first letters (five, or all but the last of a shorter word) as
    "occurred" does with "occur". Numbers must occur unchanged.

    Examples:
        >>> _word_in("occur", {"occurred"}), _word_in("1945", {"1946"}), _word_in("war", {"wars"})
        (True, False, True)
    """
    if word in words:
        return True
    if any(character.isdigit() for character in word) or len(word) < 3:
        return False
    stem = word[:_STEM] if len(word) > _STEM else word
    return any(
        other.startswith(stem) or (len(other) > 2 and word.startswith(other) and len(word) < 6)
        for other in words
        if not other[0].isdigit()
    )


def _proportion_found(wanted: Collection[str], words: Collection[str]) -> float:
    """Return the proportion of wanted words that are in `words`; 1 without wanted words."""
    return sum(_word_in(word, words) for word in wanted) / len(wanted) if wanted else 1.0


def _numbers_in(text: str) -> set[str]:
    """Return the numbers of a text as digits, without the commas between thousands."""
    return {number.replace(",", "").rstrip(".") for number in _NUMBER.findall(text)}
