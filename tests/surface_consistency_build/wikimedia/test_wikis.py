import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError
from surface_consistency_build.wikimedia.construction import find_dumps
from surface_consistency_build.wikimedia.rcat_templates import categories_of_templates
from surface_consistency_build.wikimedia.wikis import (
    UNCATEGORISED_LABEL,
    WIKIS,
    WikiConfig,
    load_wiki,
)

from surface_consistency.errors import RecordError, SourceNotFoundError
from surface_consistency.taxonomy import CATEGORIES, RELATIONS
from surface_consistency.text import guess_language

SMALL = {"name": "xx", "wiki": "xxwiki", "language": "xx", "project": "xx.wikipedia"}


def test_enwiki_has_every_category_and_relation():
    wiki, first = load_wiki("enwiki"), load_wiki("enwiki-v0.1.0")

    assert wiki.labels == tuple(sorted(CATEGORIES))
    assert set(wiki.categories) == set(wiki.templates.values()) == set(CATEGORIES)
    assert wiki.relations == tuple(RELATIONS)
    assert set(RELATIONS) - set(first.relations) == {"religion"}
    assert first.question_templates == ("original",)


def questions_about(wiki, name):
    """Return all questions about a name."""
    return {
        (relation, template): wiki.question(relation, name, template=template)
        for relation in wiki.relations
        for template in wiki.question_templates
    }


@pytest.mark.parametrize("name", sorted(WIKIS))
def test_every_question_of_every_wiki_contains_its_subject_once(name):
    wiki = load_wiki(name)

    questions = questions_about(wiki, "Zyx")

    assert all(question.count("Zyx") == 1 for question in questions.values())
    assert len(set(questions.values())) == len(questions)
    english = {RELATIONS[name].question("Zyx", template=word) for name, word in questions}
    assert bool(english.intersection(questions.values())) is (wiki.language == "en")


def test_zhwiki_categorises_redirects_by_its_templates():
    wiki = load_wiki("zhwiki")

    assert categories_of_templates(["別名重定向", "错字重定向", "簡繁重定向"], wiki.templates) == (
        "Redirects_from_alternative_names",
        "Redirects_from_misspellings",
    )
    assert len(wiki.labels) == 10
    assert UNCATEGORISED_LABEL not in wiki.labels
    for name in ("jawiki", "dewiki"):
        assert load_wiki(name).labels == (UNCATEGORISED_LABEL,)


def test_category_titles_and_templates_have_the_spelling_of_lookups():
    wiki = WikiConfig(
        **SMALL,
        categories={"Weiterleitung (Kurzform)": "from short names"},
        templates={"redirect_from Short  name": "Redirects_from_short_names"},
    )

    assert wiki.categories == {"Weiterleitung_(Kurzform)": "Redirects_from_short_names"}
    assert wiki.templates == {"r from short name": "Redirects_from_short_names"}
    assert wiki.labels == ("Redirects_from_short_names",)


def questions_of(relation, **wordings):
    return {"uncategorised": True, "questions": {relation: wordings}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "needs uncategorised = true"),
        ({"categories": {"X": "from books"}}, "not one of the 33 redirect categories"),
        ({"uncategorised": True, "relations": ["spouse"]}, "distinct names of occupation"),
        ({"uncategorised": True, "relations": []}, "got none"),
        ({"uncategorised": True, "relations": ["sport", "sport"]}, "one or more distinct"),
        ({"uncategorised": True, "question_templates": ["short"]}, "no question template 'short'"),
        ({"uncategorised": True, "question_templates": []}, "at least one wording"),
        (questions_of("sport", original="Which?"), "must contain {} exactly once"),
        (
            questions_of("sport", original="Quel sport, {}?"),
            r"1 questions are given, and 31 would be in English \(the first is the 'original' "
            "question of 'occupation'",
        ),
        (
            questions_of("captial", original="{}?"),
            "questions are given for 'captial', which is not a rel",
        ),
        (questions_of("capital", orignal="{}?"), "the wording 'orignal' of 'capital' is not used"),
        ({"uncategorised": True, "wiki": "enwiki; DROP"}, "should match pattern"),
        ({"uncategorised": True, "colour": "red"}, "Extra inputs are not permitted"),
    ],
)
def test_wiki_config_rejects_invalid_fields(fields, message):
    with pytest.raises(ValidationError, match=message):
        WikiConfig.model_validate(SMALL | fields)


