"""The prose of a wiki's pages, and which of its words are links to which page."""

import html
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Unpack

from surface_consistency_build.wikimedia._export_parser import RawPage, export_pages
from surface_consistency_build.wikimedia.pages_xml import link_parts, redirect_link
from surface_consistency_build.wikimedia.streams import ReadOptions, open_ahead
from surface_consistency_build.wikimedia.wikitext import SiteInfo, rendered_part

_FILE, _CATEGORY = 6, 14
_DROPPED: Final = re.compile(
    r"<(?P<tag>ref|gallery|timeline|score|imagemap|chem|hiero|graph|mapframe|templatestyles)\b"
    r"(?:[^>]*/>|[^>]*>.*?</(?P=tag)\s*>)",
    re.IGNORECASE | re.DOTALL,
)
_BLOCK: Final = re.compile(r"^[ \t:*#;]*(\{\|)|^[ \t]*(\|\})(?!\})|\{{2,}|\}{2,}", re.MULTILINE)
_LINE_BREAK: Final = re.compile(r"<(?:br|hr|p|/p|div|/div|li|/li)\b[^>]*>", re.IGNORECASE)
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")
_HEADING: Final = re.compile(r"^(={1,6})[ \t]*(.+?)[ \t]*\1[ \t]*$", re.MULTILINE)
_MARKS: Final = re.compile(r"'{2,}|^[*#:;]+[ \t]*|^-{4,}|__[A-Z]{4,}__", re.MULTILINE)
_OUTSIDE: Final = re.compile(
    r"\[(?:(?:https?|ftp|mailto):|//)[^\s\[\]]*[ \t]*([^\[\]]*)\]", re.IGNORECASE
)
_BRACKETS: Final = re.compile(r"\[\[|\]\]")
_BLANK_LINES: Final = re.compile(r"[ \t]*\n(?:[ \t]*\n)+")
_IN_BRACKETS: Final = re.compile(r"\s*(?:\([^()]*\)|（[^（）]*）)\s*\Z")


