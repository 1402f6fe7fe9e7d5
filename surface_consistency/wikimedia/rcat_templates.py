"""Redirect categories by the templates that fill them."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from surface_consistency.taxonomy import CATEGORIES

__all__ = [
    "ENWIKI_SHELLS",
    "ENWIKI_TABLE",
    "ENWIKI_TEMPLATES",
    "categories_of_templates",
    "template_key",
    "template_table",
]

ENWIKI_TEMPLATES: Final[dict[str, tuple[str, ...]]] = {
    "from birth names": (
        "R from birth name",
        "R from birthname",
        "R from deadname",
        "R from maiden name",
        "R from unmarried name",
        "R deadname",
        "R ne",
        "R nee",
        "R née",
        "R to married name",
    ),
    "from short names": (
        "R from short name",
        "R from abbreviated title",
        "R from contraction",
        "R from short title",
        "R from shortened name",
        "R from shortening",
        "R from shorter form of name",
        "R from shorter name",
        "R from shorter title",
        "R short",
        "R short name",
        "R to full name",
        "R to long name",
    ),
    "from alternative names": (
        "R from alternative name",
        "R from alt name",
        "R from alternate name",
        "R from alternate names",
        "R from alternate title",
        "R from alternative names",
        "R from alternative title",
        "R from another name",
        "R from nickname",
        "R from other name",
        "R alternative name",
        "R alternate name",
        "R altname",
        "R alt name",
        "R to alternative name",
        "R to other name",
    ),
    "from former names": (
        "R from former name",
        "R from former title",
        "R from historic name",
        "R from historical name",
        "R from obsolete name",
        "R from old name",
        "R from original name",
        "R from previous name",
        "R former",
        "R former name",
        "R old",
        "R to current name",
    ),
    "from surnames": (
        "R from surname",
        "R from family name",
        "R from last name",
        "R sur",
        "R surname",
    ),
    "from abbreviations": (
        "R from abbreviation",
        "R from abb",
        "R from abbrev",
        "R from abbreviations",
        "R ab",
        "R abb",
        "R abbr",
        "R abbreviation",
    ),
    "from initialisms": (
        "R from initialism",
        "R from common initialism",
        "R from common initials",
        "R from initials",
        "R in",
        "R init",
        "R initialism",
        "R initials",
        "Rinit",
    ),
    "from long names": (
        "R from long name",
        "R from complete name",
        "R from full name",
        "R from full title",
        "R from long title",
        "R from longer",
        "R from longer name",
        "R full",
        "R full name",
        "R long",
        "R long name",
        "R to short name",
        "R to short title",
    ),
    "from given names": (
        "R from given name",
        "R from first name",
        "R from forename",
        "R from mononym",
        "R given name",
    ),
    "from pseudonyms": (
        "R from pseudonym",
        "R from nom de plume",
        "R from pen name",
        "R from pen-name",
        "R from stage name",
        "R pseudonym",
        "Redirect form pseudonym",
    ),
    "from personal names": (
        "R from personal name",
        "R from legal name",
        "R from personal",
        "R p n",
        "Rpersn",
        "Rpn",
    ),
    "from plurals": (
        "R from plural",
        "R from plural form",
        "R from pluralisation",
        "R from pluralization",
        "R from plurals",
        "R plural",
        "R to singular",
    ),
    "from married names": (
        "R from married name",
        "R married name",
        "R mn",
        "R to birth name",
    ),
    "from acronyms": (
        "R from acronym",
        "R from ac",
        "R from acr",
        "R acr",
        "R acronym",
    ),
    "from letter–word combinations": (
        "R from letter–word combination",
        "R from letter-word combination",
        "R from letter–word",
        "R from letter-word",
        "R letter–word combination",
        "R letter-word combination",
        "R letter–word",
        "R letter-word",
        "R lwc",
    ),
    "from technical names": (
        "R from technical name",
        "R from jargon",
        "R from jargon name",
        "R from technical",
        "R from technical term",
        "R from technical title",
        "R technical name",
        "Rftn",
    ),
    "to plurals": (
        "R to plural",
        "R from singular",
        "R from singular form",
        "R in singular form",
        "R to plural form",
        "R to pluralisation",
        "R to pluralization",
    ),
    "to initialisms": (
        "R to initialism",
        "R to ab",
        "R to abb",
        "R to abbrev",
        "R to abbreviation",
        "R to initials",
    ),
    "from synonyms": (
        "R from synonym",
        "R from synonyms",
        "R syn",
        "R synonym",
        "R to synonym",
    ),
    "to acronyms": ("R to acronym", "R to acr"),
    "from titles without diacritics": (
        "R to diacritic",
        "R diacritics",
        "R from name without diacritics",
        "R from original name without diacritics",
        "R from title without diacritics",
        "R to accents",
        "R to diacritics",
        "R to title with diacritics",
        "R to unicode",
        "R to unicode name",
        "R without diacritics",
        "RDiacr",
        "Redirects from title without diacritics",
    ),
    "from alternative spellings": (
        "R from alternative spelling",
        "R from alt spelling",
        "R from alternate spelling",
        "R from alternate spellings",
        "R from alternative spellings",
        "R from another spelling",
        "R from different spelling",
        "R from other spelling",
        "R from spelling",
        "R from variant spelling",
        "R alternate spelling",
        "R alternative spelling",
        "R altsp",
        "R spell",
    ),
    "from titles with diacritics": (
        "R from diacritic",
        "R dia",
        "R from accent",
        "R from diacritics",
        "R from name with diacritics",
        "R from title with diacritics",
        "R with accents",
        "R with diacritics",
    ),
    "from other capitalisations": (
        "R from other capitalisation",
        "R for alternate capitalisation",
        "R for alternate capitalization",
        "R for alternative capitalisation",
        "R for alternative capitalization",
        "R from alt cap",
        "R from alternate capitalisation",
        "R from alternate capitalization",
        "R from alternative capitalisation",
        "R from alternative capitalization",
        "R from capitalisation",
        "R from capitalization",
        "R from lowercase",
        "R from other cap",
        "R from other capitalisations",
        "R from other capitalization",
        "R from other capitalizations",
        "R from other caps",
    ),
    "from modifications": (
        "R from modification",
        "R from alteration",
        "R from other word order",
        "R from rearrangement",
        "R from word reorder",
        "R mod",
        "R to modification",
    ),
    "from ASCII-only titles": (
        "R from ASCII-only",
        "R fa",
        "R from ASCII",
        "R from ASCII only",
        "R from ASCII-only title",
    ),
    "from stylizations": (
        "R from stylization",
        "R cs",
        "R from stylisation",
        "R sty",
        "R styled",
        "R stylised",
        "R stylized",
    ),
    "from titles without ligatures": (
        "R to ligature",
        "R from title without ligatures",
        "R to ligatures",
        "R to title with ligatures",
    ),
    "to ASCII-only titles": (
        "R to ASCII-only",
        "R ta",
        "R to ASCII",
        "R to ASCII only",
        "R to ASCII-only title",
    ),
    "from numerals": (
        "R from numerals",
        "R from numbers",
        "R from numeral",
        "Rfn",
    ),
    "from miscapitalisations": (
        "R from miscapitalisation",
        "R from incorrect capitalisation",
        "R from incorrect capitalization",
        "R from miscapitalisations",
        "R from miscapitalization",
        "R from miscapitalizations",
        "R from over-capitalisation",
        "R from over-capitalization",
        "R from overcapitalisation",
        "R from overcapitalization",
        "R miscap",
        "R miscapitalisation",
        "R miscapitalization",
    ),
    "from misspellings": (
        "R from misspelling",
        "R for misspelling",
        "R from incorrect spelling",
        "R from mispeling",
        "R from mispelling",
        "R from mispellings",
        "R from misprint",
        "R from misspeling",
        "R from misspellings",
        "R from spelling error",
        "R from typo",
        "R from typographical error",
        "R misspelling",
        "R typo",
    ),
    "from incorrect names": (
        "R from incorrect name",
        "R from improper name",
        "R from inappropriate name",
        "R from incorrect title",
        "R from unsuitable title",
        "R from wrong name",
        "R from wrong title",
        "R incorrect name",
    ),
}
"""Template names by the short name of the category that they fill, main name first.

