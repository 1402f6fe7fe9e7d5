import csv
import json

import datasets
import pytest

from surface_consistency.data.popqa import load_popqa
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SourceNotFoundError,
    UnscoredWarning,
)
from surface_consistency.matching import match_columns


def row(identifier, subject, obj, **changes):
    """One row with PopQA's columns; lists are JSON strings, as in the release."""
    return {
        **{"id": identifier, "subj": subject, "prop": "occupation", "obj": obj},
        **{"subj_id": 1850297, "prop_id": 22, "obj_id": 2834605},
        "s_aliases": json.dumps([f"{subject} I"]),
        "o_aliases": json.dumps(["polit.", 'homme "d\'État"']),
        "s_uri": "http://www.wikidata.org/entity/Q5300000",
        "o_uri": "http://www.wikidata.org/entity/Q82955",
        **{"s_wiki_title": subject, "o_wiki_title": obj, "s_pop": 142, "o_pop": 25692},
        "question": f"What is {subject}'s occupation?",
        "possible_answers": json.dumps([obj, "political leader"]),
    } | changes


ROWS = [
    row(4222362, "George Rankin", "politician"),
    row(222, "NA", "null"),
    row(333, "null", "None"),
    row(444, "None", "nan"),
]


def without(column):
    return {name: value for name, value in ROWS[0].items() if name != column}


@pytest.fixture
def tsv(tmp_path):
    """PopQA's file as on the hub: tab-separated, quoted if necessary."""
    path = tmp_path / "PopQA" / "test.tsv"
    path.parent.mkdir()
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ROWS[0], delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(ROWS)
    return path


def test_load_popqa_reads_the_released_file(tsv):
    """Every column is read into its field; names such as "NA" are kept, PopQA's ids are not."""
    rows = load_popqa(tsv).rows

    assert rows["id"].iloc[0].startswith("4222362:original:")
    assert rows.iloc[0].drop("id").dropna().to_dict() == {
        **{"item": "4222362", "relation": "occupation", "template": "original"},
        **{"subject_id": "Q5300000", "subject_name": "George Rankin", "subject_pageviews": 142},
        **{"subject_aliases": ("George Rankin I",), "surface": "George Rankin"},
        **{"object_id": "Q82955", "object_name": "politician", "object_pageviews": 25692},
        "object_aliases": ("polit.", 'homme "d\'État"'),
        "references": ("politician", "political leader"),
        "question": "What is George Rankin's occupation?",
        **{"is_canonical": True, "categories": (), "types": ()},
    }
    assert rows["surface"].tolist()[1:] == ["NA", "null", "None"]
    assert rows["object_name"].tolist()[1:] == ["null", "None", "nan"]


def test_rows_with_a_name_read_as_missing_are_rejected(tsv, tmp_path):
    """Rows from a reader with NA rules raise an error, whose remedy works."""
    options = {"delimiter": "\t", "split": "train", "cache_dir": str(tmp_path / "cache")}
    lossy = datasets.load_dataset("csv", data_files=str(tsv), **options)
    complete = datasets.load_dataset("csv", data_files=str(tsv), keep_default_na=False, **options)

    with pytest.raises(
        RecordError, match=r":2: column '(subj|obj)' is empty; .*keep_default_na=Fal"
    ):
        load_popqa(lossy)
    assert load_popqa(complete).source.digest == load_popqa(tsv).source.digest


@pytest.mark.parametrize(
    ("obj", "listed", "answers"),
    [
        ("politician", ["leader", "politician", "leader"], ("politician", "leader")),
        ("politician", ["leader"], ("leader",)),
        ("politician ", ["leader\n", " politician", "politician ", "\t"], ("politician", "leader")),
    ],
    ids=["first", "not added", "trimmed"],
)
def test_object_is_the_first_accepted_answer_if_it_is_accepted(obj, listed, answers):
    data = load_popqa([row(1, "A", obj, possible_answers=json.dumps(listed))])

    assert data.rows["references"].tolist() == [answers]
    assert match_columns([f"a {answers[-1]}"], [answers]).is_match == [True]


@pytest.mark.parametrize("empty", ["[]", "", None])
def test_missing_answers_are_kept_and_counted(empty):
    """A fact without accepted answers is kept, with a warning at the caller's line."""
    with pytest.warns(
        UnscoredWarning, match=r"1 questions of list have no accepted answer \(1 facts: 1\)"
    ) as caught:
        data = load_popqa([row(1, "A", "politician", possible_answers=empty), ROWS[0]])

    assert caught[0].filename == __file__
    assert data.rows["references"].iloc[0] == ()


def test_uris_without_an_item_are_read_as_missing():
    """A missing or other URI gives no identifier."""
    data = load_popqa([row(1, "A", "b", s_uri=None, o_uri="http://example.org/entity/P19")])

    assert data.rows[["subject_id", "object_id"]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (
            [*({**without("s_pop"), "id": number} for number in range(1001)), ROWS[1]],
            RecordError,
            r"list:1002: column 's_pop' appears here for the first",
        ),
        (
            [without("possible_answers")],
            ColumnNotFoundError,
            r"'possible_answers' under possible_answers\. Its",
        ),
        ([ROWS[0]] * 2, DataError, r"list:2: id '4222362' is also on an earlier row"),
        ([row(1, "A", "b", s_pop=-5)], RecordError, r"list:1: .*'s_pop': .* at least 0, got -5"),
        ([row(1, "A", "b", o_pop="x")], RecordError, r"list:1: column 'o_pop': expected an int"),
        ("akariasai/PopQA", SourceNotFoundError, r"'akariasai/PopQA' is not in its cache"),
    ],
    ids=["late column", "missing column", "repeated id", "negative", "no number", "offline"],
)
def test_load_popqa_rejects_invalid_rows_and_sources(source, error, message):
    with pytest.raises(error, match=message):
        load_popqa(source)
