"""The words that open a redirect, in the languages of the wikis."""

import re
from typing import Final

__all__ = ["REDIRECT_WORDS", "redirect_link"]

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
"""Magic words without their number sign, English first; the letter case does not matter.

They come from MediaWiki's message files, as DBpedia's extraction framework collects them.
"""

_WORDS: Final = "|".join(
    re.escape(word).replace("_", "[_ ]") for word in sorted(REDIRECT_WORDS, key=len, reverse=True)
)
_LINK: Final = r"\s*:?\s*\[\[(.*?)(?:\|.*?)?\]\]"
_LISTED: Final = re.compile(rf"\s*[#＃](?:{_WORDS}){_LINK}", re.IGNORECASE | re.DOTALL)
_ANY: Final = re.compile(rf"\s*[#＃][^\[\]{{}}|\n]{{1,60}}?{_LINK}", re.DOTALL)


def redirect_link(text: str, *, is_known: bool = False) -> re.Match[str] | None:
    """Find the link of a redirect at the start of a page's wikitext.

    Args:
        text: The wikitext; MediaWiki allows no comment before the end of the link.
        is_known: Whether something else (the dump's `<redirect>` element) says that the page is a
            redirect; then any word after the number sign will do.

    Returns:
        The match, whose first group is the link without its bar; None for other pages.

    Examples:
        >>> redirect_link("#転送 [[東京都#歴史|東京]]")[1]
        '東京都#歴史'
        >>> redirect_link("# a list of [[things]]") is None
        True
    """
    found = _LISTED.match(text)
    return _ANY.match(text) if found is None and is_known else found
