"""A small data set for the studies: four facts of two relations, each with several names."""

import pytest

from surface_consistency.data.redirectqa import RedirectQA, load_redirectqa
from surface_consistency.taxonomy import RELATIONS

FACTS = (
    ("1", "Q1", "Ann Lee", "father", ["Bo Lee", "Robert Lee"]),
    ("2", "Q2", "Cat Dow", "father", ["Eli Dow"]),
    ("3", "Q3", "Fay Gray", "sport", ["chess"]),
    ("4", "Q4", "Hal Ives", "sport", ["golf"]),
)
REDIRECTS = (
    ("{0} Smith", ["Redirects_from_married_names"]),
    ("{0}y", ["Redirects_from_misspellings", "Redirects_from_ASCII-only_titles"]),
)

COLUMNS = (
    *("triplet_id", "subject_id", "subject_surface", "subject_surface_category"),
    *("subject_wiki_title", "subject_redirect_wiki_title", "subject_pageviews", "subject_aliases"),
    *("relation", "object_surface", "object_aliases", "template", "question"),
)


def rows_of() -> list[dict]:
    """Return rows with the columns of RedirectQA v1.0.0."""
    made = []
    for triple, subject, name, relation, answers in FACTS:
        forms = [(name, ["__MAIN__"], None)] + [
            (shape.format(name), categories, shape.format(name).replace(" ", "_"))
            for shape, categories in REDIRECTS
        ]
        for surface, categories, redirect in forms:
            for template in ("original", "paraphrase"):
                question = RELATIONS[relation].question(surface, template=template)
                subject_cells = (subject, surface, categories, name, redirect, None, [name])
                cells = (int(triple), *subject_cells, relation, answers[0], answers)
                made.append(dict(zip(COLUMNS, (*cells, template, question), strict=True)))
    return made


@pytest.fixture
def rows() -> list[dict]:
    """24 rows: 4 facts x (1 canonical + 2 redirects) x 2 templates."""
    return rows_of()


@pytest.fixture
def data(rows) -> RedirectQA:
    return load_redirectqa(rows)
