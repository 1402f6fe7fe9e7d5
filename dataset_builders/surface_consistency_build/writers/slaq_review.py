"""The sheet for the manual pass: a table to fill in and to read back, and a page to read."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jinja2 import Template

from surface_consistency.data.slaq_records import SlaqArticle
from surface_consistency.errors import DataError, RecordError
from surface_consistency.runs.files import write_text
from surface_consistency_build.writers.review_sheet import ReviewSheet, mark_of
from surface_consistency_build.writers.slaq_rules import Violation
from surface_consistency_build.writers.slaq_written import WrittenFact, WrittenTopic

_SHEET: Final = ReviewSheet(
    shown=(
        *("topic_id", "topic", "category", "url", "fact", "question", "answer"),
        *("is_entity", "violations"),
    ),
    filled=("is_open_domain", "is_grounded", "corrected_question", "corrected_answer", "note"),
    marks=("is_open_domain", "is_grounded", "is_entity"),
    unread=("topic", "category", "url", "violations", "note"),
)

REVIEW_COLUMNS: Final = _SHEET.columns
"""Columns of the table; the last five are for the reviewer, who may mend `is_entity` too. `fact` is
1 to 5 or "long"."""

_LONG: Final = "long"
_TEMPLATE: Final = Path(__file__).with_name("slaq_review.html.jinja")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewItem:
    """What was written on one article, and what the checks said."""

    article: SlaqArticle
    """The article."""

    written: WrittenTopic
    """Questions and answers."""

    violations: tuple[Violation, ...] = ()
    """Rules that are broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedTopic:
    """What a reviewer made of one topic."""

    written: WrittenTopic
    """Questions and answers, the reviewer's where there are any."""

    confirmed: frozenset[str]
    """Rows, "1" to "5" and "long", that the reviewer found both open-domain and grounded."""

    refused: frozenset[str]
    """Rows that fail one of the two and were not corrected."""

    corrected: frozenset[str]
    """Rows with a text of the reviewer's."""


def write_review_sheet(
    items: Sequence[ReviewItem], out: str | os.PathLike[str], *, name: str = "review"
) -> tuple[Path, Path]:
    """Write the sheet for the manual pass.

    The paper's authors read every pair and asked whether it can be answered without the article
    and whether the answer stands in it (section 3.2).

    Args:
        items: What to review.
        out: Folder; it is made.
        name: File name without suffix.

    Returns:
        The paths of the CSV table and of the HTML page. Texts are shown, never run: the page
        escapes markup and links to http and https alone, and cells that a spreadsheet would take
        for a formula start with an apostrophe.

    Raises:
        DataError: If a table of that name is there in which a reviewer has written.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    table, page = folder / f"{name}.csv", folder / f"{name}.html"
    _SHEET.write(table, (row for item in items for row in _rows(item)))
    template = Template(_TEMPLATE.read_text("utf-8"), autoescape=True, trim_blocks=True)
    write_text(page, template.render(items=items, rows=_rows) + "\n")
    return table, page


def read_review_sheet(path: str | os.PathLike[str]) -> dict[str, ReviewedTopic]:
    """Read a sheet that a reviewer has filled in.

    `corrected_question` and `corrected_answer` take the place of what was written; of the row
    "long" they are the long question and the long answer. `is_open_domain`, `is_grounded` and
    `is_entity` hold yes or no (1, 0, true, false), or nothing where nobody said.

    Args:
        path: The table, as `write_review_sheet` wrote it and a spreadsheet saved it: CSV, TSV, ...

    Returns:
        The topics by id, in the sheet's order.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If a column of the sheet is gone.
        RecordError: If a cell holds another word than yes or no, a row is no fact of the sheet, or
            stands twice; names file and line.
        DataError: If a topic lost one of its rows, or there are none.
    """
    topics: dict[str, dict[str, Mapping[str, str]]] = {}
    for place, cells in _SHEET.read(Path(path)):
        topic, fact = cells["topic_id"], cells["fact"].removesuffix(".0")
        if fact not in {*"12345", _LONG}:
            raise RecordError(f"{place}: `fact` is 1 to 5 or long, not {fact!r}")
        if fact in topics.setdefault(topic, {}):
            raise RecordError(f"{place}: topic {topic!r} has row {fact} twice; keep one")
        topics[topic][fact] = cells
    for topic, rows in topics.items():
        if lost := [fact for fact in (*"12345", _LONG) if fact not in rows]:
            raise DataError(
                f"{path}: topic {topic!r} lost its rows {', '.join(lost)}; a topic is left out by "
                "a no, not by deleting rows"
            )
    return {topic: _reviewed(rows) for topic, rows in topics.items()}


def _reviewed(rows: Mapping[str, Mapping[str, str]]) -> ReviewedTopic:
    """Take the reviewer's texts and marks of one topic."""
    texts, confirmed, refused, corrected = {}, set(), set(), set()
    for fact, cells in rows.items():
        own = {kind: cells[f"corrected_{kind}"] for kind in ("question", "answer")}
        texts[fact] = [own[kind] or cells[kind] or None for kind in ("question", "answer")]
        marks = [mark_of(cells[name]) for name in ("is_open_domain", "is_grounded")]
        if any(own.values()):
            corrected.add(fact)
        elif False in marks:
            refused.add(fact)
        if all(marks):
            confirmed.add(fact)
    return ReviewedTopic(
        written=WrittenTopic(
            facts=tuple(
                WrittenFact(
                    question=texts[fact][0],
                    answer=texts[fact][1],
                    is_entity=mark_of(rows[fact]["is_entity"]),
                )
                for fact in "12345"
            ),
            long_question=texts[_LONG][0],
            long_answer=texts[_LONG][1],
        ),
        confirmed=frozenset(confirmed),
        refused=frozenset(refused),
        corrected=frozenset(corrected),
    )


def _rows(item: ReviewItem) -> Iterable[tuple[str, ...]]:
    """Lay one item out: a row a fact, then the long question."""
    article, written = item.article, item.written
    head = (article.topic_id, article.title, article.category, article.url or "")
    for index, fact in enumerate(written.facts, start=1):
        messages = _messages(item, f"ShortQ{index}", f"ShortA{index}")
        flag = "" if fact.is_entity is None else str(int(fact.is_entity))
        texts = (fact.question or "", fact.answer or "", flag, "; ".join(messages))
        yield (*head, str(index), *texts)
    known = {f"Short{kind}{k}" for k in range(1, len(written.facts) + 1) for kind in "QA"}
    others = [fault.field for fault in item.violations if fault.field not in known]
    messages = _messages(item, *others)
    texts = (written.long_question or "", written.long_answer or "", "", "; ".join(messages))
    yield (*head, "long", *texts)


def _messages(item: ReviewItem, *fields: str) -> list[str]:
    """Return what the checks said of some fields."""
    return [fault.message for fault in item.violations if fault.field in fields]
