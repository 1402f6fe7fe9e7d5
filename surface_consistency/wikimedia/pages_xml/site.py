"""What an export says about its wiki, and how that wiki spells titles."""

import re
from dataclasses import dataclass, field
from typing import Final

from surface_consistency.wikimedia.pages_xml.interwiki import INTERWIKI_PREFIXES

__all__ = ["CANONICAL_NAMESPACES", "SiteInfo"]

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
"""Namespace numbers by the names that every wiki understands."""

_SPACES: Final = re.compile(r"[\s_\u00a0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_BIDI_MARKS: Final = re.compile("[\u200e\u200f\u202a-\u202e]")


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
    """Local namespace names by number; that of number 0 is empty."""

    case_sensitive: frozenset[int] = frozenset()
    """Namespaces whose titles may start with a small letter."""

    def namespace_names(self, number: int) -> tuple[str, ...]:
        """List the names of one namespace, the local one first.

        Args:
            number: The namespace.

        Returns:
            Its local name and those that every wiki understands, in lower case.
        """
        local = self.namespaces.get(number, "").casefold()
        shared = (name for name, key in CANONICAL_NAMESPACES.items() if key == number)
        return tuple(dict.fromkeys(name for name in (local, *shared) if name))

    def namespace_of(self, title: str) -> int:
        """Tell the namespace of a title by its prefix.

        Args:
            title: A title with its namespace prefix, in any spelling.

        Returns:
            The number; 0 where there is no such prefix.
        """
        prefix, colon, _ = title.partition(":")
        return self._number(prefix) if colon else 0

    def is_interwiki(self, title: str) -> bool:
        """Tell whether a title stands in another wiki.

        Args:
            title: A title with its prefixes.

        Returns:
            Whether it starts with a known interwiki prefix that is no local namespace.
        """
        prefix, colon, _ = title.partition(":")
        return bool(colon) and not self._number(prefix) and _folded(prefix) in INTERWIKI_PREFIXES

    def title(self, text: str) -> str:
        """Spell a link's target as the wiki spells titles.

        Underscores become spaces, a leading colon goes, the namespace gets its local name and the
        title its capital, as in MediaWiki's `Title::newFromText`.

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
        """Find a namespace by name; 0 if there is none."""
        wanted = _folded(prefix)
        for number, name in self.namespaces.items():
            if wanted and name.casefold() == wanted:
                return number
        return CANONICAL_NAMESPACES.get(wanted, 0)

    def _capital(self, name: str, number: int) -> str:
        """Write the first letter large, where the namespace does and one letter becomes one."""
        if number in self.case_sensitive or not name or "\u10d0" <= name[0] <= "\u10ff":
            return name
        large = name[0].upper()
        return large + name[1:] if len(large) == 1 else name


def _folded(prefix: str) -> str:
    """Fold the spellings of a prefix."""
    return _SPACES.sub(" ", prefix).strip().casefold()
