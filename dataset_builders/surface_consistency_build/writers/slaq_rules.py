"""The paper's rules for questions, as far as a program can check them.

What these let pass goes to the review sheet: no program sees that a fact is wrong or that another
answer is right too.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from surface_consistency.data.slaq_records import SlaqArticle
from surface_consistency.studies.slaq.queries import parse_long_query
from surface_consistency.text import normalize, tokenize
from surface_consistency_build.writers.slaq_written import WrittenTopic

Rule = Literal[
    "five_pairs",
    "grounded",
    "long_answer_adds",
    "long_answer_covers",
    "long_query_covers",
    "one_answer",
    "short_answer",
    "source_reference",
    "subject_named",
]
"""Names of the rules."""

_STOP_WORDS: Final = (
    "a about after all also an and any are as at be been before being between both but by can "
    "could did do does during each for from had has have he her here hers him his how i if in "
    "into is it its itself many may might more most much no nor not of on once one only or "
    "other our over per s she should so some such t than that the their them then there these "
    "they this those through to under until up upon was we were what when where which while "
    "who whom whose why will with within would you your name called term known kind type "
)
_STOP: Final = frozenset(_STOP_WORDS.split())
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_STEM: Final = 5
_N: Final = 5
_MAX_WORDS: Final = 9
_ENOUGH: Final = 0.5
_SPECIFIC: Final = 3

_SOURCE: Final = re.compile(
    r"\b(?:according to (?:the|this)\s+(?:given |provided |reference |above )?"
    r"(?:article|text|passage|document|excerpt|page|source|author)"
    r"|(?:the|this|that|given|provided|above|reference) "
    r"(?:article|passage|excerpt|reference text|source text|wikipedia (?:page|article))"
    r"|(?:in|from|by|of|does|do|did) (?:the|this) (?:given |provided |reference )?(?:text|document)"
    r"|(?:mentioned|listed|described|discussed|stated|cited|noted|given|provided) "
    r"(?:here|above|below|in (?:the|this) (?:article|text|passage|section|document|page))"
    r"|(?:is|are|was|were) (?:mentioned|listed)\b"
    r"|as (?:mentioned|listed|stated|described) (?:here|above|below|earlier))",
    re.IGNORECASE,
)
_LIST: Final = re.compile(
    r"\b(?:name|give|list|mention|identify|state|cite)\s+(?:an?|one|some|two|three|any|the)\b"
    r"|\bwhat (?:is|was|are|were) (?:one|some|an example|examples?)\b"
    r"|\b(?:which|what) (?:is|was) (?:one|an example) of\b"
    r"|\b(?:an|one) example of\b|\bone of the\b|\bexamples? of\b",
    re.IGNORECASE,
)
_SECOND: Final = re.compile(
    r",?\s+and\s+(?:in\s+(?:what|which)|what|when|where|which|who|whom|whose|why|how)\b",
    re.IGNORECASE,
)
_GENERIC_WORDS: Final = (
    "author authors battle book city company country event experiment film findings group king "
    "movement novel organisation organization paper project queen researchers study theory treaty "
    "war work"
)
_GENERIC: Final = tuple(_GENERIC_WORDS.split())
_POINTING: Final = re.compile(
    r"\b(?i:he|she|it|they|him|them|his|its|their|this|these|those)\b"
    rf"|\b(?i:the (?:{'|'.join(_GENERIC)}))\b"
    r"(?!\s+(?:of|on|by|about|that|which|who|in|behind|for|called|named)\b)(?!\s+[\"'“A-Z])"
)
_NAME: Final = re.compile(r"(?<=\s)(?:[\"'“(]?(?:[A-Z][\w'’-]*|\w+[A-Z]\w*)|['‘]\w)|[\"“]")
_BULLET: Final = re.compile(r"(?:^|\n)\s*(?:[-*•]|\(?\d{1,2}[.)])\s", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One rule that one text breaks."""

    rule: Rule
    """Name of the rule."""

    field: str
    """What breaks it, such as "ShortQ2"."""

    message: str
    """What is wrong and how to mend it: fit to be sent back to the writer."""


