"""Conversion of rows in SLAQ's columns (figure 6 of the paper) to topics and back."""

import csv
import html
import math
import os
import re
from collections.abc import Iterable, Iterator
from typing import Final

from pydantic import Field

from surface_consistency.data.slaq_records import SlaqTopic, topic_id_of
from surface_consistency.rows.cells import RowCells, count_of, text_of
from surface_consistency.schemas._record import NonEmpty, Record
from surface_consistency.schemas.jsonl import atomic_path
from surface_consistency.text import replace_elements

_INDICES: Final = (1, 2, 3, 4, 5)
_FLAGS: Final = {
    **dict.fromkeys(("0", "0.0", "false"), False),
    **dict.fromkeys(("1", "1.0", "true"), True),
}
_VIEWS: Final = re.compile(r"(\d{1,3}(?:[,\s]\d{3})+|\d+)(?:\.0+)?")
_TAGS: Final = (
    "a|abbr|b|big|blockquote|br|center|cite|code|dd|del|dfn|div|dl|dt|em|font|h[1-6]|hr|i|img|ins|"
    "kbd|li|math|mark|ol|p|pre|q|ref|s|samp|script|small|span|strike|strong|style|sub|sup|table|"
    "tbody|td|th|thead|tr|tt|u|ul|var|wbr"
)
_TAG: Final = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_DROPPED: Final = re.compile(r"<(?P<tag>script|style|ref)\b[^<>]*(?<!/)>", re.IGNORECASE)
_ENTITY: Final = re.compile(r"&(?:[a-z]{2,8}\d{0,2}|#\d{1,7}|#x[0-9a-f]{1,6});", re.IGNORECASE)
_POWER: Final = re.compile(r"<(?P<tag>sup)(?:\s[^<>]*)?>", re.IGNORECASE)
_BREAK: Final = re.compile(r"</?(?:br|p|div|li|tr|td|th|h[1-6]|hr)(?:\s[^<>]*)?/?>", re.IGNORECASE)

SLAQ_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "category": ("Category",),
    "topic": ("Topic", "Title"),
    "url": ("URL", "Link"),
    **{f"question{k}": (f"ShortQ{k}", f"ShortQuestion{k}") for k in _INDICES},
    **{f"answer{k}": (f"ShortA{k}", f"ShortAnswer{k}") for k in _INDICES},
    "long_question": ("LongQ", "LongQuestion"),
    "long_answer": ("LongA", "LongAnswer"),
    "pageviews": ("Pageviews", "Views"),
    **{f"entity{k}": (f"ShortQ{k}_Entity", f"ShortA{k}_Entity") for k in _INDICES},
}
"""Fields of SLAQ, and their possible columns."""

SLAQ_REQUIRED: Final = tuple(
    name
    for name in SLAQ_COLUMNS
    if name not in {"url", "pageviews"} and not name.startswith("entity")
)
"""Fields that a source must have."""


class SlaqRow(Record):
    """One topic in the column layout of the release."""

    Category: NonEmpty
    """Category of the topic."""

    Topic: NonEmpty
    """Name of the topic."""

    URL: str | None
    """Address of the article."""

    ShortQ1: NonEmpty
    """First short question."""

    ShortA1: NonEmpty
    """Its answer."""

    ShortQ2: NonEmpty
    """Second short question."""

    ShortA2: NonEmpty
    """Its answer."""

    ShortQ3: NonEmpty
    """Third short question."""

    ShortA3: NonEmpty
    """Its answer."""

    ShortQ4: NonEmpty
    """Fourth short question."""

    ShortA4: NonEmpty
    """Its answer."""

    ShortQ5: NonEmpty
    """Fifth short question."""

    ShortA5: NonEmpty
    """Its answer."""

    LongQ: NonEmpty
    """The query that lists all five."""

    LongA: NonEmpty
    """The five answers in one paragraph."""

    Pageviews: int | None = Field(ge=0)
    """Views of the article."""

    ShortQ1_Entity: int | None = Field(ge=0, le=1)
    """1 if the first answer is a named entity."""

    ShortQ2_Entity: int | None = Field(ge=0, le=1)
    """The same for the second answer."""

    ShortQ3_Entity: int | None = Field(ge=0, le=1)
    """The same for the third answer."""

    ShortQ4_Entity: int | None = Field(ge=0, le=1)
    """The same for the fourth answer."""

    ShortQ5_Entity: int | None = Field(ge=0, le=1)
    """The same for the fifth answer."""


def flag_of(value: object) -> bool | None:
    """Read an entity flag: 0 or 1 as number, text or truth value; None if the cell is empty.

    Raises:
        ValueError: If the cell contains something else.

    Examples:
        >>> flag_of("1"), flag_of(0.0), flag_of("")
        (True, False, None)
    """
    text = _number_text(value)
    if text is None:
        return None
    if text.lower() not in _FLAGS:
        raise ValueError("expected 0 or 1")
    return _FLAGS[text.lower()]


