"""As much of MediaWiki's preprocessor as the templates and categories of redirects need."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from surface_consistency.wikimedia.pages_xml.site import SiteInfo

__all__ = ["TemplateCall", "category_links", "rendered_part", "template_calls"]

_HIDDEN: Final = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(?P<tag>nowiki|pre|math|includeonly|source|syntaxhighlight|templatedata)\b[^>/]*>"
    r".*?</(?P=tag)\s*>"
    r"|<(?:nowiki|pre)\b[^>]*/>"
    r"|</?(?:noinclude|onlyinclude)\s*/?>",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN: Final = re.compile(r"\{{2,}|\}{2,}|\[\[|\]\]|\|")
_NO_NAME: Final = re.compile(r"[<>\[\]{}|\x00\n]")
_FUNCTION: Final = re.compile(r"#|[A-Z]{3,}:|[a-z]+:", re.ASCII)
_SPACES: Final = re.compile(r"[\s_]+")
_HOLE: Final = "\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateCall:
    """One `{{...}}` of a page."""

    name: str
    """Name of the template, with spaces and a capital, without namespace."""

    arguments: tuple[str, ...]
    """Its unnamed and numbered arguments; templates and links inside them are left out."""


@dataclass(slots=True)
class _Open:
    """Braces or brackets that have not been closed yet."""

    mark: str
    count: int
    start: int
    parts: list[str] = field(default_factory=lambda: [""])


def rendered_part(text: str) -> str:
    """Leave out what MediaWiki does not read as wikitext.

    Args:
        text: The wikitext of a page.

    Returns:
        The text without comments, `<nowiki>`, `<pre>` and the like. A comment that nothing closes
        reaches to the end, as in MediaWiki.

    Examples:
        >>> rendered_part("a<!-- {{b}} --><nowiki>{{c}}</nowiki>{{d}}")
        'a{{d}}'
    """
    return _HIDDEN.sub("", text)


def template_calls(text: str, site: SiteInfo | None = None) -> list[TemplateCall]:
    r"""Find the templates that a page calls, nested ones too.

    Args:
        text: The wikitext, as `rendered_part` gives it.
        site: The wiki, for the local name of its template namespace.

    Returns:
        The calls by their start. Parser functions, magic words with a colon, parameters in three
        braces and calls with a computed name are left out.

    Examples:
        >>> [call.name for call in template_calls("{{rcat shell|1=\n{{R_from move|x}}\n}}")]
        ['Rcat shell', 'R from move']
    """
    names = (site or SiteInfo()).namespace_names(10)
    found = []
    for _, parts in sorted(_calls(text), key=lambda call: call[0]):
        name = _template_name(parts[0], names)
        if name is not None:
            found.append(TemplateCall(name=name, arguments=tuple(_arguments(parts[1:]))))
    return found


def category_links(text: str, site: SiteInfo | None = None) -> list[str]:
    """Find the categories that a page puts itself into by links.

    Args:
        text: The wikitext, as `rendered_part` gives it, without the link of a redirect.
        site: The wiki, for the local name of its category namespace.

    Returns:
        Distinct category names in order, with spaces and a capital, without namespace. Links that
        start with a colon only point to a category and are left out.

    Examples:
        >>> category_links("[[Category:redirects_from books|x]] [[:Category:No]]")
        ['Redirects from books']
    """
    wiki = site or SiteInfo()
    prefixes = "|".join(
        re.escape(name).replace(r"\\ ", "[ _]") for name in wiki.namespace_names(14)
    )
    links = re.findall(
        rf"\[\[[\s_]*(?:{prefixes})[\s_]*:([^\[\]|{{}}<>\n]+)(?:\|[^\]]*)?\]\]", text, re.IGNORECASE
    )
    return list(dict.fromkeys(filter(None, map(_capitalised, links))))


def _calls(text: str) -> Iterator[tuple[int, list[str]]]:
    """Match braces as MediaWiki does: innermost first, three for a parameter, two for a call."""
    stack: list[_Open] = []
    end = 0
    for token in _TOKEN.finditer(text):
        if stack:
            stack[-1].parts[-1] += text[end : token.start()]
        end = token.end()
        mark, count = token[0][0], len(token[0])
        if mark in "{[":
            stack.append(_Open(mark, count, token.start()))
        elif mark == "|":
            if stack and stack[-1].mark == "{":
                stack[-1].parts.append("")
        elif mark == "}":
            yield from _close_braces(stack, count)
        elif stack and stack[-1].mark == "[":
            stack.pop()
            if stack:
                stack[-1].parts[-1] += _HOLE


def _close_braces(stack: list[_Open], count: int) -> Iterator[tuple[int, list[str]]]:
    """Close what a run of braces closes, and yield the calls."""
    while count >= 2 and stack and stack[-1].mark == "{":
        top = stack[-1]
        width = 3 if min(count, top.count) >= 3 else 2
        count -= width
        top.count -= width
        if width == 2:
            yield top.start + top.count, top.parts
        top.parts = [_HOLE]
        if top.count < 2:
            stack.pop()
            if stack:
                stack[-1].parts[-1] += "{" * top.count + _HOLE
    if stack and count:
        stack[-1].parts[-1] += "}" * count


def _template_name(text: str, namespaces: tuple[str, ...]) -> str | None:
    """Spell a template's name as the wiki does; None where there is no such template."""
    name = text.strip()
    prefix, colon, rest = name.partition(":")
    if colon and _SPACES.sub(" ", prefix).strip().casefold() in namespaces:
        name = rest.strip()
    elif _FUNCTION.match(name) or name.startswith(":"):
        return None
    name = name.partition("#")[0].strip()
    return _capitalised(name) if name and not _NO_NAME.search(name) else None


def _arguments(parts: list[str]) -> Iterator[str]:
    """Yield the values of unnamed and numbered arguments."""
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals:
            value = part
        elif not key.strip().isdecimal():
            continue
        yield value.replace(_HOLE, "").strip()


def _capitalised(text: str) -> str:
    """Write a name with spaces and a capital."""
    name = _SPACES.sub(" ", text).strip()
    return name[:1].upper() + name[1:]