class PageLink(NamedTuple):
    """A link of a page to another page of the wiki."""

    start: int
    """First character of its label, in the page's text."""

    stop: int
    """Character after the last."""

    target: str
    """Title that it leads to, as the wiki spells titles; the page need not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedPage:
    """A page as its readers see it."""

    page_id: int
    """Number of the page."""

    title: str
    """Its title."""

    redirect: str | None
    """Title of the page in this wiki that it redirects to; None if it is no such redirect."""

    text: str
    """Its prose; empty for redirects."""

    links: tuple[PageLink, ...]
    """Links to pages of the main namespace, in order."""


def read_linked_pages(
    path: str | os.PathLike[str],
    *,
    namespaces: Collection[int] | None = (0,),
    **options: Unpack[ReadOptions],
) -> Iterator[LinkedPage]:
    """Read the pages of a MediaWiki export with their links.

    Args:
        path: The export, packed or not.
        namespaces: Namespaces to keep; all when None.
        options: Whether a damaged file is read as far as it goes, who hears of progress, and how
            many threads unpack: `ReadOptions`.

    Yields:
        The pages in order. Redirects to other wikis and namespaces are left out.

    Raises:
        SourceNotFoundError: If there is no such file.
        DataError: If the file is cut off, damaged, or no MediaWiki export.

    Warns:
        DataWarning: If the file is cut off or damaged and that is allowed.
    """
    with open_ahead(path, **options) as (stream, chunks):
        for page in export_pages(stream, chunks, namespaces=namespaces, only_redirects=False):
            made = _linked_page(page)
            if made is not None:
                yield made


def _linked_page(page: RawPage) -> LinkedPage | None:
    """Read one page; None for a redirect that leads out of the articles."""
    link = redirect_link(page.text, is_known=page.redirect is not None)
    redirect: str | None = None
    text, links = "", tuple[PageLink, ...]()
    if page.redirect or link is not None:
        target = page.redirect or ("" if link is None else page.site.title(link_parts(link[1])[0]))
        if not target or page.site.is_interwiki(target) or page.site.namespace_of(target):
            return None
        redirect = target
    else:
        text, links = linked_text(page.text, page.site)
    return LinkedPage(
        page_id=page.page_id or 0, title=page.title, redirect=redirect, text=text, links=links
    )


def linked_text(wikitext: str, site: SiteInfo | None = None) -> tuple[str, tuple[PageLink, ...]]:
    """Bring wikitext into plain text, and tell where it links to.

    Templates, tables, references, galleries, files and categories are left out with the links in
    them; headings and items of lists stay as lines. Small letters right after a link belong to its
    label, as in MediaWiki ("[[bus]]es").

    Args:
        wikitext: Text of a page.
        site: The wiki, for the names of its namespaces.

    Returns:
        The text, and its links to pages of the main namespace.

    Examples:
        >>> text, links = linked_text("'''Paris''' has [[bus]]es and the [[Louvre|museum]]{{cn}}.")
        >>> text, [(text[link.start : link.stop], link.target) for link in links]
        ('Paris has buses and the museum.', [('buses', 'Bus'), ('museum', 'Louvre')])
    """
    wiki = site or SiteInfo()
    text = _without_blocks(_DROPPED.sub("", rendered_part(wikitext)))
    text = _TAG.sub("", _LINE_BREAK.sub("\n", text))
    text = _OUTSIDE.sub(r"\1", _MARKS.sub("", _HEADING.sub(r"\2", text)))
    text = _BLANK_LINES.sub("\n\n", html.unescape(text)).strip()
    parts: list[str] = []
    links: list[PageLink] = []
    done = length = 0
    for start, stop in _link_spans(text, wiki):
        before = text[done:start]
        label, target = _read_link(text[start + 2 : stop - 2], wiki)
        done = stop
        if target is not None:
            while done < len(text) and text[done].islower():
                done += 1
            label += text[stop:done]
        parts += [before, label]
        length += len(before)
        if target is not None and label.strip():
            links.append(PageLink(length, length + len(label), target))
        length += len(label)
    return "".join([*parts, text[done:]]), tuple(links)


def _without_blocks(text: str) -> str:
    """Leave out templates and tables; what nothing closes is text."""
    if "{" not in text:
        return text
    spans: list[tuple[int, int]] = []
    stack: list[tuple[str, int]] = []
    for token in _BLOCK.finditer(text):
        if token[1]:
            stack.append(("table", token.start(1)))
        elif token[2]:
            _close(stack, spans, "table", token.end())
        elif token[0][0] == "{":
            stack += [("call", token.start() + 2 * k) for k in range(len(token[0]) // 2)]
        else:
            for k in range(len(token[0]) // 2):
                _close(stack, spans, "call", token.start() + 2 * (k + 1))
    parts, done = [], 0
    for start, stop in sorted(spans):
        if start >= done:
            parts.append(text[done:start])
        done = max(done, stop)
    return "".join([*parts, text[done:]])


def _close(stack: list[tuple[str, int]], spans: list[tuple[int, int]], kind: str, end: int) -> None:
    """Close the innermost block of a kind; blocks within it that are open never close."""
    for depth in range(len(stack) - 1, -1, -1):
        if stack[depth][0] == kind:
            spans.append((stack[depth][1], end))
            del stack[depth:]
            return
        if kind == "table":
            # A table does not end outside the template that it stands in.
            return


def _link_spans(text: str, site: SiteInfo) -> list[tuple[int, int]]:
    """Find links: those of files and categories with all that is in them, else the innermost."""
    spans: list[tuple[int, int]] = []
    stack: list[int] = []
    for token in _BRACKETS.finditer(text):
        if token[0] == "[[":
            stack.append(token.start())
        elif stack:
            start = stack.pop()
            holds = bool(spans) and spans[-1][0] > start
            if not holds or _is_embedded(text[start + 2 : token.end()], site):
                while spans and spans[-1][0] > start:
                    spans.pop()
                spans.append((start, token.end()))
    return spans


def _is_embedded(link: str, site: SiteInfo) -> bool:
    """Tell whether a link shows a file or names a category, rather than lead somewhere."""
    target = link.partition("|")[0]
    return ":" in target and site.namespace_of(target.strip()) in (_FILE, _CATEGORY)


def _read_link(link: str, site: SiteInfo) -> tuple[str, str | None]:
    """Return the label of a link, and the title of the article that it leads to, if it does."""
    given, bar, label = link.partition("|")
    target = link_parts(given)[0]
    shown = label.strip() if bar else given.strip().removeprefix(":").lstrip()
    if bar and not shown:
        shown = _IN_BRACKETS.sub("", given.rpartition(":")[2]).strip()
    if not target or "\n" in given:
        return shown, None
    if ":" in target:
        is_shown = target.startswith(":") or bool(bar)
        plain = target.removeprefix(":").lstrip()
        if site.is_interwiki(plain):
            return (shown if is_shown else ""), None
        number = site.namespace_of(plain)
        if number:
            is_hidden = number in (_FILE, _CATEGORY) and not target.startswith(":")
            return ("" if is_hidden else shown), None
    return shown.rpartition("|")[2], site.title(target)
