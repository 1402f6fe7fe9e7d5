"""The parts of MediaWiki's titles, namespaces and preprocessor that reading redirects needs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from surface_consistency.text import replace_elements

_LANGUAGES: Final = """
    aa ab abr ace acm ady af ak als alt am ami an ang ann anp ar arc ary arz as ast atj av avk awa
    ay az azb ba ban bar bat-smg bbc bcl bdr be be-tarask be-x-old bew bg bh bi bjn blk bm bn bo
    bpy br bs btm bug bxr ca cbk-zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy cz da
    dag de dga din diq dk dsb dtp dty dv dz ee egl el eml en eo epo es et eu ext fa fat ff fi
    fiu-vro fj fo fon fr frp frr fur fy ga gag gan gcr gd gl glk gn gom gor got gpe gsw gu guc gur
    guw gv ha hak haw he hi hif ho hr hsb ht hu hy hyw hz ia iba id ie ig igl ii ik ilo inh io is
    isv it iu ja jam jbo jp jv ka kaa kab kaj kbd kbp kcg kg kge ki kj kk kl km kn knc ko koi kr krc
    ks ksh ku kus kv kw ky la lad lb lbe lez lfn lg li lij lld lmo ln lo lrc lt ltg lv lzh mad mai
    map-bms mdf mg mh mhr mi min minnan mk ml mn mni mnw mo mos mr mrj ms mt mus mwl my myv mzn na
    nah nan nap nb nds nds-nl ne new ng nia nl nn no nov nqo nr nrm nso nup nv ny oc olo om or os
    pa pag pam pap pcd pcm pdc pfl pi pih pl pms pnb pnt ps pt pwn qu rki rm rmy rn ro roa-rup
    roa-tara rsk ru rue rup rw sa sah sat sc scn sco sd se sg sgs sh shi shn shy si simple sk skr sl
    sm smn sn so sq sr srn ss st stq su sv sw syl szl szy ta tay tcy tdd te tet tg th ti tig tk tl
    tly tn to tpi tr trv ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo vro wa war wo wuu
    xal xh xmf yi yo yue za zea zgh zh zh-cfr zh-classical zh-cn zh-min-nan zh-tw zh-yue zu
"""
_PROJECTS: Final = """
    acronym b betawiki bugzilla c chapter cite commons cookbook d doi dictionary f foundation
    google gerrit git imdb incubator iso639-3 isbn jstor livepedia m mail mailarchive
    mediawikiwiki mediazilla meta metawiki metawikimedia metawikipedia mw n nost openlibrary
    oldwikisource orcid otrswiki outreach outreachwiki phab phabricator pmid q quality s serious
    species strategy strategywiki sulutil svn tenwiki test testwiki testwikidata toollabs
    toolforge tools translatewiki usability v viaf voy w wg wikia wikibooks wikicities wikidata
    wikifunctions wikihow wikilivres wikimania wikimedia wikinews wikipedia wikipediawikipedia
    wikiquote wikisource wikispecies wikitech wikitravel wikiversity wikivoyage wikt wiktionary wm
    wmania wmf wmfwiki wmdeblog
"""

INTERWIKI_PREFIXES: Final[frozenset[str]] = frozenset((_LANGUAGES + _PROJECTS).split())
"""Lower-case prefixes: the languages of Wikipedia, its sister projects, and the sites in its shared
interwiki table. No title of a wiki's page starts with one of them and a colon."""

CANONICAL_NAMESPACES: Final[dict[str, int]] = {
    "media": -2,
    "special": -1,
    "talk": 1,
    "user": 2,
    "user talk": 3,
    "project": 4,
    "project talk": 5,
    "file": 6,
    "image": 6,
    "file talk": 7,
    "image talk": 7,
    "mediawiki": 8,
    "mediawiki talk": 9,
    "template": 10,
    "template talk": 11,
    "help": 12,
    "help talk": 13,
    "category": 14,
    "category talk": 15,
}
"""Namespace numbers by the names that are valid in every wiki."""

