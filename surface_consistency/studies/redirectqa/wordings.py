"""Which relation and which of its two wordings a question is."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from surface_consistency.errors import DataError
from surface_consistency.taxonomy import RELATIONS, TEMPLATES, is_template, parse_relation

_ORIGINAL, _PARAPHRASE = TEMPLATES
_REMEDY: Final = (
    f"write {' or '.join(map(repr, TEMPLATES))} into the template column, or name another column "
    "with columns={'template': 'NAME'}"
)


class Wording(NamedTuple):
    """What a row tells about the wording of its question."""

    relation: str
    """Name of the relation."""

    surface: str
    """Name of the subject."""

    question: str | None
    """The question; None when the source has none."""

    value: str | None
    """The source's name or number for the template; None when it gives none."""

    @property
    def is_original(self) -> bool:
        """Whether the question is PopQA's template with the surface in it."""
        relation = RELATIONS.get(self.relation)
        return relation is not None and self.question == relation.question(self.surface)


def infer_relation(question: str, surface: str) -> str | None:
    """Tell the relation of a question that follows a template of the taxonomy.

    Args:
        question: The question.
        surface: The name of the subject in it.

    Returns:
        Name of the relation; None when no template gives this question, or those of two do.

    Examples:
        >>> infer_relation("In what city was Chriz Metzen born?", "Chriz Metzen")
        'place_of_birth'
    """
    names = [
        name
        for name, relation in RELATIONS.items()
        if question in {relation.question(surface, template=template) for template in TEMPLATES}
    ]
    return names[0] if len(names) == 1 else None


def relation_name(text: str) -> str:
    """Name a relation as the taxonomy does; one outside it keeps its own name.

    Args:
        text: Name, Wikidata property or PopQA `prop_id`.

    Returns:
        Name of the relation.
    """
    relation = parse_relation(text)
    return text.strip() if relation is None else relation.name


def resolve_templates(wordings: Sequence[Wording]) -> list[str]:
    """Name the template of each row "original" or "paraphrase".

    A value that is one of these names, or "paraphrase_2" and so on, stands. Any other value (0 and
    1, "template_2", the text of the template) is "original" when a question under it is PopQA's
    template with the surface in it, and otherwise "paraphrase". Without a value the row's own
    question decides alike; a relation outside the taxonomy then counts as "original", as does a
    row without a question.

    Args:
        wordings: All rows of the source.

    Returns:
        One name a row.

    Raises:
        DataError: If values cannot be told apart: two of one relation would get the same name, or
            no question stands under a value.
    """
    original = {
        row.value
        for row in wordings
        if row.value is not None and not is_template(row.value.casefold()) and row.is_original
    }
    names = [_template_of(row, original) for row in wordings]
    values: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for row, name in zip(wordings, names, strict=True):
        if row.value is not None:
            is_name = is_template(row.value.casefold())
            values[row.relation, name].add(name if is_name else row.value)
    for (relation, name), merged in values.items():
        if len(merged) > 1:
            raise DataError(
                f"templates {', '.join(map(repr, sorted(merged)))} of relation {relation!r} would "
                f"all be {name!r}; {_REMEDY}"
            )
    return names


def _template_of(row: Wording, original: set[str]) -> str:
    """Name the template of one row."""
    if row.value is not None:
        if is_template(row.value.casefold()):
            return row.value.casefold()
        if row.question is None:
            raise DataError(
                f"template {row.value!r} of relation {row.relation!r} has no question that would "
                f"tell its wording; {_REMEDY}"
            )
        return _ORIGINAL if row.value in original else _PARAPHRASE
    if row.question is None or row.relation not in RELATIONS or row.is_original:
        return _ORIGINAL
    return _PARAPHRASE
