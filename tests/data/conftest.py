"""Rows in the columns of release v1.0.0, and caches that no test shares."""

import copy
import json

import pytest

from surface_consistency.taxonomy import RELATIONS

# Subject, surface and categories are real rows of release v1.0.0; the answers are Wikidata's.
FACTS = [
    {
        "triplet_id": 230395,
        "subject_id": "Q154216",
        "title": "Cat_Stevens",
        "pageviews": 1209162,
        "relation": "place_of_birth",
        "object_id": "Q84",
        "answers": ["London", "London, UK"],
        "redirects": [
            (
                "Steven D. Georgiou",
                "Steven_D._Georgiou",
                ["Redirects_from_personal_names", "Redirects_from_short_names"],
            )
        ],
    },
    {
        "triplet_id": 6146949,
        "subject_id": "Q6321927",
        "title": "Jesús_Antúnez",
        "pageviews": 727,
        "relation": "occupation",
        "object_id": "Q639669",
        "answers": ["musician"],
        "redirects": [
            (
                "Jesus Antunez",
                "Jesus_Antunez_(musician)",
                ["Redirects_from_titles_without_diacritics"],
            ),
            ("Jesus Antunez", "Jesus_Antunez", ["Redirects_from_misspellings"]),
        ],
    },
]


def rows_of(fact):
    """Realise a fact as rows of the release."""
    relation = RELATIONS[fact["relation"]]
    title = fact["title"].replace("_", " ")
    for surface, redirect, categories in [(title, None, ["__MAIN__"]), *fact["redirects"]]:
        for template in ("original", "paraphrase"):
            yield {
                "triplet_id": fact["triplet_id"],
                "subject_id": fact["subject_id"],
                "subject_surface": surface,
                "subject_surface_category": categories,
                "subject_wiki_title": fact["title"],
                "subject_redirect_wiki_title": redirect,
                "subject_pageviews": fact["pageviews"],
                "subject_aliases": [title],
                "relation": fact["relation"],
                "object_id": fact["object_id"],
                "object": fact["answers"][0],
                "possible_answers": fact["answers"],
                "template": template,
                "question": relation.question(surface, template=template),
            }


@pytest.fixture
def rows():
    """Ten rows: two facts, three redirects, two templates."""
    return [copy.deepcopy(row) for fact in FACTS for row in rows_of(fact)]


@pytest.fixture
def write_lines():
    """Write rows as JSON lines."""

    def write(path, rows):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
        )
        return path

    return write


@pytest.fixture(autouse=True)
def own_caches(tmp_path_factory, monkeypatch):
    """Give each test empty caches of the hub and of `datasets`."""
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache / "hub"))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(cache / "datasets"))
    return cache