def views_of(value: object) -> int | None:
    """Read page views: 1234, 1234.0, "1234", "1,234" and "1 234" are the same; None if empty.

    Raises:
        ValueError: If the cell contains something else, such as "1.2M" or a negative number.

    Examples:
        >>> views_of("1,234,567"), views_of(12.0), views_of("")
        (1234567, 12, None)
    """
    text = _number_text(value)
    if text is None:
        return None
    match = _VIEWS.fullmatch(text)
    if match is None or not text.isascii():
        raise ValueError("expected an integer of at least 0, such as 1234 or 1,234")
    return count_of(re.sub(r"\D", "", match[1]))


def facts_of(cells: RowCells, *, clean_html: bool) -> tuple[list[dict[str, object]], bool]:
    """Read the facts of one topic from a row.

    Args:
        cells: The row.
        clean_html: Whether HTML is removed from questions and answers.

    Returns:
        Five rows of `TOPIC_COLUMNS` without `popularity`, and whether the row contained HTML.

    Raises:
        RecordError: If a required cell is empty or a cell has an invalid value.
    """
    names = (*(f"{kind}{k}" for k in _INDICES for kind in ("question", "answer")), "long_question")
    texts = {name: cells.needed(name, text_of).strip() for name in (*names, "long_answer")}
    is_marked = any(map(has_markup, texts.values()))
    if clean_html:
        texts = {name: without_markup(text) or text for name, text in texts.items()}
    topic, url = cells.needed("topic", text_of).strip(), cells.read("url", text_of)
    identifier = topic_id_of(topic)
    of_topic: dict[str, object] = {
        "topic_id": identifier,
        "category": cells.needed("category", text_of).strip(),
        "topic": topic,
        "url": None if url is None else url.strip(),
        "long_question": texts["long_question"],
        "long_answer": texts["long_answer"],
        "pageviews": cells.read("pageviews", views_of),
    }
    facts = [
        of_topic
        | {
            "item": f"{identifier}/{k}",
            "question_index": k,
            "question": texts[f"question{k}"],
            "answer": texts[f"answer{k}"],
            "is_entity": cells.read(f"entity{k}", flag_of),
        }
        for k in _INDICES
    ]
    return facts, is_marked


def to_slaq_rows(topics: Iterable[SlaqTopic]) -> Iterator[SlaqRow]:
    """Convert topics to rows of the release's layout, which `load_slaq` reads.

    Args:
        topics: The topics.

    Yields:
        One row per topic, in order. The popularity half is not stored: it follows from page views.
    """
    for topic in topics:
        cells: dict[str, object] = {
            "Category": topic.category,
            "Topic": topic.topic,
            "URL": topic.url,
            "LongQ": topic.long_question,
            "LongA": topic.long_answer,
            "Pageviews": topic.pageviews,
        }
        for question in topic.questions:
            cells[f"ShortQ{question.index}"] = question.question
            cells[f"ShortA{question.index}"] = question.answer
            flag = question.is_entity
            cells[f"ShortQ{question.index}_Entity"] = None if flag is None else int(flag)
        yield SlaqRow.model_validate(cells)


def write_slaq_csv(path: str | os.PathLike[str], topics: Iterable[SlaqTopic]) -> int:
    """Write topics as the release's CSV file, atomically.

    Args:
        path: The file, such as `test.csv`; its folder must exist.
        topics: The topics.

    Returns:
        The number of rows. Unknown cells are empty.
    """
    rows = [row.model_dump() for row in to_slaq_rows(topics)]
    with atomic_path(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(SlaqRow.model_fields), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def _number_text(value: object) -> str | None:
    """Return the text of a cell that contains a number; None if it is empty."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if not isinstance(value, str | int | float):
        raise ValueError("expected a number")
    return str(value).strip() or None


def has_markup(text: str) -> bool:
    """Check whether a text contains HTML tags or character references.

    Args:
        text: Any text. "a < b" and "x<y>z" do not count: only names of HTML tags do.

    Returns:
        Whether it contains any.

    Examples:
        >>> has_markup("H<sub>2</sub>O"), has_markup("Rock &amp; roll"), has_markup("if a<b, b>c")
        (True, True, False)
    """
    return bool(_TAG.search(text) or _ENTITY.search(text))


def without_markup(text: str) -> str:
    """Convert HTML to its visible text, on one line.

    Args:
        text: Any text; one without markup is returned unchanged.

    Returns:
        The text: exponents are written with "^"; scripts, styles and references are removed.

    Examples:
        >>> without_markup("<i>E</i> = <b>mc<sup>2</sup></b> &amp; so on<br/>more")
        'E = mc^2 & so on more'
    """
    if not has_markup(text):
        return text
    plain = _BREAK.sub(
        " ", replace_elements(replace_elements(text, _DROPPED), _POWER, "^{}".format)
    )
    return " ".join(html.unescape(_TAG.sub("", plain)).split())
