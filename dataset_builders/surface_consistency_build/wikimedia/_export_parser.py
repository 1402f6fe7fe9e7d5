"""Extract the pages of a MediaWiki export with expat."""

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from xml.parsers import expat

from surface_consistency.errors import DataError
from surface_consistency.reading import shown
from surface_consistency_build.wikimedia.streams import DumpStream
from surface_consistency_build.wikimedia.wikitext import SiteInfo

_BUFFER_BYTES = 1 << 16
MAX_TEXT_BYTES = 1 << 26
"""Maximum length of a text or tag, 64 MiB; MediaWiki limits a page to 2 MiB
(`$wgMaxArticleSize`)."""

_DEEPEST = 100
_FIRST_WITH_REDIRECTS = (0, 4)
_KEPT = frozenset({"title", "ns", "id", "text", "dbname", "namespace"})


@dataclass(slots=True, kw_only=True)
class RawPage:
    """One `<page>`, with the text of its last revision."""

    site: SiteInfo
    title: str = ""
    namespace: int | None = None
    page_id: int | None = None
    redirect: str | None = None
    text: str = ""


def export_pages(
    stream: DumpStream,
    chunks: Iterable[bytes],
    *,
    namespaces: Container[int] | None,
    only_redirects: bool,
) -> Iterator[RawPage]:
    """Yield the pages of some namespaces (None for all), or only the redirects among them.

    With only redirects, the text of other pages is not collected.
    """
    handler = _ExportHandler(stream, namespaces, only_redirects=only_redirects)
    for chunk in chunks:
        is_sound = handler.feed(chunk)
        yield from handler.take()
        if not is_sound:
            return
    if not stream.is_truncated:
        handler.finish()


class _EndlessError(Exception):
    """An element is too long or nested too deeply; the message contains the limit."""


