"""Read the answer of a question writer, in any layout."""

import ast
import json
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from surface_consistency.data.slaq_records import SlaqArticle, SlaqQuestion, SlaqTopic
from surface_consistency.data.slaq_rows import flag_of
from surface_consistency.errors import RecordError
from surface_consistency.reading import shown
from surface_consistency.text import replace_elements

_THOUGHT: Final = re.compile(r"<(?P<tag>think|thinking|reasoning)>", re.IGNORECASE)
_FENCE: Final = re.compile(r"```[\w-]*\n(.*?)```", re.DOTALL)
_KEY: Final = re.compile(
    r"""(?<![^\W_])
    (?P<name>
        short[\s_-]*(?:q(?:uestion)?|a(?:nswer)?)[\s_#-]*\d{1,2}(?:[\s_-]*entity)?
      | long[\s_-]*(?:q(?:uestion)?|a(?:nswer)?)
      | (?:q(?:uestion)?|a(?:nswer)?)[\s_#-]*\d{1,2}(?:[\s_-]*entity)?
    )
    ["'”*_`]*\s*(?:[:=：]|\s[-–]\s|->)\s*(?:\*\*|__)?\s*""",
    re.VERBOSE | re.IGNORECASE,
)
_NAME: Final = re.compile(
    r"(?P<form>short|long)?(?P<kind>q|a)(?:uestion|nswer)?(?P<number>\d{1,2})?(?P<entity>entity)?"
)
_BULLET: Final = re.compile(r"(?:^|\s)(?:[-*•#>]+|\d{1,2}[.)])\s*$")
_ENDS: Final = string.whitespace + ",;"
_PLACEHOLDER: Final = re.compile(r"<[\w\s]*>|\.\.\.|…|\[[\w\s]*\]")
_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "`": "`"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFact:
    """One short question with its answer."""

    question: str | None = None
    """The question; None if it is missing."""

    answer: str | None = None
    """The answer; None if it is missing."""

    is_entity: bool | None = None
    """Entity flag; None if it is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTopic:
    """The texts of a writer on one article, not yet checked."""

    facts: tuple[WrittenFact, ...] = ()
    """By number; not five if the writer made an error."""

    long_question: str | None = None
    """The long question; None if it is missing."""

    long_answer: str | None = None
    """The long answer; None if it is missing."""

    @property
    def five(self) -> tuple[WrittenFact, ...]:
        """The first five facts; missing ones are empty."""
        return (*self.facts, *[WrittenFact()] * 5)[:5]


def parse_written(text: str) -> WrittenTopic:
    """Read a writer's answer.

    The layouts are the paper's one line `ShortQ1 : ..., ShortA1 : ..., ...` with commas, colons and
    quotes inside the values; one line per key; JSON or a Python dictionary with these keys, or with
    a list of questions and answers; all of these within Markdown, after a chain of thought, or
    between remarks. If a key occurs twice, the last counts.

    Args:
        text: The writer's answer.

    Returns:
        The texts; a missing text is None, which `check_topic` reports.

    Raises:
        RecordError: If it contains neither a question nor an answer.

    Examples:
        >>> parse_written("ShortQ1 : Who, in 1801, saw Ceres?, ShortA1 : Piazzi").facts[0].question
        'Who, in 1801, saw Ceres?'
    """
    plain = replace_elements(text, _THOUGHT)
    values: dict[str, str] = {}
    for part in (plain, *_FENCE.findall(plain)):
        values = _from_object(part) or values
    values = values or _from_keys(plain)
    last = max((int(key[1:]) for key in values if re.fullmatch("[0-9]{1,2}", key[1:])), default=0)
    topic = WrittenTopic(
        facts=tuple(
            WrittenFact(
                question=values.get(f"q{number}"),
                answer=values.get(f"a{number}"),
                is_entity=_flag(values.get(f"e{number}")),
            )
            for number in range(1, last + 1)
        ),
        long_question=values.get("q"),
        long_answer=values.get("a"),
    )
    if topic == WrittenTopic():
        words = " ".join(text.split())
        raise RecordError(
            f"the writer's answer contains no ShortQ1, ShortA1, ... LongA: {shown(words)}; query "
            "the model again, or write it manually"
        )
    return topic


def topic_from_written(written: WrittenTopic, article: SlaqArticle) -> SlaqTopic:
    """Combine the texts with their article.

    Args:
        written: Questions and answers, without violations.
        article: The article.

    Returns:
        The topic, without popularity half.

    Raises:
        RecordError: If there are not exactly five facts, or a text is missing.
    """
    long_question, long_answer = written.long_question, written.long_answer
    questions = [
        SlaqQuestion(
            id=f"{article.topic_id}/{index}",
            index=index,
            question=fact.question,
            answer=fact.answer,
            is_entity=fact.is_entity,
        )
        for index, fact in enumerate(written.five, start=1)
        if fact.question is not None and fact.answer is not None
    ]
    n = max(len(written.facts), 5)
    if n > 5 or len(questions) < 5 or long_question is None or long_answer is None:
        raise RecordError(
            f"topic {shown(article.title)} needs five facts, each with question and answer, a long "
            f"question and a long answer; got {len(questions)} of {n} facts; see check_topic"
        )
    return SlaqTopic(
        id=article.topic_id,
        category=article.category,
        topic=article.title,
        url=article.url,
        questions=tuple(questions),
        long_question=long_question,
        long_answer=long_answer,
        pageviews=article.pageviews,
    )


def _flag(cell: str | None) -> bool | None:
    """Read an entity flag; None if it is not valid."""
    try:
        return flag_of(cell)
    except ValueError:
        return None


def _short_key(name: str) -> str | None:
    """Convert the spellings of a key to "q1", "a1", "e1", "q" (long) or "a" (long)."""
    parts = _NAME.fullmatch(re.sub(r"[^a-z0-9]", "", name.lower()))
    if parts is None or (parts["form"] != "long" and parts["number"] is None):
        return None
    if parts["form"] == "long":
        return parts["kind"] if parts["number"] is None else None
    kind = "e" if parts["entity"] else parts["kind"]
    return f"{kind}{int(parts['number'])}"


def _from_object(text: str) -> dict[str, str]:
    """Read a JSON object or Python dictionary in a text."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return {}
    body = text[start : end + 1]
    for read in (json.loads, ast.literal_eval):
        try:
            parsed = read(body)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        return dict(_pairs(parsed)) if isinstance(parsed, dict) else {}
    return {}


