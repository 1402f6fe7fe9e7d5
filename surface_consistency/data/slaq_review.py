"""The sheet for the manual pass: a table to fill in, and a page to read."""

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jinja2 import Template

from surface_consistency.data.slaq_rules import Violation
from surface_consistency.data.slaq_written import WrittenTopic
from surface_consistency.errors import ColumnNotFoundError, DataError, RecordError
from surface_consistency.reading import delimited_rows, existing_file
from surface_consistency.runs.files import unguard_cell, write_text
from surface_consistency.schemas.slaq import SlaqArticle, SlaqTopic

__all__ = ["REVIEW_COLUMNS", "ReviewItem", "Reviewed", "apply_review", "write_review_sheet"]

REVIEW_COLUMNS: Final = (
    *("topic_id", "topic", "category", "url", "fact", "question", "answer", "violations"),
    *("is_open_domain", "is_grounded", "corrected_question", "corrected_answer", "note"),
)
"""Columns of the table; the last five are for the reviewer. `fact` is 1 to 5 or "long"."""

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_WORDS: Final = {
    "": None,
    **dict.fromkeys(("yes", "y", "1", "true", "x"), True),
    **dict.fromkeys(("no", "n", "0", "false"), False),
}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """Result of `apply_review`."""

    topics: tuple[SlaqTopic, ...]
    """Topics that passed, with the corrections."""

    rejected: tuple[tuple[str, str], ...]
    """Id and reason of each topic that did not."""

    n_corrected: int
    """Questions and answers that were corrected, in the topics that passed."""


def apply_review(topics: Sequence[SlaqTopic], table: str | os.PathLike[str]) -> Reviewed:
    """Read a filled sheet back.

    What stands in corrected_question and corrected_answer takes the place of what was written; in
    the row "long" that of the long question and answer. A pair that the reviewer says is not open
    to everyone or not grounded, and does not correct, rejects its topic; so does one that breaks a
    rule and is neither corrected nor said to be both. What nobody looked at stays as it is.

    Args:
        topics: The topics that the sheet is of, those in doubt among them.
        table: The sheet, `review.csv`.

    Returns:
        The topics that passed and the reasons why the others did not.

    Raises:
        SourceNotFoundError: If there is no such file.
        ColumnNotFoundError: If it lacks a column.
        DataError: If it names none of the topics.
        RecordError: If a flag is neither yes nor no; names file and line.
    """
    path = existing_file(Path(table), "a filled review sheet", "review.csv")
    rows: dict[str, dict[str, _Note]] = {}
    for line, cells in delimited_rows(path, ","):
        missing = [name for name in REVIEW_COLUMNS if name not in cells]
        if missing:
            raise ColumnNotFoundError(f"{path}: no column {', '.join(missing)}; saw {list(cells)}")
        note = _note(cells, f"{path}:{line}")
        rows.setdefault(cells["topic_id"], {})[cells["fact"].strip()] = note
    known = {topic.id for topic in topics}
    if topics and not known & rows.keys():
        raise DataError(
            f"{path} names no topic of these, such as {topics[0].id!r}: it is the sheet of others"
        )
    passed, rejected, n_corrected = [], [], 0
    for topic in topics:
        notes = rows.get(topic.id, {})
        reason = next((text for fact, note in notes.items() if (text := note.fault(fact))), None)
        if reason is not None:
            rejected.append((topic.id, reason))
            continue
        passed.append(_corrected(topic, notes))
        n_corrected += sum(bool(n.question) + bool(n.answer) for n in notes.values())
    rejected += [(name, "it was never complete") for name in rows if name not in known]
    return Reviewed(topics=tuple(passed), rejected=tuple(rejected), n_corrected=n_corrected)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """What a reviewer said of one pair."""

    question: str
    answer: str
    is_open_domain: bool | None
    is_grounded: bool | None
    violations: str
    note: str

    def fault(self, fact: str) -> str | None:
        """Say why a pair rejects its topic."""
        if self.question or self.answer:
            return None
        name = "the long question" if fact == "long" else f"fact {fact}"
        said = f": {self.note}" if self.note else ""
        if self.is_open_domain is False:
            return f"{name} is not open-domain{said}"
        if self.is_grounded is False:
            return f"{name} is not grounded{said}"
        if self.violations and not (self.is_open_domain and self.is_grounded):
            return f"{name} breaks a rule ({self.violations}), and nobody corrected or passed it"
        return None


def _note(cells: Mapping[str, str], place: str) -> _Note:
    """Read the cells of a reviewer."""
    flags: dict[str, bool | None] = {}
    for name in ("is_open_domain", "is_grounded"):
        word = cells[name].strip().lower()
        if word not in _WORDS:
            raise RecordError(f"{place}: {name} is yes or no, or empty; got {cells[name]!r}")
        flags[name] = _WORDS[word]
    return _Note(
        question=str(unguard_cell(cells["corrected_question"].strip())),
        answer=str(unguard_cell(cells["corrected_answer"].strip())),
        violations=cells["violations"].strip(),
        note=cells["note"].strip(),
        is_open_domain=flags["is_open_domain"],
        is_grounded=flags["is_grounded"],
    )


def _corrected(topic: SlaqTopic, notes: Mapping[str, _Note]) -> SlaqTopic:
    """Put corrections into a topic."""
    questions = tuple(
        question.model_copy(
            update={
                name: text
                for name in ("question", "answer")
                if (note := notes.get(str(question.index))) and (text := getattr(note, name))
            }
        )
        for question in topic.questions
    )
    long = notes.get("long")
    changed: dict[str, object] = {"questions": questions}
    if long is not None and long.question:
        changed["long_question"] = long.question
    if long is not None and long.answer:
        changed["long_answer"] = long.answer
    return topic.model_copy(update=changed)


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