def check_topic(written: WrittenTopic, article: SlaqArticle) -> list[Violation]:
    """Check what a writer wrote by the paper's rules (appendix A.1, table 1).

    The rules, by name: `five_pairs` (five different questions, each with an answer, and both
    long texts); `short_answer` (under ten words); `source_reference` (no question speaks of the
    text); `subject_named` (a question names the topic or another proper name, or is specific
    enough with three content words, and does not point at "it" or "the war" without a name
    before); `one_answer` (no "name one", no two questions in one); `long_query_covers` (five
    marked clauses; clause k, with the lead-in, has half of the content words of question k
    besides the topic's); `long_answer_covers` (the numbers and half of the other content words
    of each answer); `long_answer_adds` (no list, no number that the short pairs lack);
    `grounded` (the numbers and half of the other words of each answer stand in the article).

    Args:
        written: What was written.
        article: What it was written from.

    Returns:
        The violations; empty when no rule is broken.
    """
    violations = [*_pairs(written)]
    for index, fact in enumerate(written.facts, start=1):
        if fact.question is not None:
            violations += _question(fact.question, article.title, f"ShortQ{index}")
        if fact.answer is not None:
            violations += _answer(fact.answer, article.text, f"ShortA{index}")
    violations += _long_question(written, article.title)
    violations += _long_answer(written, article.title)
    return violations


def _pairs(written: WrittenTopic) -> Iterator[Violation]:
    """Ask for five complete and different pairs, and both long texts."""
    if len(written.facts) > _N:
        yield _broken("five_pairs", "ShortQ6", f"there are {len(written.facts)} pairs; give five")
    seen: dict[str, int] = {}
    for index in range(1, _N + 1):
        fact = written.facts[index - 1] if index <= len(written.facts) else None
        if fact is None or fact.question is None:
            yield _broken("five_pairs", f"ShortQ{index}", "is missing")
        else:
            first = seen.setdefault(normalize(fact.question), index)
            if first != index:
                yield _broken("five_pairs", f"ShortQ{index}", f"repeats ShortQ{first}")
        if fact is None or fact.answer is None:
            yield _broken("five_pairs", f"ShortA{index}", "is missing")
    if written.long_question is None:
        yield _broken("five_pairs", "LongQ", "is missing")
    if written.long_answer is None:
        yield _broken("five_pairs", "LongA", "is missing")


def _question(question: str, title: str, field: str) -> Iterator[Violation]:
    """Check one short question on its own."""
    if phrase := _SOURCE.search(question):
        yield _broken(
            "source_reference", field, f"speaks of its source ({phrase[0]!r}); ask about the fact"
        )
    if phrase := _LIST.search(question):
        yield _broken(
            "one_answer", field, f"asks for one of several ({phrase[0]!r}); ask what has one answer"
        )
    if question.count("?") > 1 or _SECOND.search(question):
        yield _broken("one_answer", field, "asks for two things; ask for one fact")
    words = _content_words(question)
    if any(_word_in(word, words) for word in _naming_words(title)):
        return
    if not _NAME.search(question) and len(words) < _SPECIFIC:
        yield _broken("subject_named", field, "names no subject; name it in full")
    elif (phrase := _POINTING.search(question)) and not _named_before(question):
        yield _broken("subject_named", field, f"points at {phrase[0]!r} without naming it")


def _naming_words(title: str) -> list[str]:
    """Return the words of a title that name it: "punic" and not "wars", unless it has no other."""
    words = _content_words(title)
    return [word for word in words if not _word_in(word, _GENERIC)] or words


def _named_before(question: str) -> bool:
    """Tell whether a proper name stands before the first word that points."""
    pointing = _POINTING.search(question)
    name = _NAME.search(question)
    return pointing is None or (name is not None and name.start() < pointing.start())


def _answer(answer: str, text: str, field: str) -> Iterator[Violation]:
    """Check one short answer: its length, and that the article holds it."""
    n_words = len(answer.split())
    if n_words > _MAX_WORDS:
        yield _broken("short_answer", field, f"has {n_words} words; use fewer than ten")
    missing = _missing(answer, text)
    if missing:
        yield _broken("grounded", field, f"is not in the article ({missing}); take it from there")


