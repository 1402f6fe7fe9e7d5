"""Map templates to the redirect categories that they fill."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from surface_consistency.reading import shown
from surface_consistency.taxonomy import CATEGORIES

_DATA: Final = tomllib.loads(
    Path(__file__).with_name("configurations").joinpath("enwiki_templates.toml").read_text("utf-8")
)

ENWIKI_TEMPLATES: Final[dict[str, tuple[str, ...]]] = {
    category: tuple(names) for category, names in _DATA["templates"].items()
}
"""Template names by the short name of the category that they fill, main name first.

Letter case is ignored, and "Redirect from ..." is the same as "R from ..." everywhere.
"""

ENWIKI_SHELLS: Final[frozenset[str]] = frozenset(_DATA["shells"])
"""Templates that wrap redirect-category templates, or name them by bare parameters."""

_SPACES: Final = re.compile(r"[\s_]+")


def template_key(name: str) -> str:
    """Return one key for all spellings of a template name.

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
    """Normalise the template names of a wiki's configuration, so that any spelling is found.

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
                f"template {shown(name)} is mapped to {shown(table[key])} and to {shown(label)}; "
                "each template fills one category, so remove one of the two"
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
    """Return the redirect categories that the templates of a page fill.

    Args:
        templates: Template names of one redirect page, such as `RedirectPage.templates`.
        table: Category label by template key, from `template_table`.

    Returns:
        Distinct labels, those of the taxonomy first and in its order; templates that are not in the
        table are skipped.

    Examples:
        >>> categories_of_templates(["R from move", "R from maiden name", "r_typo"])
        ('Redirects_from_birth_names', 'Redirects_from_misspellings')
    """
    categories = {table[key] for key in map(template_key, templates) if key in table}
    known = [label for label in CATEGORIES if label in categories]
    return (*known, *sorted(categories.difference(known)))
