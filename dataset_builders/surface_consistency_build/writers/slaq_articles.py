"""Read and clean the articles for the question writer."""

import os
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from surface_consistency.data.slaq_records import SlaqArticle
from surface_consistency.data.slaq_rows import views_of
from surface_consistency.errors import RecordError, SourceNotFoundError
from surface_consistency.reading import decode_text, read_document
from surface_consistency.rows.cells import RowCells, text_of
from surface_consistency.rows.columns import resolve_columns
from surface_consistency.rows.readers import FORMATS, Place, read_rows
from surface_consistency.schemas.jsonl import describe_validation_error

ARTICLE_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "title": ("title", "topic", "name"),
    "category": ("category",),
    "text": ("text", "content", "article"),
    "url": ("url",),
    "pageviews": ("pageviews", "views"),
}
"""Fields of an article, and the columns that may contain them."""

_TEXT_SUFFIXES: Final = (".txt", ".html", ".htm")
_PAGE: Final = re.compile(r"<(?:!doctype|html|body|p|div)\b", re.IGNORECASE)
_DROPPED_TAGS: Final = frozenset(
    {"annotation", "audio", "figure", "nav", "script", "style", "table", "video"}
)
_DROPPED_CLASSES: Final = frozenset(
    {"hatnote", "infobox", "metadata", "mw-editsection", "navbox", "reference", "reflist"}
    | {"sidebar", "thumb", "toc", "vertical-navbox"}
)
_VOID: Final = frozenset(
    {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
)
_BLOCKS: Final = frozenset(
    {"blockquote", "br", "dd", "div", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "li", "p"}
)


def clean_article(text: str) -> str:
    r"""Extract the running text of an article, as in the paper's appendix A.1.

    Args:
        text: Plain text, or an HTML page or part of one.

    Returns:
        The text with one space for each run of white space and one blank line between paragraphs.
        Tables, images, scripts, styles, hatnotes, navigation boxes, the table of contents and note
        marks are removed from HTML.

    Examples:
        >>> clean_article('<p>Rome  <b>fought</b>.</p><table><tr><td>x</table><p>So')
        'Rome fought.\n\nSo'
    """
    if _PAGE.search(text):
        parser = _RunningText()
        parser.feed(text)
        parser.close()
        text = "".join(parser.parts)
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return "\n\n".join(part for part in paragraphs if part)


def is_long_enough(
    article: SlaqArticle, *, min_words: int = 1000, min_characters: int = 1000
) -> bool:
    """Check whether an article has the paper's minimum length.

    The paper gives two limits: more than 1,000 words (section 3.2) and at least 1,000 characters
    (appendix A.1). Both are checked; the first is stricter.

    Args:
        article: The article, cleaned.
        min_words: The article must have more words than this.
        min_characters: Minimum number of characters.

    Returns:
        Whether it is long enough.
    """
    return len(article.text) >= min_characters and len(article.text.split()) > min_words


def read_articles(
    path: str | os.PathLike[str], *, category: str | None = None
) -> Iterator[SlaqArticle]:
    """Read articles from a file of rows, one text file, or a folder of text files.

    Args:
        path: A `.jsonl`, `.csv`, `.parquet`, ... file with the columns title, category, text, and
            optionally url and pageviews; or a `.txt` or `.html` file, whose name is the title; or a
            folder of such text files, whose subfolders are the categories.
        category: Category of articles that have no category in the source.

    Yields:
        The articles, cleaned, in the source's order or by file name.

    Raises:
        SourceNotFoundError: If articles are not found.
        ColumnNotFoundError: If a file of rows lacks title or text, or category if `category` is
            None.
        RecordError: If an article has no text, no title or no category, or a file is not UTF-8.
    """
    source = Path(path)
    if source.is_dir():
        files = sorted(file for file in source.rglob("*") if file.suffix.lower() in _TEXT_SUFFIXES)
        if not files:
            raise SourceNotFoundError(f"no {', '.join(_TEXT_SUFFIXES)} file in folder {source}")
        for file in files:
            name = file.parent.name if file.parent != source else category
            yield _from_text(file, name)
    elif source.suffix.lower() in _TEXT_SUFFIXES and source.is_file():
        yield _from_text(source, category)
    elif source.suffix.lower() in FORMATS:
        yield from _from_rows(source, category)
    else:
        raise SourceNotFoundError(
            f"no articles at {source}; pass a folder of text files, a text file "
            f"({', '.join(_TEXT_SUFFIXES)}) or a file of rows ({', '.join(FORMATS)})"
        )


def _from_text(file: Path, category: str | None) -> SlaqArticle:
    """Read one article from a text file."""
    text = decode_text(read_document(file), str(file))
    if category is None:
        raise RecordError(
            f"{file}: category missing; move the file to a folder with the name of its category, "
            "or pass the category"
        )
    cells = {"title": file.stem.replace("_", " "), "category": category, "text": text}
    return _article(RowCells({name: name for name in cells}, Place(str(file), 1), cells), category)


def _from_rows(file: Path, category: str | None) -> Iterator[SlaqArticle]:
    """Read articles from rows."""
    required = ("title", "text") if category is not None else ("title", "text", "category")
    for place, row in read_rows(file):
        columns = resolve_columns(list(row), ARTICLE_COLUMNS, required=required)
        yield _article(RowCells(columns, place, row), category)


def _article(cells: RowCells, category: str | None) -> SlaqArticle:
    """Convert cells to an article."""
    url = cells.read("url", text_of)
    try:
        return SlaqArticle(
            title=cells.needed("title", text_of).strip(),
            category=(cells.read("category", text_of) or category or "").strip(),
            text=clean_article(cells.needed("text", text_of)),
            url=None if url is None else url.strip(),
            pageviews=cells.read("pageviews", views_of),
        )
    except ValidationError as error:
        raise RecordError(f"{cells.place}: {describe_validation_error(error)}") from error


class _RunningText(HTMLParser):
    """Collects the visible running text of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._dropped: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Enter an element, or increase the depth within a dropped element."""
        if tag in _VOID:
            if tag == "br" and not self._dropped:
                self.parts.append("\n\n")
            return
        classes = {name for key, value in attrs if key in {"class", "id"} for name in _split(value)}
        if self._dropped:
            if tag == self._dropped[-1]:
                self._dropped.append(tag)
        elif tag in _DROPPED_TAGS or classes & _DROPPED_CLASSES:
            self._dropped.append(tag)
        elif tag in _BLOCKS:
            self.parts.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        if self._dropped:
            if tag == self._dropped[-1]:
                self._dropped.pop()
        elif tag in _BLOCKS:
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        """Keep text outside dropped elements."""
        if not self._dropped:
            self.parts.append(data)


def _split(value: str | None) -> Iterable[str]:
    """Split an attribute into lower-case names."""
    return (value or "").lower().split()
