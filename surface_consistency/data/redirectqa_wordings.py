"""Determine the relation of a question, and its template."""

from typing import Final

import pandas as pd

from surface_consistency.errors import DataError
from surface_consistency.reading import shown
from surface_consistency.taxonomy import RELATIONS, TEMPLATES, is_template, parse_relation

_ORIGINAL, _PARAPHRASE = TEMPLATES
_REMEDY: Final = (
    f"write {' or '.join(map(shown, TEMPLATES))} into the template column, or name another column "
    "with columns={'template': 'NAME'}"
)


def infer_relation(question: str, surface: str) -> str | None:
    """Infer the relation of a question that follows a template of the taxonomy.

    Args:
        question: The question.
        surface: The name of the subject in it.

    Returns:
        Name of the relation; None if no template gives this question, or those of two do.

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


def resolve_templates(rows: pd.DataFrame) -> pd.Series:
    """Name the template of each row "original" or "paraphrase".

    A value that is one of these names, or "paraphrase_2" and so on, is kept. Any other value (0 and
    1, "template_2", the text of the template) is "original" if a question under it is PopQA's
    template with the surface in it, and otherwise "paraphrase". Without a value the same rule is
    applied to the question of the row; a relation outside the taxonomy then counts as "original",
    as does a row without a question.

    Args:
        rows: All rows of the source; columns of text: relation, surface, question and template, the
            last two None if the source has none.

    Returns:
        One name per row.

    Raises:
        DataError: If values cannot be distinguished: two of one relation would get the same name,
            or no question is given under a value.
    """
    given = rows["template"].map(str.casefold, na_action="ignore")
    is_name = given.map(is_template, na_action="ignore").eq(True)
    if is_name.all():
        return given
    is_original = pd.Series(
        [
            name in RELATIONS and question == RELATIONS[name].question(surface)
            for name, question, surface in zip(
                rows["relation"], rows["question"], rows["surface"], strict=True
            )
        ],
        index=rows.index,
    )
    values = rows["template"].mask(is_name)
    if (silent := values.notna() & rows["question"].isna()).any():
        row = rows[silent].iloc[0]
        raise DataError(
            f"template {shown(row['template'])} of relation {shown(row['relation'])} has no "
            f"question that shows its wording; {_REMEDY}"
        )
    # All rows of a value have the same template; without a value each row is decided separately.
    decided = is_original | values.isin(values[is_original].dropna())
    decided |= rows["template"].isna() & (
        rows["question"].isna() | ~rows["relation"].isin(list(RELATIONS))
    )
    names = decided.map({True: _ORIGINAL, False: _PARAPHRASE}).where(~is_name, given)
    stated = rows[rows["template"].notna()].assign(name=names, value=values.fillna(given))
    for (relation, name), merged in stated.groupby(["relation", "name"], sort=False)["value"]:
        if merged.nunique() > 1:
            raise DataError(
                f"templates {', '.join(map(shown, sorted(merged.unique())))} of relation "
                f"{shown(relation)} would all be {shown(name)}; {_REMEDY}"
            )
    return names