def test_wording_of_the_wiki_replaces_the_english_one():
    fields = SMALL | {"language": "en"} | questions_of("sport", original="Which sport, {}?")
    wiki = WikiConfig.model_validate(fields)

    assert wiki.question("sport", "X", template="original") == "Which sport, X?"
    english = RELATIONS["sport"].question("X", template="paraphrase")
    assert wiki.question("sport", "X", template="paraphrase") == english


def test_file_of_the_guide_describes_an_uncategorised_wiki(tmp_path):
    guide = Path(__file__).parents[3] / "docs" / "guides" / "build.md"
    [text] = re.findall(r"```toml\n(.*?)```", guide.read_text("utf-8"), re.DOTALL)
    (tmp_path / "fr.toml").write_text(text, encoding="utf-8")

    plan = find_dumps(tmp_path, str(tmp_path / "fr.toml"))

    assert plan.route == "uncategorised"
    assert {dump.role for dump in plan.missing} == {"page", "redirect", "pageviews", "wikidata"}
    assert "Quelle" in plan.config.question(plan.config.relations[0], "X", template="original")
    assert set(plan.config.properties.values()) == set(plan.config.relations)


def test_a_written_configuration_is_read_back_and_replaces_fields_of_its_base(tmp_path):
    file = tmp_path / "mine.json"
    for known in WIKIS.values():
        file.write_text(known.model_dump_json(), encoding="utf-8")
        assert load_wiki(file) == known
    file.write_text(json.dumps({"base": "enwiki", "name": "mine", "relations": ["sport"]}))

    wiki = load_wiki(file)

    assert wiki.relations == ("sport",)
    assert wiki.categories == WIKIS["enwiki"].categories


ENWIKI = 'base = "enwiki"\n'
UNSORTED = r"a\.toml: a wiki without categories and templates needs uncategorised = true$"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "name = ", "a.toml: not TOML"),
        ("a.json", "{", "a.json: not JSON"),
        ("a.json", "[" * 100_000, "a.json: nested more than 64 levels"),
        ("a.toml", "a = " + "[" * 100_000, "a.toml: nested more than 64 levels"),
        ("a.json", "[]", "a table of fields"),
        ("a.toml", 'base = "xxwiki"', "base must be one of enwiki"),
        ("a.toml", 'name = "x"', "a.toml: field 'wiki': Field required"),
        ("a.toml", f"{ENWIKI}relation = 1", "'relation': unknown field; the field"),
        ("a.toml", f"{ENWIKI}uncategorised = 7", "'uncategorised': .* got 7"),
        ("a.toml", 'base = "jawiki"\nuncategorised = false', UNSORTED),
    ],
)
def test_load_wiki_rejects_invalid_files(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)

    with pytest.raises(RecordError, match=message):
        load_wiki(tmp_path / name)
    with pytest.raises(SourceNotFoundError, match="neither a file nor one of enwiki"):
        load_wiki("xxwiki")


@pytest.mark.parametrize("wiki", ["enwiki", "zhwiki", "jawiki"])
@pytest.mark.parametrize("name", ["夏目漱石", "Ann"])
def test_questions_of_a_wiki_are_in_its_language_for_any_name(wiki, name):
    questions = list(questions_about(WIKIS[wiki], name).values())

    assert guess_language(questions) == WIKIS[wiki].language
    if wiki == "enwiki":
        assert {guess_language([question]) for question in questions} == {"en"}