_SPACES: Final = re.compile(r"[\s_\u00a0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_BIDI_MARKS: Final = re.compile("[\u200e\u200f\u202a-\u202e]")
_HIDDEN: Final = re.compile(
    r"<!--.*?(?:-->|\Z)"
    r"|<(?P<tag>nowiki|pre|math|includeonly|source|syntaxhighlight|templatedata)\b[^<>/]*>"
    r"|<(?:nowiki|pre)\b[^<>]*/>"
    r"|</?(?:noinclude|onlyinclude)\s*/?>",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN: Final = re.compile(r"\{{2,}|\}{2,}|\[\[|\]\]|\|")
_NO_NAME: Final = re.compile(r"[<>\[\]{}|\x00\n]")
_FUNCTION: Final = re.compile(r"#|[A-Z]{3,}:|[a-z]+:", re.ASCII)
_BLANKS: Final = re.compile(r"[\s_]+")
_HOLE: Final = "\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteInfo:
    """The `<siteinfo>` of an export."""

    dbname: str = ""
    """Database name, such as "enwiki"; empty in old exports."""

    language: str = ""
    """Language of the wiki, such as "en"."""

    version: str = ""
    """Version of the export's schema, such as "0.11"."""

    namespaces: dict[int, str] = field(default_factory=dict)
    """Local namespace names by number; the name of number 0 is empty."""

    case_sensitive: frozenset[int] = frozenset()
    """Namespaces whose titles may start with a small letter."""

    def namespace_names(self, number: int) -> tuple[str, ...]:
        """List the names of one namespace, the local one first.

        Args:
            number: The namespace.

        Returns:
            Its local name and the names that are valid in every wiki, in lower case.
        """
        local = self.namespaces.get(number, "").casefold()
        shared = (name for name, key in CANONICAL_NAMESPACES.items() if key == number)
        return tuple(dict.fromkeys(name for name in (local, *shared) if name))

    def namespace_of(self, title: str) -> int:
        """Return the namespace of a title from its prefix.

        Args:
            title: A title with its namespace prefix, in any spelling.

        Returns:
            The number; 0 without such a prefix.
        """
        prefix, colon, _ = title.partition(":")
        return self._number(prefix) if colon else 0

    def is_interwiki(self, title: str) -> bool:
        """Check whether a title belongs to another wiki.

        Args:
            title: A title with its prefixes.

        Returns:
            Whether it starts with a known interwiki prefix that is not a local namespace.
        """
        prefix, colon, _ = title.partition(":")
        return bool(colon) and not self._number(prefix) and _folded(prefix) in INTERWIKI_PREFIXES

    def title(self, text: str) -> str:
        """Convert a link's target to the wiki's spelling of titles.

        Underscores become spaces, a leading colon is removed, the namespace gets its local name and
        the title its capital, as in MediaWiki's `Title::newFromText`.

        Args:
            text: The target of a link, without fragment.

        Returns:
            The title.

        Examples:
            >>> SiteInfo(namespaces={2: "User"}).title(":user:john_doe")
            'User:John doe'
            >>> SiteInfo().title("en:paris")
            'en:paris'
        """
        name = _SPACES.sub(" ", _BIDI_MARKS.sub("", text)).strip().removeprefix(":").lstrip()
        if self.is_interwiki(name):
            return name
        number = self.namespace_of(name)
        if number:
            rest = self._capital(name.partition(":")[2].strip(), number)
            local = self.namespaces.get(number) or name.partition(":")[0].capitalize()
            return f"{local}:{rest}"
        return self._capital(name, 0)

    def _number(self, prefix: str) -> int:
        """Return the number of a namespace by name; 0 if not found."""
        wanted = _folded(prefix)
        for number, name in self.namespaces.items():
            if wanted and name.casefold() == wanted:
                return number
        return CANONICAL_NAMESPACES.get(wanted, 0)

    def _capital(self, name: str, number: int) -> str:
        """Capitalise the first letter, if the namespace does so and the capital is one letter."""
        if number in self.case_sensitive or not name or "\u10d0" <= name[0] <= "\u10ff":
            return name
        large = name[0].upper()
        return large + name[1:] if len(large) == 1 else name


def _folded(prefix: str) -> str:
    """Normalise the spelling of a prefix."""
    return _SPACES.sub(" ", prefix).strip().casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateCall:
    """One `{{...}}` of a page."""

    name: str
    """Name of the template, with spaces and a capital, without namespace."""

    arguments: tuple[str, ...]
    """Its unnamed and numbered arguments, without the templates and links in them."""


@dataclass(slots=True)
class _Open:
    """Braces or brackets that have not been closed yet."""

    mark: str
    count: int
    start: int
    parts: list[list[str]] = field(default_factory=lambda: [[]])


def rendered_part(text: str) -> str:
    """Remove the parts that MediaWiki does not read as wikitext.

    Args:
        text: The wikitext of a page.

    Returns:
        The text without comments, `<nowiki>`, `<pre>` and the like. An unclosed comment extends to
        the end, as in MediaWiki.

    Examples:
        >>> rendered_part("a<!-- {{b}} --><nowiki>{{c}}</nowiki>{{d}}")
        'a{{d}}'
    """
    return replace_elements(text, _HIDDEN)


def template_calls(text: str, site: SiteInfo | None = None) -> list[TemplateCall]:
    r"""Find the templates that a page calls, including nested ones.

    Args:
        text: The wikitext, as `rendered_part` returns it.
        site: The wiki, for the local name of its template namespace.

    Returns:
        The calls, ordered by their start, without parser functions, magic words with a colon,
        parameters in three braces and calls with a computed name.

    Examples:
        >>> [call.name for call in template_calls("{{rcat shell|1=\n{{R_from move|x}}\n}}")]
        ['Rcat shell', 'R from move']
    """
    names = (site or SiteInfo()).namespace_names(10)
    calls = []
    for _, parts in sorted(_calls(text), key=lambda call: call[0]):
        name = _template_name(parts[0], names)
        if name is not None:
            calls.append(TemplateCall(name=name, arguments=tuple(_arguments(parts[1:]))))
    return calls


def category_links(text: str, site: SiteInfo | None = None) -> list[str]:
    """Find the categories of a page from its links.

    Args:
        text: The wikitext, as `rendered_part` returns it, without the link of a redirect.
        site: The wiki, for the local name of its category namespace.

    Returns:
        Distinct category names in order, with spaces and a capital, without namespace. Links that
        start with a colon only point to a category and are skipped.

    Examples:
        >>> category_links("[[Category:redirects_from books|x]] [[:Category:No]]")
        ['Redirects from books']
    """
    wiki = site or SiteInfo()
    prefixes = "|".join(
        re.escape(name).replace(r"\\ ", "[ _]") for name in wiki.namespace_names(14)
    )
    links = re.findall(
        rf"\[\[[\s_]*(?:{prefixes})[\s_]*:([^\[\]|{{}}<>\n]+)(?:\|(?:[^\[\]]|\[(?!\[))*+)?\]\]",
        text,
        re.IGNORECASE,
    )
    return list(dict.fromkeys(filter(None, map(_capitalised, links))))


def _calls(text: str) -> Iterator[tuple[int, list[str]]]:
    """Match braces as MediaWiki does: innermost first, three for a parameter, two for a call."""
    stack: list[_Open] = []
    end = 0
    for token in _TOKEN.finditer(text):
        if stack:
            stack[-1].parts[-1].append(text[end : token.start()])
        end = token.end()
        mark, count = token[0][0], len(token[0])
        if mark in "{[":
            stack.append(_Open(mark, count, token.start()))
        elif mark == "|":
            if stack and stack[-1].mark == "{":
                stack[-1].parts.append([])
        elif mark == "}":
            yield from _close_braces(stack, count)
        elif stack and stack[-1].mark == "[":
            stack.pop()
            if stack:
                stack[-1].parts[-1].append(_HOLE)


def _close_braces(stack: list[_Open], count: int) -> Iterator[tuple[int, list[str]]]:
    """Close the open braces that a run of braces matches, and yield the calls."""
    while count >= 2 and stack and stack[-1].mark == "{":
        top = stack[-1]
        width = 3 if min(count, top.count) >= 3 else 2
        count -= width
        top.count -= width
        if width == 2:
            yield top.start + top.count, ["".join(part) for part in top.parts]
        top.parts = [[_HOLE]]
        if top.count < 2:
            stack.pop()
            if stack:
                stack[-1].parts[-1].append("{" * top.count + _HOLE)
    if stack and count:
        stack[-1].parts[-1].append("}" * count)


def _template_name(text: str, namespaces: tuple[str, ...]) -> str | None:
    """Convert a template's name to the wiki's spelling; None if it is not a template name."""
    name = text.strip()
    prefix, colon, rest = name.partition(":")
    if colon and _BLANKS.sub(" ", prefix).strip().casefold() in namespaces:
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
    """Return a name with spaces and a capital."""
    name = _BLANKS.sub(" ", text).strip()
    return name[:1].upper() + name[1:]