class _ExportHandler:
    """Collects pages from the events of expat."""

    def __init__(
        self, stream: DumpStream, namespaces: Container[int] | None, *, only_redirects: bool
    ) -> None:
        self._stream = stream
        self._namespaces = namespaces
        self._only_redirects = only_redirects
        self._trusts_element = False
        self._pages: list[RawPage] = []
        self._n_pages = 0
        self._page: RawPage | None = None
        self._is_main_slot = True
        self._parts: list[str] = []
        self._n_held = 0
        self._depth = 0
        self._fed = 0
        self._site: dict[str, str] = {}
        self._names: dict[int, str] = {}
        self._case_sensitive: set[int] = set()
        self._attributes: dict[str, str] = {}
        self._info = SiteInfo()
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.buffer_size = _BUFFER_BYTES
        self._parser.StartElementHandler = self._root
        self._parser.StartDoctypeDeclHandler = self._doctype

    def feed(self, chunk: bytes) -> bool:
        """Parse a chunk; return False if damage ends the export and that is allowed."""
        try:
            self._parser.Parse(chunk, False)
            self._fed += len(chunk)
            # expat buffers the start of a tag, however long it is.
            if self._fed - self._parser.CurrentByteIndex > MAX_TEXT_BYTES + len(chunk):
                raise _EndlessError(f"a tag is longer than {MAX_TEXT_BYTES:,} bytes")
        except expat.ExpatError as error:
            self._damaged(error)
            return False
        except _EndlessError as error:
            self._stream.end_early(
                f"{error} at plain byte {max(0, self._parser.CurrentByteIndex):,}, after "
                f"{self._n_pages:,} pages"
            )
            return False
        return True

    def finish(self) -> None:
        """Check that the export is complete."""
        try:
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            self._damaged(error)

    def take(self) -> list[RawPage]:
        """Return the collected pages."""
        pages, self._pages = self._pages, []
        return pages

    def _damaged(self, error: expat.ExpatError) -> None:
        """Raise an error, or warn if damage is allowed."""
        self._stream.end_early(
            f"the XML is cut off or damaged ({expat.ErrorString(error.code)}) at plain byte "
            f"{self._parser.ErrorByteIndex:,}, after {self._n_pages:,} pages"
        )

    def _root(self, name: str, attributes: dict[str, str]) -> None:
        """Check the root element."""
        if name != "mediawiki":
            raise DataError(
                f"{self._stream.path}: not a MediaWiki export, its root is <{name}>; give a "
                "pages-articles file or another export of pages"
            )
        version = attributes.get("version", "")
        numbers = tuple(
            int(part) for part in version.split(".") if part.isdecimal() and len(part) < 5
        )
        self._trusts_element = numbers >= _FIRST_WITH_REDIRECTS
        self._site = {"version": version, "language": attributes.get("xml:lang", "")}
        self._depth = 1
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        """Start a page, or start to collect the content of an element."""
        page = self._page
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _EndlessError(f"elements are nested more than {_DEEPEST} deep")
        if name == "page":
            self._page = RawPage(site=self._info)
            self._is_main_slot = True
        elif page is None:
            if name in {"dbname", "namespace"}:
                self._attributes = attributes
                self._collect()
        elif name == "text":
            if self._is_main_slot and self._wants_text(page):
                self._collect()
        elif name == "redirect":
            page.redirect = attributes.get("title", "")
        elif name == "content":
            self._is_main_slot = False
        elif (
            (name == "id" and page.page_id is None)
            or (name == "title" and not page.title)
            or name == "ns"
        ):
            self._collect()

    def _end(self, name: str) -> None:
        """Store the collected content, or the page."""
        self._depth -= 1
        if name == "page":
            self._end_page()
        elif name == "content":
            self._is_main_slot = True
        elif name == "siteinfo":
            self._info = SiteInfo(
                namespaces=self._names, case_sensitive=frozenset(self._case_sensitive), **self._site
            )
        elif self._parser.CharacterDataHandler is not None and name in _KEPT:
            self._parser.CharacterDataHandler = None
            self._keep(name, "".join(self._parts))
            self._parts.clear()

    def _collect(self) -> None:
        """Start to collect characters."""
        self._parts.clear()
        self._n_held = 0
        self._parser.CharacterDataHandler = self._add_text

    def _add_text(self, text: str) -> None:
        """Add characters to the current element."""
        self._n_held += len(text)
        if self._n_held > MAX_TEXT_BYTES:
            raise _EndlessError(f"a text is longer than {MAX_TEXT_BYTES:,} bytes")
        self._parts.append(text)

    def _doctype(self, *_: object) -> None:
        """Reject definitions of entities, whose expansion can be unlimited."""
        raise DataError(
            f"{self._stream.path}: not a MediaWiki export, it has a document type; give a "
            "pages-articles file or another export of pages"
        )

    def _wants_text(self, page: RawPage) -> bool:
        """Check whether a page's text can be needed."""
        if page.namespace is None:
            page.namespace = self._info.namespace_of(page.title)
        if self._namespaces is not None and page.namespace not in self._namespaces:
            return False
        return not (self._only_redirects and self._trusts_element and page.redirect is None)

    def _end_page(self) -> None:
        """Keep the page if it is wanted."""
        page, self._page = self._page, None
        if page is None:
            return
        self._n_pages += 1
        if not page.title or page.page_id is None:
            raise DataError(
                f"{self._stream.path}: a <page> without title or id ends at plain byte "
                f"{self._parser.CurrentByteIndex:,}; this is not an export of MediaWiki"
            )
        is_wanted = self._wants_text(page)
        if is_wanted and self._only_redirects and page.redirect is None:
            is_wanted = page.text.lstrip()[:1] in {"#", "＃"}
        if is_wanted:
            self._pages.append(page)

    def _keep(self, name: str, text: str) -> None:
        """Store the content of an element; the text of the last revision is kept."""
        page = self._page
        if name == "dbname":
            self._site["dbname"] = text
        elif name == "namespace":
            number = self._number(self._attributes.get("key", ""), "namespace key")
            self._names[number] = text
            if self._attributes.get("case") == "case-sensitive":
                self._case_sensitive.add(number)
        elif page is None:
            return
        elif name == "text":
            page.text = text
        elif name == "title":
            page.title = text
        elif name == "ns":
            page.namespace = self._number(text, "ns")
        else:
            page.page_id = self._number(text, "id")

    def _number(self, text: str, what: str) -> int:
        """Read a number."""
        if not re.fullmatch("-?[0-9]{1,18}", text.strip()):
            raise DataError(
                f"{self._stream.path}: {what} {shown(text)} at plain byte "
                f"{self._parser.CurrentByteIndex:,} is not a number; this is not an export of "
                "MediaWiki"
            )
        return int(text)
