"""Names and numbers of a synthetic wiki, the same in every process."""

from functools import cached_property

DATE = "20260101"
"""Date in the names of the dumps."""

MONTHS = tuple(f"2024{month:02}" for month in range(1, 13))
"""Months of the pageviews."""

_VOWELS = ("a", "e", "i", "o", "u", "an", "el", "ör")
_SYLLABLES = [first + second for first in "bdfghjklmnprstvwz" for second in _VOWELS]


class Wiki:
    """Names and numbers of all pages and entities, the same for a scale in every process.

    Args:
        scale: 1 for a tenth of the English Wikipedia.
    """

    def __init__(self, scale: float) -> None:
        self.n_articles = int(700_000 * scale)
        self.n_redirects = int(1_000_000 * scale)
        self.n_others = int(100_000 * scale)
        self.n_entities = int(1_000_000 * scale)
        self.n_category_links = int(20_000_000 * scale)
        self.n_link_targets = int(3_000_000 * scale)
        self.n_other_props = int(2_000_000 * scale)

    @property
    def first_redirect(self) -> int:
        """Page number of the first redirect."""
        return self.n_articles + 1

    @cached_property
    def titles(self) -> list[str]:
        """Titles of the articles; some have parentheses, quotes, or look like SQL."""
        return [_article_title(number) for number in range(self.n_articles)]

    @cached_property
    def redirect_titles(self) -> list[str]:
        """Titles of the redirects; one in fifty is the label of an entity without an article."""
        n_bare = self.n_entities - self.n_articles
        names = [
            name_of(self.n_articles + number // 50)
            if number % 50 == 0 and number // 50 < n_bare
            else f"{name_of(10_000_000 + number)} {number % 9}"
            for number in range(self.n_redirects)
        ]
        return [f"{name} (song)" if place % 30 == 1 else name for place, name in enumerate(names)]

    def label(self, number: int) -> str:
        """Return the label of an entity; one of fifty has the label of another."""
        return name_of(number - 7 if number % 50 == 7 else number)


def name_of(number: int) -> str:
    """Spell a number as two capitalised words; different numbers give different names."""
    digits = []
    number += len(_SYLLABLES) ** 3
    while number:
        number, digit = divmod(number, len(_SYLLABLES))
        digits.append(_SYLLABLES[digit])
    half = len(digits) // 2
    return f"{''.join(digits[:half]).capitalize()} {''.join(digits[half:]).capitalize()}"


def _article_title(number: int) -> str:
    """Title of an article."""
    name = name_of(number)
    if number % 20 == 0:
        return f"{name} (film)"
    if number % 501 == 0:
        return f'{name}\'s "Song"'
    return f"{name} (1),(2) and 3" if number % 1_003 == 0 else name
