import csv
import json
import re

import pytest
from hypothesis import given, strategies as st

from surface_consistency.taxonomy import (
    CANONICAL_LABEL,
    CATEGORIES,
    RELATIONS,
    TEMPLATES,
    TYPES,
    UNKNOWN_TYPE,
    parse_category,
    parse_relation,
    parse_type,
    types_of,
)

# PopQA's relations: prop_id, Wikidata property, template (Mallen et al., 2023, templates of
# the released question column).
POPQA = {
    22: ("P106", "What is {}'s occupation?"),
    218: ("P19", "In what city was {} born?"),
    91: ("P136", "What genre is {}?"),
    257: ("P22", "Who is the father of {}?"),
    182: ("P17", "In what country is {}?"),
    164: ("P162", "Who was the producer of {}?"),
    526: ("P57", "Who was the director of {}?"),
    97: ("P1376", "What is {} the capital of?"),
    533: ("P58", "Who was the screenwriter for {}?"),
    639: ("P86", "Who was the composer of {}?"),
    472: ("P462", "What color is {}?"),
    106: ("P140", "What is the religion of {}?"),
    560: ("P641", "What sport does {} play?"),
    484: ("P50", "Who is the author of {}?"),
    292: ("P25", "Who is the mother of {}?"),
    422: ("P36", "What is the capital of {}?"),
}

# Labels of release v1.0.0, with the en dash.
FROM = """
birth_names pseudonyms former_names alternative_names abbreviations initialisms acronyms
letter–word_combinations numerals short_names long_names surnames given_names personal_names
married_names titles_with_diacritics titles_without_diacritics titles_without_ligatures
ASCII-only_titles alternative_spellings misspellings incorrect_names miscapitalisations
other_capitalisations stylizations modifications technical_names plurals synonyms
"""
TO = "initialisms acronyms ASCII-only_titles plurals"
LABELS = [
    f"Redirects_{way}_{name}"
    for way, names in (("from", FROM), ("to", TO))
    for name in names.split()
]


def table3(data_files):
    with (data_files / "golden" / "redirectqa_table3_categories.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        return [row for row in csv.DictReader(file) if row["category"]]


def test_categories_agree_with_table_3(data_files):
    """The 33 categories, their types and the order of both are those of the paper's Table 3."""
    rows = [(row["category"], row["type"]) for row in table3(data_files)]

    order = [(category.name, category.type) for category in CATEGORIES.values()]

    assert len(rows) == 33
    assert list(TYPES) == list(dict.fromkeys(kind for _, kind in rows))
    assert order == rows
    assert set(LABELS) == set(CATEGORIES)
    assert len(LABELS) == 33


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(
    "spell",
    [
        lambda label: label,
        lambda label: label.replace("_", " "),
        lambda label: "Category:" + label.replace("_", " "),
        lambda label: label.removeprefix("Redirects_").replace("_", " "),
        lambda label: label.removeprefix("Redirects_"),
        lambda label: label.upper(),
        lambda label: label.replace("–", "-"),
        lambda label: f"  {label}  ",
    ],
)
def test_parse_category_accepts_every_spelling(label, spell):
    assert parse_category(spell(label)) is CATEGORIES[label]


@pytest.mark.parametrize("text", ["Redirects_from_books", CANONICAL_LABEL, "", "from", "Redirects"])
def test_parse_category_rejects_other_texts(text):
    assert parse_category(text) is None


@given(st.text())
def test_parse_category_accepts_any_text(text):
    assert parse_category(text) in {None, *CATEGORIES.values()}


@pytest.mark.parametrize(
    ("label", "name"),
    [
        # Labels of metadata/redirect_category_to_type.csv in the hub repository.
        ("Aliases_and_Abbreviations", "alternative_names_and_abbreviations"),
        ("Spelling_variants", "spelling_variants"),
        ("Typical_Errors", "typical_errors"),
    ],
)
def test_parse_type_accepts_hub_label_name_and_title(label, name):
    kind = TYPES[name]

    assert parse_type(label) is parse_type(name) is parse_type(kind.title) is kind
    assert kind.label == label


def test_types_of_agrees_with_real_rows(data_files):
    path = data_files / "redirectqa" / "v1_pairs_sample.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    assert len(rows) == 24
    for row in rows:
        found = types_of(tuple(row["subject_surface_category"]))
        assert {TYPES[name].label for name in found} == set(row["types"]), row["subject_surface"]


def test_types_of_is_ordered_and_without_duplicates():
    names = ("books", "misspellings", "surnames", "incorrect_names")
    labels = [f"Redirects_from_{name}" for name in names]

    expected = ("alternative_names_and_abbreviations", "typical_errors", UNKNOWN_TYPE)
    assert types_of(tuple(labels)) == expected
    assert types_of((CANONICAL_LABEL,)) == types_of(()) == ()


def test_relations_agree_with_popqa():
    every = RELATIONS.values()

    assert {one.popqa_id: (one.property_id, one.original) for one in every} == POPQA
    wordings = [getattr(one, template) for one in every for template in TEMPLATES]
    assert len(set(wordings)) == 32
    assert all(re.fullmatch(r"[^{}]*\{\}[^{}]*\?", wording) for wording in wordings)


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=lambda relation: relation.name)
def test_parse_relation_accepts_name_property_and_prop_id(relation):
    name, identifier = relation.name, relation.property_id
    for text in (name, name.replace("_", " "), name.title(), identifier, identifier.lower()):
        assert parse_relation(text) is parse_relation(str(relation.popqa_id)) is relation
    # A number without P is the number of PopQA, not of Wikidata.
    assert parse_relation("employer") is parse_relation("P2") is None
    assert parse_relation("106").name == "religion"


def test_relation_question_uses_the_surface_unchanged():
    """Braces, backslashes and percent signs in a name are part of the name."""
    odd = r"{0} \1 %s {}"

    assert RELATIONS["capital"].question(odd) == rf"What is the capital of {odd}?"
    with pytest.raises(ValueError, match=r"one of original, paraphrase, got 'third'"):
        RELATIONS["capital"].question("France", template="third")
