import json
import re
from pathlib import Path

import pytest

from surface_consistency.errors import RecordError, SourceNotFoundError
from surface_consistency.wikimedia.construction import find_dumps
from surface_consistency.wikimedia.wikis import WIKIS, WikiConfig, load_wiki

TOML = """
name = "frwiki"
wiki = "frwiki"
language = "fr"
project = "fr.wikipedia"
uncategorised = true
relations = ["capital"]

[questions.capital]
original = "Quelle est la capitale de {} ?"
paraphrase = "Quelle ville est la capitale de {} ?"
"""


def test_load_wiki_reads_toml(tmp_path):
    (tmp_path / "fr.toml").write_text(TOML, encoding="utf-8")

    wiki = load_wiki(tmp_path / "fr.toml")

    assert wiki.properties == {36: "capital"}
    assert wiki.question("capital", "X", template="original") == "Quelle est la capitale de X ?"


def test_file_of_the_guide_describes_an_uncategorised_wiki(tmp_path):
    guide = Path(__file__).parents[3] / "docs" / "guides" / "build.md"
    [text] = re.findall(r"```toml\n(.*?)```", guide.read_text("utf-8"), re.DOTALL)
    (tmp_path / "fr.toml").write_text(text, encoding="utf-8")

    plan = find_dumps(tmp_path, str(tmp_path / "fr.toml"))

    assert plan.route == "uncategorised"
    assert {dump.role for dump in plan.missing} == {"page", "redirect", "pageviews", "wikidata"}
    assert "Quelle" in plan.config.question(plan.config.relations[0], "X", template="original")


@pytest.mark.parametrize("name", sorted(WIKIS))
def test_written_configuration_is_read_back(name, tmp_path):
    (tmp_path / "wiki.json").write_text(WIKIS[name].model_dump_json(), encoding="utf-8")

    assert load_wiki(tmp_path / "wiki.json") == WIKIS[name]


def test_file_over_a_base_changes_what_it_gives(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"base": "enwiki", "name": "mine", "relations": ["sport"]}))

    wiki = load_wiki(file)

    assert wiki.relations == ("sport",)
    assert wiki.categories == WIKIS["enwiki"].categories


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "name = ", "a.toml: not TOML"),
        ("a.json", "{", "a.json: not JSON"),
        ("a.json", "[]", "a table of fields"),
        ("a.toml", 'base = "xxwiki"', "base must be one of enwiki"),
        ("a.toml", 'name = "x"', "a.toml: field 'wiki': Field required"),
        (
            "a.toml",
            'base = "enwiki"\nrelation = 1',
            "'relation': there is no such field; the field",
        ),
        ("a.toml", 'base = "enwiki"\nuncategorised = 7', "'uncategorised': .* got 7"),
        (
            "a.toml",
            'base = "jawiki"\nuncategorised = false',
            r"a\.toml: a wiki without categories and templates needs uncategorised = true$",
        ),
    ],
)
def test_load_wiki_rejects_broken_files(name, text, message, tmp_path):
    (tmp_path / name).write_text(text)

    with pytest.raises(RecordError, match=message):
        load_wiki(tmp_path / name)


def test_load_wiki_rejects_unknown_names():
    with pytest.raises(SourceNotFoundError, match="neither a file nor one of enwiki"):
        load_wiki("xxwiki")


def test_configuration_is_not_changed_in_place():
    assert isinstance(WIKIS["enwiki"], WikiConfig)
    with pytest.raises(ValueError, match="frozen"):
        WIKIS["enwiki"].name = "other"