def _long_question(written: WrittenTopic, title: str) -> Iterator[Violation]:
    """Check that the long question names the topic and asks for each fact in its place."""
    if written.long_question is None:
        return
    text = written.long_question
    if phrase := _SOURCE.search(text):
        yield _broken(
            "source_reference",
            "LongQ",
            f"speaks of its source ({phrase[0]!r}); ask about the topic",
        )
    topic = _content_words(title)
    if topic and not any(_word_in(word, _content_words(text)) for word in topic):
        yield _broken("subject_named", "LongQ", f"does not name the topic, {title!r}")
    query = parse_long_query(text)
    if query is None:
        yield _broken("long_query_covers", "LongQ", "does not list five parts as (1) ... (5)")
        return
    lead = _content_words(query.lead)
    for index, (fact, clause) in enumerate(zip(written.facts, query.clauses, strict=False), 1):
        if fact.question is None:
            continue
        wanted = [word for word in _content_words(fact.question) if not _word_in(word, topic)]
        if _share_found(wanted, lead + _content_words(clause)) < _ENOUGH:
            yield _broken(
                "long_query_covers", "LongQ", f"part ({index}) does not ask what ShortQ{index} asks"
            )


def _long_answer(written: WrittenTopic, title: str) -> Iterator[Violation]:
    """Check that the long answer holds the short ones, and no number besides."""
    if written.long_answer is None:
        return
    for index, fact in enumerate(written.facts, start=1):
        if fact.answer is not None and (missing := _missing(fact.answer, written.long_answer)):
            yield _broken("long_answer_covers", "LongA", f"lacks ShortA{index} ({missing})")
    if _BULLET.search(written.long_answer):
        yield _broken("long_answer_adds", "LongA", "is a list; write one paragraph")
    given = " ".join(
        [
            title,
            written.long_question or "",
            *(f"{fact.question} {fact.answer}" for fact in written.facts),
        ]
    )
    added = sorted(_numbers_in(written.long_answer) - _numbers_in(given))
    if added:
        yield _broken("long_answer_adds", "LongA", f"adds what no short answer says: {added[0]}")


def _missing(answer: str, text: str) -> str:
    """Say what of an answer a text lacks; "" when it holds enough."""
    numbers = sorted(_numbers_in(answer) - _numbers_in(text))
    if numbers:
        return f"no {numbers[0]}"
    plain, words = normalize(text), set(_content_words(text))
    if f" {normalize(answer)} " in f" {plain} ":
        return ""
    wanted = [word for word in _content_words(answer) if not word.isdigit()]
    if _share_found(wanted, words) >= _ENOUGH:
        return ""
    return f"no {next(word for word in wanted if not _word_in(word, words))!r}"


def _broken(rule: Rule, field: str, what: str) -> Violation:
    """Build a violation whose message names the field."""
    return Violation(rule=rule, field=field, message=f"{field} {what}")


def _content_words(text: str) -> list[str]:
    """Return the words of a text that carry content, in order, normalised; numbers stay.

    Examples:
        >>> _content_words("When did the First Punic War occur?")
        ['first', 'punic', 'war', 'occur']
    """
    return [word for word in tokenize(normalize(text)) if word not in _STOP]


def _word_in(word: str, words: Collection[str]) -> bool:
    """Tell whether a word, or another form of it, is among others.

    Another form shares its first letters (five, or all but the last of a shorter word) as
    "occurred" does with "occur". Numbers must be there as they are.

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


def _share_found(wanted: Collection[str], words: Collection[str]) -> float:
    """Return the share of wanted words that are among others; 1 when none is wanted."""
    if not wanted:
        return 1.0
    return sum(_word_in(word, words) for word in wanted) / len(wanted)


def _numbers_in(text: str) -> set[str]:
    """Return the numbers of a text as digits, without the commas between thousands."""
    return {number.replace(",", "").rstrip(".") for number in _NUMBER.findall(text)}
