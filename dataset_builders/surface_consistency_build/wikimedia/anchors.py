"""Extract the plain text of a wiki page."""

import html
import re
from typing import Final

from surface_consistency.text import replace_elements
from surface_consistency_build.wikimedia.pages_xml import link_parts
from surface_consistency_build.wikimedia.wikitext import SiteInfo, rendered_part

_FILE, _CATEGORY = 6, 14
_LONGEST_PREFIX: Final = 1_000
_DROPPED: Final = re.compile(
    r"<(?P<tag>ref|gallery|timeline|score|imagemap|chem|hiero|graph|mapframe|templatestyles)\b"
    r"[^<>]*(?<!/)>|<(?:ref|gallery|timeline|score|imagemap|chem|hiero|graph|mapframe"
    r"|templatestyles)\b[^<>]*/>",
    re.IGNORECASE,
)
_BLOCK: Final = re.compile(r"^[ \t:*#;]*(\{\|)|^[ \t]*(\|\})(?!\})|\{{2,}|\}{2,}", re.MULTILINE)
_LINE_BREAK: Final = re.compile(r"<(?:br|hr|p|/p|div|/div|li|/li)\b[^<>]*>", re.IGNORECASE)
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")
_HEADING: Final = re.compile(r"^(={1,6})[ \t]*+(.+?)(?<![ \t])[ \t]*+\1[ \t]*+$", re.MULTILINE)
_MARKS: Final = re.compile(r"'{2,}|^[*#:;]+[ \t]*|^-{4,}|__[A-Z]{4,}__", re.MULTILINE)
_OUTSIDE: Final = re.compile(
    r"\[(?:(?:https?|ftp|mailto):|//)[^\s\[\]]*+[ \t]*+([^\[\]]*+)\]", re.IGNORECASE
)
_BRACKETS: Final = re.compile(r"\[\[|\]\]")
_BLANK_LINES: Final = re.compile(r"(?<![ \t])[ \t]*\n(?:[ \t]*+\n)+")
_IN_BRACKETS: Final = re.compile(r"(?<!\s)\s*(?:\([^()]*\)|（[^（）]*）)\s*\Z")


def plain_text(wikitext: str, site: SiteInfo | None = None) -> str:
    """Convert wikitext to plain text.

    Templates, tables, references, galleries, files and categories are removed; headings and items
    of lists are kept as lines. Lower-case letters directly after a link belong to its label, as in
    MediaWiki.

    Args:
        wikitext: Text of a page.
        site: The wiki, for the names of its namespaces.

    Returns:
        The text, with the labels of links.

    Examples:
        >>> plain_text("Paris has [[bus]]es and the [[Louvre|museum]]{{cn}}.")
        'Paris has buses and the museum.'
    """
    wiki = site or SiteInfo()
    text = _without_blocks(replace_elements(rendered_part(wikitext), _DROPPED))
    text = _TAG.sub("", _LINE_BREAK.sub("\n", text))
    text = _OUTSIDE.sub(r"\1", _MARKS.sub("", _HEADING.sub(r"\2", text)))
    text = _BLANK_LINES.sub("\n\n", html.unescape(text)).strip()
    parts: list[str] = []
    done = 0
    for start, stop in _link_spans(text, wiki):
        parts += [text[done:start], _label(text[start + 2 : stop - 2], wiki)]
        done = stop
    return "".join([*parts, text[done:]])


def _without_blocks(text: str) -> str:
    """Remove templates and tables; unclosed ones are kept as text."""
    if "{" not in text:
        return text
    spans: list[tuple[int, int]] = []
    levels: list[tuple[int, list[int]]] = [(0, [])]  # Open templates with their open tables.
    for token in _BLOCK.finditer(text):
        if token[1]:
            levels[-1][1].append(token.start(1))
        elif token[2]:
            if levels[-1][1]:
                spans.append((levels[-1][1].pop(), token.end()))
        elif token[0][0] == "{":
            levels += [(token.start() + 2 * k, []) for k in range(len(token[0]) // 2)]
        else:
            for k in range(min(len(token[0]) // 2, len(levels) - 1)):
                spans.append((levels.pop()[0], token.start() + 2 * (k + 1)))
    parts, done = [], 0
    for start, stop in sorted(spans):
        if start >= done:
            parts.append(text[done:start])
        done = max(done, stop)
    return "".join([*parts, text[done:]])


def _link_spans(text: str, site: SiteInfo) -> list[tuple[int, int]]:
    """Find links: those of files and categories with their content, else the innermost ones."""
    spans: list[tuple[int, int]] = []
    stack: list[int] = []
    for token in _BRACKETS.finditer(text):
        if token[0] == "[[":
            stack.append(token.start())
        elif stack:
            start = stack.pop()
            holds = bool(spans) and spans[-1][0] > start
            if not holds or _is_embedded(
                text[start + 2 : min(token.end(), start + _LONGEST_PREFIX)], site
            ):
                while spans and spans[-1][0] > start:
                    spans.pop()
                spans.append((start, token.end()))
    return spans


def _is_embedded(link: str, site: SiteInfo) -> bool:
    """Check whether a link embeds a file or adds a category."""
    target = link.partition("|")[0]
    return ":" in target and site.namespace_of(target.strip()) in (_FILE, _CATEGORY)


def _label(link: str, site: SiteInfo) -> str:
    """Return the label of a link; empty for files, categories and links between languages."""
    given, bar, label = link.partition("|")
    target = link_parts(given)[0]
    shown = label.strip() if bar else given.strip().removeprefix(":").lstrip()
    if bar and not shown:
        shown = _IN_BRACKETS.sub("", given.rpartition(":")[2]).strip()
    if not target or "\n" in given:
        return shown
    if ":" in target:
        plain = target.removeprefix(":").lstrip()
        if site.is_interwiki(plain):
            return shown if target.startswith(":") or bar else ""
        if number := site.namespace_of(plain):
            is_hidden = number in (_FILE, _CATEGORY) and not target.startswith(":")
            return "" if is_hidden else shown
    return shown.rpartition("|")[2]
