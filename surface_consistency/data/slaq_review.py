"""The sheet for the manual pass: a table to fill in, and a page to read."""

import csv
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from surface_consistency.data.slaq_rules import Violation
from surface_consistency.data.slaq_written import WrittenTopic
from surface_consistency.errors import DataError
from surface_consistency.schemas.jsonl import write_text
from surface_consistency.schemas.slaq import SlaqArticle

__all__ = ["REVIEW_COLUMNS", "ReviewItem", "write_review_sheet"]

REVIEW_COLUMNS: Final = (
    *("topic_id", "topic", "category", "url", "fact", "question", "answer", "violations"),
    *("is_open_domain", "is_grounded", "corrected_question", "corrected_answer", "note"),
)
"""Columns of the table; the last five are for the reviewer. `fact` is 1 to 5 or "long"."""

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_STYLE: Final = (
    "body{font:16px/1.4 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;width:100%}td,th{border:1px solid #999;padding:.3em .5em;"
    "text-align:left;vertical-align:top}.bad{color:#a00000}"
)


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
        writer.writerows([_harmless(cell) for cell in row] for row in _rows(item))
    write_text(table, text.getvalue())
    write_text(page, _page(items))
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


def _harmless(cell: str) -> str:
    """Keep a spreadsheet from reading a cell as a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _page(items: Sequence[ReviewItem]) -> str:
    """Write the page to read along with the table."""
    n_faults = sum(bool(item.violations) for item in items)
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Review of questions</title><style>{_STYLE}</style></head><body>"
        f"<h1>Review of questions</h1><p>{len(items)} topics, {n_faults} with broken rules. "
        "Can each question be answered without the article, and does its answer stand there? "
        "Note it in the table of the same name.</p>"
    ]
    parts += map(_section, items)
    parts.append("</body></html>\n")
    return "\n".join(parts)


def _section(item: ReviewItem) -> str:
    """Write one topic."""
    rows = "".join(
        f"<tr><td>{_text(row[4])}</td><td>{_text(row[5])}</td><td>{_text(row[6])}</td>"
        f'<td class="bad">{_text(row[7])}</td></tr>'
        for row in _rows(item)
    )
    return (
        f"<h2>{_text(item.article.title)}</h2><p>{_text(item.article.category)} {_link(item)}</p>"
        f"<table><tr><th>Fact</th><th>Question</th><th>Answer</th><th>Broken rules</th></tr>{rows}"
        "</table>"
    )


def _link(item: ReviewItem) -> str:
    """Link to the article where its address is one of the web."""
    url = item.article.url or ""
    if not url.lower().startswith(("https://", "http://")):
        return _text(url)
    return f'<a rel="noreferrer noopener" href="{escape(url, quote=True)}">{_text(url)}</a>'


def _text(text: str) -> str:
    """Escape a text and keep its direction from changing what stands around it."""
    return f"<bdi>{escape(text, quote=True)}</bdi>" if text else ""
