"""PopQA with redirects, on rows about the miniature wiki."""

import json

import datasets
import pytest
from surface_consistency_build import build_dataset
from surface_consistency_build.wikimedia.construction.rows import BuiltRow

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine.features import make_features
from surface_consistency.errors import DataError, RunError, SurfaceConsistencyWarning

pytest.importorskip("duckdb")

# id, subject, its item, relation, object, its item, template
FACTS = [
    (4222382, "Maren Oskeld", 22, "place of birth", "Brisk Harbor", 3, "In what city was {} born?"),
    (4222383, "Corvane", 39, "director", "Runa Selje", 40, "Who was the director of {}?"),
    (4222384, "Sanna Tarn", 25, "place of birth", "Mörvik", 5, "In what city was {} born?"),
    (4222385, "NA", 30, "occupation", "lampwright", 15, "What is {}'s occupation?"),
]


@pytest.fixture
def popqa(tmp_path, write_lines):
    """Rows with PopQA's columns: one without redirects, one without a page."""
    lines = []
    for number, subject, subject_item, prop, obj, object_item, template in FACTS:
        row = {"id": number, "subj": subject, "prop": prop, "obj": obj, "s_pop": 100, "o_pop": 200}
        row |= {"subj_id": 1, "prop_id": 218, "obj_id": 2, "s_aliases": '["one"]'}
        row |= {"o_aliases": "[]", "s_wiki_title": subject, "o_wiki_title": obj}
        for name, item in (("s_uri", subject_item), ("o_uri", object_item)):
            row[name] = f"http://www.wikidata.org/entity/Q{990000000 + item}"
        row["possible_answers"] = json.dumps([obj, "another"])
        lines.append(row | {"question": template.replace("{}", subject)})
    return write_lines(tmp_path / "popqa" / "test.jsonl", lines)


@pytest.fixture
def build(dumps, popqa, tmp_path):
    """Build into `out` and load the rows."""

    def make(**options):
        build_dataset("popqa-redirect", dumps, tmp_path / "out", popqa=str(popqa), **options)
        return datasets.load_dataset(str(tmp_path / "out"), split="test")

    return make


def test_build_queries_popqa_under_redirects(build):
    """Facts, answers and numbers are PopQA's; the redirects are the wiki's."""
    rows = build()

    assert rows.features == make_features(BuiltRow)
    first = ("Maren Oskeld", "Maren Ilsabet Tarn", "Maren Oskelt", "Maren Tarn-Quist", "Oskeld")
    second = ("Corvane", "Corvayne", "Korvane", "Korvayne")
    assert [(row["triplet_id"], row["subject_surface"]) for row in rows] == [
        *((4222382, name) for name in first),
        *((4222383, name) for name in second),
    ]
    assert rows[1]["question"] == "In what city was Maren Ilsabet Tarn born?"
    assert rows[1]["subject_surface_category"] == ["Redirects_from_birth_names"]
    assert rows[1]["object_aliases"] == ["Brisk Harbor", "another"]
    assert rows[0]["subject_pageviews"] == 100
    assert len(load_redirectqa(rows).pairs) == 7


def test_configurations_are_the_wordings(build, tmp_path):
    both = build(config="two-wordings")

    assert (len(both), both.unique("template")) == (18, ["original", "paraphrase"])
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "| test | 18 | 2 | 2 | 7 |" in card
    assert "MIT" in card
    assert str(tmp_path) not in card


def test_other_rows_of_popqa_require_another_folder(build, popqa):
    """A folder belongs to the rows of PopQA and to the dumps."""
    assert len(build()) == 9
    lines = popqa.read_text("utf-8").splitlines(keepends=True)
    popqa.write_text("".join(lines[1:]), encoding="utf-8")
    with pytest.raises(RunError, match="popqa_digest: "):
        build()
    assert len(build(overwrite=True)) == 4
    popqa.write_text("".join(lines[2:]), encoding="utf-8")
    with pytest.raises(DataError, match=r"no rows|no redirect|left"):
        build(overwrite=True)


def test_build_warns_about_subjects_without_items(build, popqa):
    """Their names are used as titles of articles, and facts are lost if they are not."""
    popqa.write_text(popqa.read_text("utf-8").replace('"s_uri"', '"other"'), "utf-8")

    with pytest.warns(SurfaceConsistencyWarning, match=r"facts have no Wikidata item .*s_uri"):
        build()
