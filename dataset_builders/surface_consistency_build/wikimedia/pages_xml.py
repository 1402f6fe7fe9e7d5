"""Read MediaWiki's XML exports: pages, and redirects with their templates and categories."""

import html
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Final, Unpack
from urllib.parse import unquote

from surface_consistency_build.wikimedia import wikitext
from surface_consistency_build.wikimedia._export_parser import RawPage, export_pages
from surface_consistency_build.wikimedia.rcat_templates import ENWIKI_SHELLS, template_key
from surface_consistency_build.wikimedia.streams import ReadOptions, open_ahead

_LISTING: Final = """
    REDIRECT AANSTUUR ADKAS AIL-CYFEIRIO AILGYFEIRIO AL ALIAH ALIDIREKTI ALIDIREKTU ALIH ANCAMINAR
    ATHSHEOLADH AÝDAW BERALÎKIRIN BIRZUZENDU DASKEDYANS DIRECCIÓN DIRIJAR DOORVERWIJZING ENDRECERA
    FIHODINANA HETENAYIŞ KIAHOU KÚFÙ LEIDT_ÖM_OP LENCONG OHJAUS OMDIRIGER OMDIRIGERING
    OĐĐASITSTIVREN PATRZ PERADRESAVIMAS PRESMERUJ PREUSMERI PREUSMERITEV PREUSMJERI PRZEKIERUJ
    PUPINAH PUSAPUNA PŘESMĚRUJ REDIRECCION REDIRECCIÓN REDIRECIONAMENTO REDIRECTEAZA REDIRECTION
    REDIRÈCCION REENDRECERA RENVIAMENT RIDREJTO RIMANDO RINDIRIZZA RINVIA RINVIO STIR STIVREN
    SUUNA TAM TILVÍSUN UUDELLEENOHJAUS VARDA VIRULEEDUNG WEITERLEITUNG WIEDERLEIDEN YONALTIRISH
    YOʻNALTIRISH YÖNLENDİR YÖNLENDİRME YÖNNENDİR YÖNNENDİRMÄ YÖNNENDİRMÄKLER ÁTIRÁNYÍTÁS ÖMLEIDE
    ÖMLEIDE_OP ÖMLEIDUNG ÆРВИТÆН ÆРВЫСТ ĐỔI İSTİQAMƏTLƏNDİR İSTİQAMƏTLƏNDİRMƏ ΑΝΑΚΑΤΕΥΘΥΝΣΗ АЙДАУ
    ВИДИ ВИЖ ДЖИБЕРИУ КӨЖҮРҮЛГЕ ПЕРАНАКІРАВАННЕ ПЕРАНАКІРАВАНЬНЕ ПЕРЕНАПР ПЕРЕНАПРАВЛЕНИЕ
    ПЕРЕНАПРАВЛЕННЯ ПРЕНАСОЧВАНЕ ПРЕНАСОЧУВАЊЕ ПРЕНАСОЧУВАНЕ ПРЕУСМЕРИ ПРЕУСМЈЕРИ ПРѢНАПРАВЛЄНИѤ
    РАРВЫСТ РЕДИРЕКТ ЧИГЛҮҮЛЭГ ШИГЛЕДИР ЮНӘЛТҮ ՎԵՐԱՀՂՈՒՄ הפניה ווייטערפירן بور تحويل تغییر_مسیر
    تغییرمسیر رجوع_مکرر چوريو ܨܘܝܒܐ अनुप्रेषित पुनर्निदेशन पुनर्निर्देशन पुनर्प्रेषित
    पुर्ननिर्देशन পুনর্নির্দেশ ਰੀਡਿਰੈਕਟ ଲେଉଟାଣି வழிமாற்று దారిమార్పు തിരിച്ചുവിടുക തിരിച്ചുവിടൽ
    යළියොමුව เปลี่ยนทาง បញ្ជូនបន្ត ប្ដូរចំណងជើង ប្ដូរទីតាំង ប្ដូរទីតាំងទៅ ប្តូរទីតាំង
    ប្តូរទីតាំងទៅ გადამისამართება 넘겨주기 リダイレクト 転送 重定向 重新導向
"""

REDIRECT_WORDS: Final[tuple[str, ...]] = tuple(_LISTING.split())
"""Magic words without their number sign, English first; the letter case does not matter. They are
those of MediaWiki's message files, as DBpedia's extraction framework collects them.
"""

