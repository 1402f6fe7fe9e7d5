import pytest
from surface_consistency_build.wikimedia.rcat_templates import (
    ENWIKI_SHELLS,
    ENWIKI_TABLE,
    ENWIKI_TEMPLATES,
    categories_of_templates,
    template_key,
    template_table,
)

from surface_consistency.taxonomy import CATEGORIES


def test_templates_give_exactly_the_categories_of_the_taxonomy():
    assert set(ENWIKI_TEMPLATES) == {category.name for category in CATEGORIES.values()}
    assert set(ENWIKI_TABLE.values()) == set(CATEGORIES)


def test_templates_are_listed_once():
    keys = [template_key(name) for names in ENWIKI_TEMPLATES.values() for name in names]

    assert len(keys) == len(set(keys)) == len(ENWIKI_TABLE)
    assert not {template_key(name) for name in ENWIKI_SHELLS} & set(keys)


@pytest.mark.parametrize(
    ("template", "category"),
    [
        # Documentation of the templates on the English Wikipedia.
        ("R to diacritics", "Redirects_from_titles_without_diacritics"),
        ("R to title with diacritics", "Redirects_from_titles_without_diacritics"),
        ("R from title with diacritics", "Redirects_from_titles_with_diacritics"),
        ("R to ligature", "Redirects_from_titles_without_ligatures"),
        ("R from maiden name", "Redirects_from_birth_names"),
        ("R to singular", "Redirects_from_plurals"),
        ("R from singular", "Redirects_to_plurals"),
        ("redirect from stage name", "Redirects_from_pseudonyms"),
        ("R from letter-word combination", "Redirects_from_letter–word_combinations"),
        ("R typo", "Redirects_from_misspellings"),
        ("R from unsuitable title", "Redirects_from_incorrect_names"),
    ],
)
def test_categories_of_templates_are_those_of_the_wiki(template, category):
    assert categories_of_templates([template]) == (category,)


def test_categories_are_in_the_order_of_the_taxonomy():
    templates = [names[0] for names in reversed(ENWIKI_TEMPLATES.values())]

    assert categories_of_templates([*templates, "R from move"]) == tuple(CATEGORIES)


def test_template_table_folds_spellings_and_rejects_two_categories():
    table = template_table({"転送ページ": "b", "Other_name": "a"})

    assert categories_of_templates(["other name", "転送ページ"], table) == ("a", "b")
    with pytest.raises(ValueError, match="fills one category"):
        template_table({"R typo": "a", "r_typo": "b"})
