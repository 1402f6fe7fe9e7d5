"""Redirects of an export: where they lead, and how their authors sorted them."""

import html
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from surface_consistency.wikimedia._ahead import open_ahead
from surface_consistency.wikimedia.pages_xml._export_parser import RawPage, export_pages
from surface_consistency.wikimedia.pages_xml.enwiki_templates import ENWIKI_SHELLS
from surface_consistency.wikimedia.pages_xml.magic_words import redirect_link
from surface_consistency.wikimedia.pages_xml.rcat_templates import template_key
from surface_consistency.wikimedia.pages_xml.wikitext import (
    TemplateCall,
    category_links,
    rendered_part,
    template_calls,
)
from surface_consistency.wikimedia.streams import ProgressHook

__all__ = ["RedirectPage", "read_redirects"]

_BARE_NAME = re.compile(r"[^\W\d_][^{}\[\]|<>=\n]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectPage:
    """One redirect."""

    page_id: int
    """Number of the redirect page."""

    namespace: int
    """Number of its namespace."""

    title: str
    """Its title, with namespace prefix and spaces."""

    target: str
    """Title that it leads to, with prefixes and spaces."""

    target_namespace: int | None
    """Number of the target's namespace; None for another wiki."""

    fragment: str | None
    """Section that it leads to, None for the whole page."""

    is_interwiki: bool
    """Whether the target stands in another wiki."""

    templates: tuple[str, ...]
    """Distinct templates that the page calls, with spaces and a capital, in order; bare parameters
    of a shell ("from misspelling") stand as the template that they name ("R from misspelling")."""

    categories: tuple[str, ...]
    """Distinct categories that it is put into by links, without namespace, with spaces."""


def read_redirects(
    path: str | os.PathLike[str],
    *,
    namespaces: Collection[int] | None = (0,),
    shells: Collection[str] = ENWIKI_SHELLS,
    allow_truncated: bool = False,
    progress: ProgressHook | None = None,
    threads: int | None = None,
) -> Iterator[RedirectPage]:
    """Read the redirects of a MediaWiki export, with the templates that sort them.

    The target is that of the export's `<redirect>` element, or of the wikitext in old exports
    without one; the fragment is always that of the wikitext.

    Args:
        path: The export, packed or not.
        namespaces: Namespaces to keep; all when None.
        shells: Templates whose bare parameters name redirect-category templates without their "R".
        allow_truncated: Keep what came before the place where the file is cut off or damaged, and
            warn, rather than raise.
        progress: Called after every chunk.
        threads: How many threads may unpack bzip2; as many as there are processors when None.

    Yields:
        The redirects in order.

    Raises:
        SourceNotFoundError: If there is no such file.
        DumpError: If the file is cut off, damaged, or no MediaWiki export.

    Warns:
        TruncatedDumpWarning: If the file is cut off or damaged and that is allowed.
    """
    keys = frozenset(map(template_key, shells))
    with open_ahead(path, allow_truncated=allow_truncated, progress=progress, threads=threads) as (
        stream,
        chunks,
    ):
        for page in export_pages(stream, chunks, namespaces=namespaces, only_redirects=True):
            redirect = _redirect(page, keys)
            if redirect is not None:
                yield redirect


def _redirect(page: RawPage, shells: frozenset[str]) -> RedirectPage | None:
    """Read one redirect; None where the text only looks like one."""
    link = redirect_link(page.text, is_known=page.redirect is not None)
    linked, fragment = ("", None) if link is None else _link_parts(link[1])
    if not (page.redirect or linked):
        return None
    target = page.redirect or page.site.title(linked)
    rest = rendered_part(page.text if link is None else page.text[link.end() :])
    is_interwiki = page.site.is_interwiki(target)
    return RedirectPage(
        page_id=page.page_id or 0,
        namespace=page.namespace or 0,
        title=page.title,
        target=target,
        target_namespace=None if is_interwiki else page.site.namespace_of(target),
        fragment=fragment,
        is_interwiki=is_interwiki,
        templates=_template_names(template_calls(rest, page.site), shells),
        categories=tuple(category_links(rest, page.site)),
    )


def _link_parts(link: str) -> tuple[str, str | None]:
    """Split a link into target and fragment, undoing character references and URL escapes."""
    plain = html.unescape(link)
    if "%" in plain:
        plain = unquote(plain)
    target, _, fragment = plain.partition("#")
    return target.strip(), fragment.replace("_", " ").strip() or None


def _template_names(calls: list[TemplateCall], shells: frozenset[str]) -> tuple[str, ...]:
    """List the templates, those that shells name by bare parameters among them."""
    names: dict[str, None] = {}
    for call in calls:
        names[call.name] = None
        if template_key(call.name) in shells:
            bare = (text for text in call.arguments if _BARE_NAME.fullmatch(text))
            names.update((f"R {' '.join(text.split())}", None) for text in bare)
    return tuple(names)
