"""The fixed vocabulary of RedirectQA: redirect categories, their types, relations and templates.

Sources: the categories and types are Table 3 of RedirectQA (arXiv 2604.21882) and Table 4 of the
Japanese paper; the relations, `prop_id` values and original templates are PopQA's (Mallen et al.,
2023). The paraphrases were written for this package; those of the RedirectQA release were written
by GPT-4o and are in its `question` column.
"""

import re
from dataclasses import dataclass
from typing import Final

__all__ = [
    "CANONICAL_LABEL",
    "CATEGORIES",
    "RELATIONS",
    "TEMPLATES",
    "TYPES",
    "UNKNOWN_TYPE",
    "RedirectCategory",
    "RedirectType",
    "Relation",
    "is_template",
    "paraphrase_name",
    "parse_category",
    "parse_relation",
    "parse_type",
    "types_of",
]

CANONICAL_LABEL: Final = "__MAIN__"
"""Label of canonical rows of RedirectQA in place of a redirect category."""

TEMPLATES: Final = ("original", "paraphrase")
"""Names of the two question templates of a relation; further paraphrases are "paraphrase_2" and so
on, see `is_template`."""

UNKNOWN_TYPE: Final = "unknown"
"""Type of a category outside the taxonomy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectType:
    """One of the three broad kinds of redirect surface forms."""

    name: str
    """Identifier in frames and files, such as "spelling_variants"."""

    label: str
    """Spelling in the hub's `redirect_category_to_type.csv`, such as "Spelling_variants"."""

    title: str
    """Title for display, as in the paper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectCategory:
    """One of the 33 redirect categories that RedirectQA keeps."""

    name: str
    """Short spelling of the paper, such as "from birth names"."""

    type: str
    """Name of its `RedirectType`."""

    @property
    def label(self) -> str:
        """Spelling in the data, such as "Redirects_from_birth_names"."""
        return "Redirects_" + self.name.replace(" ", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """One of the 16 relations of PopQA and RedirectQA."""

    name: str
    """Identifier in frames and files, such as "place_of_birth"."""

    property_id: str
    """Wikidata property, such as "P19"."""

    popqa_id: int
    """PopQA's own `prop_id`, which is not a Wikidata property."""

    original: str
    """PopQA's template, with `{}` as the place of the subject."""

    paraphrase: str
    """This package's second wording of the same question."""

    def question(self, surface: str, *, template: str = "original") -> str:
        """Write the question about a subject.

        Args:
            surface: Name of the subject, used as it is.
            template: One of `TEMPLATES`.

        Returns:
            The question.

        Raises:
            ValueError: If `template` is not one of `TEMPLATES`.
        """
        if template not in TEMPLATES:
            raise ValueError(f"template must be one of {', '.join(TEMPLATES)}, got {template!r}")
        return (self.original if template == "original" else self.paraphrase).replace("{}", surface)


TYPES: Final[dict[str, RedirectType]] = {
    kind.name: kind
    for kind in (
        RedirectType(
            name="alternative_names_and_abbreviations",
            label="Aliases_and_Abbreviations",
            title="Alternative names and abbreviations",
        ),
        RedirectType(
            name="spelling_variants", label="Spelling_variants", title="Spelling variants"
        ),
        RedirectType(name="typical_errors", label="Typical_Errors", title="Typical errors"),
    )
}
"""The three types by name, in the paper's order."""

_NAMES_BY_TYPE: Final = {
    "alternative_names_and_abbreviations": (
        "from birth names",
        "from short names",
        "from alternative names",
        "from former names",
        "from surnames",
        "from abbreviations",
        "from initialisms",
        "from long names",
        "from given names",
        "from pseudonyms",
        "from personal names",
        "from plurals",
        "from married names",
        "from acronyms",
        "from letter–word combinations",
        "from technical names",
        "to plurals",
        "to initialisms",
        "from synonyms",
        "to acronyms",
    ),
    "spelling_variants": (
        "from titles without diacritics",
        "from alternative spellings",
        "from titles with diacritics",
        "from other capitalisations",
        "from modifications",
        "from ASCII-only titles",
        "from stylizations",
        "from titles without ligatures",
        "to ASCII-only titles",
        "from numerals",
    ),
    "typical_errors": ("from miscapitalisations", "from misspellings", "from incorrect names"),
}

CATEGORIES: Final[dict[str, RedirectCategory]] = {
    category.label: category
    for kind, names in _NAMES_BY_TYPE.items()
    for category in (RedirectCategory(name=name, type=kind) for name in names)
}
"""The 33 categories by their label in the data, in the order of the paper's Table 3."""