Letter case is not told apart, and "Redirect from ..." stands for "R from ..." everywhere.
"""

ENWIKI_SHELLS: Final[frozenset[str]] = frozenset(
    {
        "Redirect category shell",
        "R cat shell",
        "R category shell",
        "R shell",
        "Rcat shell",
        "Rcatshell",
        "Rcs",
        "Rcsh",
        "Redirect cat shell",
        "Redirect shell",
        "Redr",
        "Redr shell",
        "This is a redirect",
        "Tiar",
    }
)
"""Templates that wrap redirect-category templates, or name them by bare parameters."""

_SPACES: Final = re.compile(r"[\s_]+")


def template_key(name: str) -> str:
    """Fold the spellings of one template name into one key.

    Args:
        name: A template name without braces, in any letter case, with spaces or underscores.

    Returns:
        The key; "Redirect from ..." is the same as "R from ...".

    Examples:
        >>> template_key("redirect_from Birth  name")
        'r from birth name'
    """
    key = _SPACES.sub(" ", name).strip().casefold()
    return f"r {key[9:]}" if key.startswith("redirect ") else key


def template_table(labels: Mapping[str, str]) -> dict[str, str]:
    """Fold the template names of a wiki's configuration, so that any spelling is found.

    Args:
        labels: Category label by template name, in any spelling of the name.

    Returns:
        Category label by `template_key`.

    Raises:
        ValueError: If two spellings of one template have different labels.

    Examples:
        >>> template_table({"R_from_typo": "Redirects_from_misspellings"})
        {'r from typo': 'Redirects_from_misspellings'}
    """
    table: dict[str, str] = {}
    for name, label in labels.items():
        key = template_key(name)
        if table.setdefault(key, label) != label:
            raise ValueError(
                f"template {name!r} stands for {table[key]!r} and for {label!r}; each template "
                "fills one category, so take one of the two out"
            )
    return table


ENWIKI_TABLE: Final[dict[str, str]] = template_table(
    {
        name: category.label
        for category in CATEGORIES.values()
        for name in ENWIKI_TEMPLATES[category.name]
    }
)
"""Category label by template key, for the English Wikipedia."""


def categories_of_templates(
    templates: Iterable[str], table: Mapping[str, str] = ENWIKI_TABLE
) -> tuple[str, ...]:
    """Name the redirect categories that templates of a page fill.

    Args:
        templates: Template names of one redirect page, such as `RedirectPage.templates`.
        table: Category label by template key, from `template_table`.

    Returns:
        Distinct labels, those of the taxonomy first and in its order; templates that the table
        does not hold give nothing.

    Examples:
        >>> categories_of_templates(["R from move", "R from maiden name", "r_typo"])
        ('Redirects_from_birth_names', 'Redirects_from_misspellings')
    """
    found = {table[key] for key in map(template_key, templates) if key in table}
    known = [label for label in CATEGORIES if label in found]
    return (*known, *sorted(found.difference(known)))