def _pairs(node: object, number: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield the questions and answers in an object, by key."""
    if isinstance(node, dict):
        for name, value in node.items():
            key = _short_key(str(name))
            if key is None and number is not None:
                plain = str(name).lower().replace("short", "").strip("_- ")
                kinds = {"question": "q", "q": "q", "answer": "a", "a": "a", "entity": "e"}
                key = f"{kinds[plain]}{number}" if plain in kinds else None
            if key is not None and isinstance(value, str | int | float):
                if text := _value(str(value)):
                    yield key, text
            else:
                yield from _pairs(value, number)
    elif isinstance(node, list):
        for place, item in enumerate(node, start=1):
            yield from _pairs(item, place)


def _from_keys(text: str) -> dict[str, str]:
    """Split a text at its keys."""
    unfenced = re.sub(r"```[\w-]*", "\n\n", text)
    keys = [match for match in _KEY.finditer(unfenced) if _short_key(match["name"])]
    if any(match["name"].lower().startswith("short") for match in keys):
        keys = [m for m in keys if m["name"].lower().startswith(("short", "long"))]
    values: dict[str, str] = {}
    for place, match in enumerate(keys, start=1):
        text = unfenced[match.end() :]
        if place < len(keys):
            text = unfenced[match.end() : keys[place].start()].rstrip("\"'“*_`")
        key = _short_key(match["name"])
        value = _value(text.split("\n\n", 1)[0])
        if key is not None and value:
            values[key] = value
    return values


def _value(text: str) -> str | None:
    """Remove bullets, commas, quotes and emphasis from a value; None if empty or a placeholder."""
    value = _BULLET.sub("", text.strip()).strip()
    value = value.rstrip(_ENDS)
    value = value[:-1].rstrip(_ENDS) if value.endswith(("{", "}")) else value
    if value.count('\\"'):
        value = value.replace('\\"', '"')
    value = _unquoted(value).strip("*_` \n\t").rstrip(",;").strip()
    value = " ".join(_unquoted(value).split())
    return None if not value or _PLACEHOLDER.fullmatch(value) else value


def _unquoted(value: str) -> str:
    """Remove quotes around a value, or a single quote at one end."""
    value = value.strip()
    for opening, closing in _QUOTES.items():
        inner = value[1:-1]
        if len(value) > 1 and value[0] == opening and value[-1] == closing:
            if opening not in inner and closing not in inner:
                return inner
            if opening == closing and inner.count(opening) % 2 == 0 and inner[:1] != opening:
                return inner
        if opening == closing == '"' and value.count('"') % 2:
            return value.removesuffix('"') if value.endswith('"') else value.removeprefix('"')
    return value
