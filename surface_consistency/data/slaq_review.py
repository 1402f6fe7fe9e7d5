"""The sheet for the manual pass: a table to fill in, and a page to read."""

import csv
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jinja2 import Template

from surface_consistency.data.slaq_rules import Violation
from surface_consistency.data.slaq_written import WrittenTopic
from surface_consistency.errors import DataError
from surface_consistency.runs.files import write_text
from surface_consistency.schemas.slaq import SlaqArticle

__all__ = ["REVIEW_COLUMNS", "ReviewItem", "write_review_sheet"]

REVIEW_COLUMNS: Final = (
    *("topic_id", "topic", "category", "url", "fact", "question", "answer", "violations"),
    *("is_open_domain", "is_grounded", "corrected_question", "corrected_answer", "note"),
)
"""Columns of the table; the last five are for the reviewer. `fact` is 1 to 5 or "long"."""

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
        texts = (fact.question or "", fact.answer or "", "; ".join(said))
        yield (*head, str(index), *texts, *blank)
    known = {f"Short{kind}{k}" for k in range(1, len(written.facts) + 1) for kind in "QA"}
    others = [fault.field for fault in item.violations if fault.field not in known]
    said = _messages(item, *others)
    texts = (written.long_question or "", written.long_answer or "", "; ".join(said))
    yield (*head, "long", *texts, *blank)


def _messages(item: ReviewItem, *fields: str) -> list[str]:
    """Return what the checks said of some fields."""
    return [fault.message for fault in item.violations if fault.field in fields]
