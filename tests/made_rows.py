"""A small data set for the studies: four facts of two relations, with planted weaknesses."""

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


def rows_of() -> list[dict]:
    """Rows in the column layout of RedirectQA v1.0.0."""
    made = []
    for triple, subject, name, relation, answers in FACTS:
        forms = [(name, ["__MAIN__"], None)] + [
            (shape.format(name), categories, shape.format(name).replace(" ", "_"))
            for shape, categories in REDIRECTS
        ]
        for surface, categories, redirect in forms:
            for template in ("original", "paraphrase"):
                made.append(
                    {
                        "triplet_id": int(triple),
                        "subject_id": subject,
                        "subject_surface": surface,
                        "subject_surface_category": categories,
                        "subject_wiki_title": name,
                        "subject_redirect_wiki_title": redirect,
                        "subject_pageviews": None,
                        "subject_aliases": [name],
                        "relation": relation,
                        "object_surface": answers[0],
                        "object_aliases": answers,
                        "template": template,
                        "question": RELATIONS[relation].question(surface, template=template),
                    }
                )
    return made


@pytest.fixture
def rows() -> list[dict]:
    """24 rows: 4 facts x (1 canonical + 2 redirects) x 2 templates."""
    return rows_of()


@pytest.fixture
def data(rows) -> RedirectQA:
    """The rows as records."""
    return load_redirectqa(rows)
