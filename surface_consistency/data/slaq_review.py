"""The sheet for the manual pass: a table to fill in and to read back, and a page to read."""

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jinja2 import Template

from surface_consistency.data.readers import read_rows
from surface_consistency.data.slaq_rules import Violation
from surface_consistency.data.slaq_written import WrittenFact, WrittenTopic
from surface_consistency.errors import ColumnNotFoundError, DataError, RecordError
from surface_consistency.runs.files import unguard_cell, write_text
from surface_consistency.schemas.slaq import SlaqArticle

__all__ = [
    "REVIEW_COLUMNS",
    "ReviewItem",
    "ReviewedTopic",
    "read_review_sheet",
    "write_review_sheet",
]

REVIEW_COLUMNS: Final = (
    *("topic_id", "topic", "category", "url", "fact", "question", "answer"),
    *("is_entity", "violations"),
    *("is_open_domain", "is_grounded", "corrected_question", "corrected_answer", "note"),
)
"""Columns of the table; the last five are for the reviewer, who may mend `is_entity` too. `fact` is
1 to 5 or "long"."""

_LONG: Final = "long"
_NEEDED: Final = ("topic_id", *REVIEW_COLUMNS[4:8], *REVIEW_COLUMNS[-5:-1])
_MARKS: Final = {
    **dict.fromkeys(("1", "1.0", "yes", "y", "true"), True),
    **dict.fromkeys(("0", "0.0", "no", "n", "false"), False),
    "": None,
}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
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
    if table.is_file() and _is_filled(table):
        raise DataError(f"{table} holds the notes of a reviewer; move it, then write it again")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(REVIEW_COLUMNS)
    for item in items:
        writer.writerows(
            [f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in row]
            for row in _rows(item)
        )
    write_text(table, text.getvalue())
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
    found: dict[str, dict[str, Mapping[str, str]]] = {}
    for place, row in read_rows(Path(path)):
        if missing := [name for name in _NEEDED if name not in row]:
            raise ColumnNotFoundError(
                f"{place}: the review sheet lacks {', '.join(missing)}; keep all of its columns"
            )
        cells = {name: str(unguard_cell(row[name] or "")).strip() for name in _NEEDED}
        topic, fact = cells["topic_id"], cells["fact"].removesuffix(".0")
        if fact not in {*"12345", _LONG}:
            raise RecordError(f"{place}: `fact` is 1 to 5 or long, not {fact!r}")
        if fact in found.setdefault(topic, {}):
            raise RecordError(f"{place}: topic {topic!r} has row {fact} twice; keep one")
        for name in ("is_open_domain", "is_grounded", "is_entity"):
            if cells[name].lower() not in _MARKS:
                raise RecordError(
                    f"{place}: column {name!r} is yes, no or empty, not {cells[name]!r}"
                )
        found[topic][fact] = cells
    if not found:
        raise DataError(f"{path} holds no rows")
    for topic, rows in found.items():
        if lost := [fact for fact in (*"12345", _LONG) if fact not in rows]:
            raise DataError(
                f"{path}: topic {topic!r} lost its rows {', '.join(lost)}; a topic is left out by "
                "a no, not by deleting rows"
            )
    return {topic: _reviewed(rows) for topic, rows in found.items()}


def _reviewed(rows: Mapping[str, Mapping[str, str]]) -> ReviewedTopic:
    """Take the reviewer's texts and marks of one topic."""
    texts, confirmed, refused, corrected = {}, set(), set(), set()
    for fact, cells in rows.items():
        own = {kind: cells[f"corrected_{kind}"] for kind in ("question", "answer")}
        texts[fact] = [own[kind] or cells[kind] or None for kind in ("question", "answer")]
        marks = [_MARKS[cells[name].lower()] for name in ("is_open_domain", "is_grounded")]
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
                    is_entity=_MARKS[rows[fact]["is_entity"].lower()],
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


def _is_filled(table: Path) -> bool:
    """Tell whether a reviewer has written into a table."""
    with table.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        return any(
            (row.get(name) or "").strip()
            for row in csv.DictReader(lines)
            for name in REVIEW_COLUMNS[-5:]
        )


def _rows(item: ReviewItem) -> Iterable[tuple[str, ...]]:
    """Lay one item out: a row a fact, then the long question."""
    article, written = item.article, item.written
    head = (article.topic_id, article.title, article.category, article.url or "")
    blank = ("",) * 5
    for index, fact in enumerate(written.facts, start=1):
        said = _messages(item, f"ShortQ{index}", f"ShortA{index}")
        flag = "" if fact.is_entity is None else str(int(fact.is_entity))
        texts = (fact.question or "", fact.answer or "", flag, "; ".join(said))
        yield (*head, str(index), *texts, *blank)
    known = {f"Short{kind}{k}" for k in range(1, len(written.facts) + 1) for kind in "QA"}
    others = [fault.field for fault in item.violations if fault.field not in known]
    said = _messages(item, *others)
    texts = (written.long_question or "", written.long_answer or "", "", "; ".join(said))
    yield (*head, "long", *texts, *blank)


def _messages(item: ReviewItem, *fields: str) -> list[str]:
    """Return what the checks said of some fields."""
    return [fault.message for fault in item.violations if fault.field in fields]
