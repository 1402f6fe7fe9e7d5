"""English Wikipedia: every category of the taxonomy, and the templates that set them."""

from surface_consistency.taxonomy import CATEGORIES, RELATIONS
from surface_consistency.wikimedia.pages_xml.rcat_templates import ENWIKI_TABLE
from surface_consistency.wikimedia.wikis.config import WikiConfig

__all__ = ["ENWIKI", "ENWIKI_V0_1_0", "SIMPLEWIKI"]

_SAME_NAMES = {label: label for label in CATEGORIES}

ENWIKI = WikiConfig(
    name="enwiki",
    wiki="enwiki",
    language="en",
    project="en.wikipedia",
    categories=_SAME_NAMES,
    templates=ENWIKI_TABLE,
    notes=(
        "The labels of the taxonomy are the titles of the wiki's own categories, so the category "
        "tables need no list of templates; reading the pages' text does."
    ),
)
"""English Wikipedia as in RedirectQA v1.0.0: 16 relations, two wordings."""

ENWIKI_V0_1_0 = ENWIKI.model_copy(
    update={
        "name": "enwiki-v0.1.0",
        "relations": tuple(name for name in RELATIONS if name != "religion"),
        "question_templates": ("original",),
    }
)
"""English Wikipedia as in RedirectQA v0.1.0: without religion, one wording."""

SIMPLEWIKI = ENWIKI.model_copy(
    update={
        "name": "simplewiki",
        "wiki": "simplewiki",
        "project": "simple.wikipedia",
        "notes": (
            "Simple English Wikipedia takes its redirect templates and categories over from the "
            "English one; few redirects carry them, so a build is small."
        ),
    }
)
"""Simple English Wikipedia."""
