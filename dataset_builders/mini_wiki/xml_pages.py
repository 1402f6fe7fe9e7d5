"""The pages of the wiki as a `pages-articles` export, with the redirects' templates."""

import hashlib
from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape

from dataset_builders.mini_wiki.tables import Redirect, Tables

__all__ = ["xml_parts"]

_NAMESPACES: Final = {
    0: "",
    1: "Talk",
    2: "User",
    3: "User talk",
    4: "Wikipedia",
    5: "Wikipedia talk",
    10: "Template",
    11: "Template talk",
    14: "Category",
    15: "Category talk",
}
_SCHEMA: Final = "http://www.mediawiki.org/xml/export-0.11/"


def xml_parts(tables: Tables) -> list[bytes]:
    """Write the export in three parts, which the dumps compress one by one.

    Args:
        tables: The wiki.

    Returns:
        Head and foot with the pages between them; joined, they are one document.
    """
    pages = list(_pages(tables))
    half = len(pages) // 2
    head = _head()
    return [
        (head + "".join(pages[:half])).encode(),
        "".join(pages[half:]).encode(),
        b"</mediawiki>\n",
    ]


def _head() -> str:
    """Open the document and name the wiki's namespaces."""
    names = "".join(
        f'      <namespace key="{key}" case="first-letter" />\n'
        if not name
        else f'      <namespace key="{key}" case="first-letter">{name}</namespace>\n'
        for key, name in _NAMESPACES.items()
    )
    return (
        f'<mediawiki xmlns="{_SCHEMA}" version="0.11" xml:lang="en">\n'
        "  <siteinfo>\n    <sitename>Wikipedia</sitename>\n    <dbname>enwiki</dbname>\n"
        "    <base>https://en.wikipedia.org/wiki/Main_Page</base>\n"
        "    <generator>MediaWiki 1.46.0-wmf.7</generator>\n    <case>first-letter</case>\n"
        f"    <namespaces>\n{names}    </namespaces>\n  </siteinfo>\n"
    )


def _pages(tables: Tables) -> Iterator[str]:
    """Write articles, redirects and other pages by page id."""
    for entity in tables.entities:
        if entity.title is not None and entity.page_id is not None:
            text = (
                f"'''{entity.label}''' is an invention.\n\n{{{{R from birth name}}}} says a note.\n"
            )
            yield _page(entity.page_id, 0, entity.title, text, None)
    for redirect in tables.redirects:
        yield _page(
            redirect.page_id,
            redirect.namespace,
            redirect.title,
            _redirect_text(redirect, tables),
            _target(redirect),
        )
    for page in tables.pages:
        text = "{{Disambiguation}}\n" if page.page_prop == "disambiguation" else "A page.\n"
        yield _page(page.page_id, page.namespace, page.title, text, None)


def _redirect_text(redirect: Redirect, tables: Tables) -> str:
    """Write a redirect's wikitext: the command in one of its spellings, then the templates."""
    command = ("#REDIRECT ", "#redirect", "#Redirect: ")[redirect.page_id % 3]
    fragment = f"#{redirect.fragment}" if redirect.fragment else ""
    templates = redirect.wikitext or "\n".join(
        f"{{{{{tables.templates[name]}}}}}" for name in redirect.categories
    )
    return f"{command}[[{_target(redirect)}{fragment}]]\n\n{templates}".rstrip() + "\n"


def _target(redirect: Redirect) -> str:
    """Name the target as a link does, without its section."""
    if redirect.interwiki:
        return f"{redirect.interwiki}:{redirect.target}".replace("_", " ")
    return _full_title(redirect.target_namespace, redirect.target)


def _full_title(namespace: int, title: str) -> str:
    """Put the namespace before a title, with spaces."""
    prefix = _NAMESPACES[namespace]
    return (f"{prefix}:{title}" if prefix else title).replace("_", " ")


def _page(page_id: int, namespace: int, title: str, text: str, target: str | None) -> str:
    """Write one page with its one revision."""
    redirect = "" if target is None else f'    <redirect title="{_quoted(target)}" />\n'
    content = text.encode()
    digest = hashlib.sha1(content, usedforsecurity=False).hexdigest()[:31]
    return (
        f"  <page>\n    <title>{_quoted(_full_title(namespace, title))}</title>\n"
        f"    <ns>{namespace}</ns>\n    <id>{page_id}</id>\n{redirect}"
        f"    <revision>\n      <id>{900000 + page_id}</id>\n"
        "      <timestamp>2025-12-31T23:59:59Z</timestamp>\n"
        "      <contributor>\n        <username>Lamp</username>\n        <id>5</id>\n"
        "      </contributor>\n"
        f"      <comment>about [[{_quoted(title)}]]</comment>\n"
        f"      <origin>{900000 + page_id}</origin>\n"
        "      <model>wikitext</model>\n      <format>text/x-wiki</format>\n"
        f'      <text bytes="{len(content)}" sha1="{digest}" xml:space="preserve">'
        f"{_quoted(text)}</text>\n"
        f"      <sha1>{digest}</sha1>\n    </revision>\n  </page>\n"
    )


def _quoted(text: str) -> str:
    """Escape a text as MediaWiki does, quotes included."""
    return escape(text, {'"': "&quot;"})