_RELATION_ROWS: Final = (
    ("occupation", "P106", 22, "What is {}'s occupation?", "What does {} do for a living?"),
    (
        "place_of_birth",
        "P19",
        218,
        "In what city was {} born?",
        "Which city is the birthplace of {}?",
    ),
    ("genre", "P136", 91, "What genre is {}?", "To which genre does {} belong?"),
    ("father", "P22", 257, "Who is the father of {}?", "What is the name of {}'s father?"),
    ("country", "P17", 182, "In what country is {}?", "Which country is {} located in?"),
    ("producer", "P162", 164, "Who was the producer of {}?", "Who produced {}?"),
    ("director", "P57", 526, "Who was the director of {}?", "Who directed {}?"),
    ("capital_of", "P1376", 97, "What is {} the capital of?", "Of which place is {} the capital?"),
    (
        "screenwriter",
        "P58",
        533,
        "Who was the screenwriter for {}?",
        "Who wrote the screenplay for {}?",
    ),
    ("composer", "P86", 639, "Who was the composer of {}?", "Who composed the music for {}?"),
    ("color", "P462", 472, "What color is {}?", "Which color does {} have?"),
    ("religion", "P140", 106, "What is the religion of {}?", "Which religion does {} follow?"),
    ("sport", "P641", 560, "What sport does {} play?", "Which sport is {} associated with?"),
    ("author", "P50", 484, "Who is the author of {}?", "Who wrote {}?"),
    ("mother", "P25", 292, "Who is the mother of {}?", "What is the name of {}'s mother?"),
    ("capital", "P36", 422, "What is the capital of {}?", "Which city is the capital of {}?"),
)

RELATIONS: Final[dict[str, Relation]] = {
    name: Relation(
        name=name,
        property_id=property_id,
        popqa_id=popqa_id,
        original=original,
        paraphrase=paraphrase,
    )
    for name, property_id, popqa_id, original, paraphrase in _RELATION_ROWS
}
"""The 16 relations by name. The Japanese paper's release v0.1.0 omits "religion"."""

_RELATION_KEYS: Final = {
    key: relation
    for relation in RELATIONS.values()
    for key in (relation.name, relation.property_id.casefold(), str(relation.popqa_id))
}
_PREFIX: Final = re.compile(r"^(category:)?\s*(redirects\s+)?")
_PARAPHRASE: Final = re.compile(r"paraphrase_(?:[2-9]|[1-9]\d+)")
_DASHES: Final = str.maketrans("‐‑‒–—−", "------")


def _category_key(text: str) -> str:
    """Return the common key of all spellings of a category."""
    words = text.replace("_", " ").translate(_DASHES).casefold()
    return _PREFIX.sub("", " ".join(words.split()))


_CATEGORY_KEYS: Final = {_category_key(category.name): category for category in CATEGORIES.values()}
_TYPE_KEYS: Final = {
    _category_key(spelling): kind
    for kind in TYPES.values()
    for spelling in (kind.name, kind.label, kind.title)
}


def is_template(name: str) -> bool:
    """Check whether a template has one of this package's names.

    Args:
        name: Name of a template.

    Returns:
        Whether it is one of `TEMPLATES` or a further paraphrase.

    Examples:
        >>> is_template("paraphrase"), is_template("paraphrase_2"), is_template("paraphrase_1")
        (True, True, False)
    """
    return name in TEMPLATES or _PARAPHRASE.fullmatch(name) is not None


def paraphrase_name(number: int) -> str:
    """Name the template of a paraphrase.

    Args:
        number: Its number, from 1.

    Returns:
        "paraphrase", "paraphrase_2", ...

    Examples:
        >>> paraphrase_name(1), paraphrase_name(2)
        ('paraphrase', 'paraphrase_2')
    """
    return TEMPLATES[1] if number == 1 else f"{TEMPLATES[1]}_{number}"


def parse_category(text: str) -> RedirectCategory | None:
    """Find a redirect category by any of its spellings.

    Args:
        text: "Redirects_from_birth_names", "Redirects from birth names", "from birth names", with
            or without "Category:"; dashes of any kind and any case count as equal.

    Returns:
        The category, or None if the taxonomy does not contain it (such as `CANONICAL_LABEL`).

    Examples:
        >>> parse_category("from letter-word combinations").label
        'Redirects_from_letter–word_combinations'
        >>> parse_category("Redirects_from_books") is None
        True
    """
    return _CATEGORY_KEYS.get(_category_key(text))


def parse_type(text: str) -> RedirectType | None:
    """Find a redirect type by its name, its label on the hub or its wording in the paper.

    Args:
        text: Such as "Typical_Errors", "typical_errors" or "Typical errors".

    Returns:
        The type, or None if no type has that name.
    """
    return _TYPE_KEYS.get(_category_key(text))


def parse_relation(text: str) -> Relation | None:
    """Find a relation by name, Wikidata property or PopQA `prop_id`.

    Args:
        text: "place_of_birth", "place of birth", "P19" or "218".

    Returns:
        The relation, or None if it is not one of the 16.

    Examples:
        >>> parse_relation("place of birth").property_id
        'P19'
    """
    return _RELATION_KEYS.get("_".join(text.split()).casefold())


def types_of(categories: tuple[str, ...]) -> tuple[str, ...]:
    """Return the types of a redirect surface with these categories.

    Args:
        categories: Category labels in any spelling; `CANONICAL_LABEL` has no type.

    Returns:
        Distinct type names in the order of `TYPES`, then `UNKNOWN_TYPE` if any category is
        outside the taxonomy; empty for canonical surfaces.

    Examples:
        >>> types_of(("Redirects_from_misspellings", "Redirects_from_ASCII-only_titles"))
        ('spelling_variants', 'typical_errors')
    """
    found = {
        category.type if (category := parse_category(text)) else UNKNOWN_TYPE
        for text in categories
        if text != CANONICAL_LABEL
    }
    return tuple(name for name in (*TYPES, UNKNOWN_TYPE) if name in found)