_WORDS: Final = "|".join(
    re.escape(word).replace("_", "[_ ]") for word in sorted(REDIRECT_WORDS, key=len, reverse=True)
)
_LINK: Final = r"\s*+(?::\s*+)?\[\[([^|]*?)(?:\|.*?)?\]\]"
_LISTED: Final = re.compile(rf"\s*[#＃](?:{_WORDS}){_LINK}", re.IGNORECASE | re.DOTALL)
_ANY: Final = re.compile(rf"\s*[#＃][^\[\]{{}}|\n]{{1,60}}?{_LINK}", re.DOTALL)
_BARE_NAME = re.compile(r"[^\W\d_][^{}\[\]|<>=\n]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class WikiPage:
    """One page of a wiki."""

    page_id: int
    """Number of the page."""

    namespace: int
    """Number of its namespace; 0 is that of articles."""

    title: str
    """Title with namespace prefix and spaces."""

    redirect: str | None
    """Title in the export's `<redirect>` element; "" if the element has no title (before schema
    0.6), None without this element."""

    text: str
    """Wikitext of the last revision in the export; "" if it was hidden."""

    site: wikitext.SiteInfo = field(default_factory=wikitext.SiteInfo, repr=False, compare=False)
    """The wiki of the export, for the local names of its namespaces."""


def read_pages(
    path: str | os.PathLike[str],
    *,
    namespaces: Collection[int] | None = (0,),
    **options: Unpack[ReadOptions],
) -> Iterator[WikiPage]:
    """Read the pages of a MediaWiki export such as `pages-articles`.

    Only one chunk of the file and the pages that it completes are in memory.

    Args:
        path: The export, compressed or not.
        namespaces: Namespaces to keep; None for all.
        options: Handling of damaged files, hook for progress, and number of threads: `ReadOptions`.

    Yields:
        The pages in order, with their last revision.

    Raises:
        SourceNotFoundError: If the file does not exist.
        DataError: If the file is cut off, damaged, or not a MediaWiki export; also if a text or tag
            is longer than 64 MiB, or elements are nested more than 100 deep.

    Warns:
        DataWarning: If the file is cut off or damaged and that is allowed.
    """
    with open_ahead(path, **options) as (stream, chunks):
        for page in export_pages(stream, chunks, namespaces=namespaces, only_redirects=False):
            yield WikiPage(
                page_id=page.page_id or 0,
                namespace=page.namespace or 0,
                title=page.title,
                redirect=page.redirect,
                text=page.text,
                site=page.site,
            )


def redirect_link(text: str, *, is_known: bool = False) -> re.Match[str] | None:
    """Find the link of a redirect at the start of a page's wikitext.

    Args:
        text: The wikitext; MediaWiki allows no comment before the end of the link.
        is_known: Whether the dump's `<redirect>` element marks the page as a redirect; any word
            after the number sign is then accepted.

    Returns:
        The match, whose first group is the link up to its bar; None for other pages.

    Examples:
        >>> redirect_link("#転送 [[東京都#歴史|東京]]")[1]
        '東京都#歴史'
        >>> redirect_link("# a list of [[things]]") is None
        True
    """
    listed = _LISTED.match(text)
    return _ANY.match(text) if listed is None and is_known else listed


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
    """Title of its target, with prefixes and spaces."""

    target_namespace: int | None
    """Number of the target's namespace; None for another wiki."""

    fragment: str | None
    """Section of its target; None for the page."""

    is_interwiki: bool
    """Whether the target is in another wiki."""

    templates: tuple[str, ...]
    """Distinct templates that the page calls, with spaces and a capital, in order; bare parameters
    of a shell ("from misspelling") are replaced by the template that they name ("R from
    misspelling")."""

    categories: tuple[str, ...]
    """Distinct categories of its links, without namespace, with spaces."""


def read_redirects(
    path: str | os.PathLike[str],
    *,
    namespaces: Collection[int] | None = (0,),
    shells: Collection[str] = ENWIKI_SHELLS,
    **options: Unpack[ReadOptions],
) -> Iterator[RedirectPage]:
    """Read the redirects of a MediaWiki export, with their templates and categories.

    The target is taken from the export's `<redirect>` element, or from the wikitext in old exports
    without this element; the fragment is always taken from the wikitext.

    Args:
        path: The export, compressed or not.
        namespaces: Namespaces to keep; None for all.
        shells: Templates whose bare parameters name redirect-category templates without their "R".
        options: Handling of damaged files, hook for progress, and number of threads: `ReadOptions`.

    Yields:
        The redirects in order.

    Raises:
        SourceNotFoundError: If the file does not exist.
        DataError: If the file is cut off, damaged, or not a MediaWiki export; also if a text or tag
            is longer than 64 MiB, or elements are nested more than 100 deep.

    Warns:
        DataWarning: If the file is cut off or damaged and that is allowed.
    """
    keys = frozenset(map(template_key, shells))
    with open_ahead(path, **options) as (stream, chunks):
        for page in export_pages(stream, chunks, namespaces=namespaces, only_redirects=True):
            redirect = _redirect(page, keys)
            if redirect is not None:
                yield redirect


def _redirect(page: RawPage, shells: frozenset[str]) -> RedirectPage | None:
    """Read one redirect; None if the page is not a redirect."""
    link = redirect_link(page.text, is_known=page.redirect is not None)
    linked, fragment = ("", None) if link is None else link_parts(link[1])
    if not (page.redirect or linked):
        return None
    target = page.redirect or page.site.title(linked)
    rest = wikitext.rendered_part(page.text if link is None else page.text[link.end() :])
    is_interwiki = page.site.is_interwiki(target)
    return RedirectPage(
        page_id=page.page_id or 0,
        namespace=page.namespace or 0,
        title=page.title,
        target=target,
        target_namespace=None if is_interwiki else page.site.namespace_of(target),
        fragment=fragment,
        is_interwiki=is_interwiki,
        templates=_template_names(wikitext.template_calls(rest, page.site), shells),
        categories=tuple(wikitext.category_links(rest, page.site)),
    )


def link_parts(link: str) -> tuple[str, str | None]:
    """Split a link into target and fragment, undoing character references and URL escapes.

    Args:
        link: Text between the brackets, without the bar and the label.

    Returns:
        The target as written, and the section of the page; None without a section.
    """
    plain = html.unescape(link)
    if "%" in plain:
        plain = unquote(plain)
    target, _, fragment = plain.partition("#")
    return target.strip(), fragment.replace("_", " ").strip() or None


def _template_names(calls: list[wikitext.TemplateCall], shells: frozenset[str]) -> tuple[str, ...]:
    """List the templates, including those that shells name by bare parameters."""
    names: dict[str, None] = {}
    for call in calls:
        names[call.name] = None
        if template_key(call.name) in shells:
            bare = (text for text in call.arguments if _BARE_NAME.fullmatch(text))
            names.update((f"R {' '.join(text.split())}", None) for text in bare)
    return tuple(names)
