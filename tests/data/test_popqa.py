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

COLUMNS = [
    "id",
    "subj",
    "prop",
    "obj",
    "subj_id",
    "prop_id",
    "obj_id",
    "s_aliases",
    "o_aliases",
    "s_uri",
    "o_uri",
    "s_wiki_title",
    "o_wiki_title",
    "s_pop",
    "o_pop",
    "question",
    "possible_answers",
]


def row(identifier, subject, obj, **changes):
    """One row in PopQA's columns; lists are JSON strings, as released."""
    return {
        "id": identifier,
        "subj": subject,
        "prop": "occupation",
        "obj": obj,
        "subj_id": 1850297,
        "prop_id": 22,
        "obj_id": 2834605,
        "s_aliases": json.dumps([f"{subject} I"]),
        "o_aliases": json.dumps(["polit.", 'homme "d\'État"']),
        "s_uri": "http://www.wikidata.org/entity/Q5300000",
        "o_uri": "http://www.wikidata.org/entity/Q82955",
        "s_wiki_title": subject,
        "o_wiki_title": obj,
        "s_pop": 142,
        "o_pop": 25692,
        "question": f"What is {subject}'s occupation?",
        "possible_answers": json.dumps([obj, "political leader"]),
    } | changes


ROWS = [
    row(4222362, "George Rankin", "politician"),
    row(222, "NA", "null"),
    row(333, "null", "None"),
    row(444, "None", "nan"),
]


@pytest.fixture
def tsv(tmp_path):
    """PopQA's file as it is on the hub: tab-separated, quoted where needed."""
    path = tmp_path / "PopQA" / "test.tsv"
    path.parent.mkdir()
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(ROWS)
    return path


def test_load_popqa_reads_the_released_file(tsv):
    """Every column arrives in its field; numbers of PopQA's own are not taken for items."""
    data = load_popqa(tsv)
    question = data.questions[0]

    assert len(data.questions) == 4
    assert question.id.startswith("4222362:original:")
    assert question.triple.id == "4222362"
    assert question.triple.relation == "occupation"
    assert question.triple.subject.id == "Q5300000"
    assert question.triple.subject.aliases == ("George Rankin I",)
    assert question.triple.subject.pageviews == 142
    assert question.triple.object.id == "Q82955"
    assert question.triple.object.aliases == ("polit.", 'homme "d\'État"')
    assert question.triple.answers == ("politician", "political leader")
    assert question.surface.is_canonical
    assert question.surface.categories == ()
    assert question.template == "original"


def test_load_popqa_keeps_names_that_look_like_nothing(tsv):
    """Subjects named "NA", "null" and "None" survive, where the plain CSV reader loses them."""
    data = load_popqa(tsv)

    assert [question.surface.text for question in data.questions[1:]] == ["NA", "null", "None"]
    assert [question.triple.object.name for question in data.questions[1:]] == [
        "null",
        "None",
        "nan",
    ]


def test_load_popqa_rejects_rows_that_lost_a_name(tsv, tmp_path):
    """Rows that came through a reader with NA rules are refused with the remedy, which works."""
    options = {"delimiter": "\t", "split": "train", "cache_dir": str(tmp_path / "cache")}
    lossy = datasets.load_dataset("csv", data_files=str(tsv), **options)
    whole = datasets.load_dataset("csv", data_files=str(tsv), keep_default_na=False, **options)

    with pytest.raises(
        RecordError, match=r":2: column '(subj|obj)' is empty; .*keep_default_na=Fal"
    ):
        load_popqa(lossy)
    assert load_popqa(whole).source.digest == load_popqa(tsv).source.digest


def test_every_kind_of_source_gives_the_same_data(tsv, tmp_path):
    """File, folder in the hub's layout, rows and Parquet are the same data."""
    parquet = tmp_path / "popqa.parquet"
    datasets.Dataset.from_list(ROWS).to_parquet(parquet)

    found = [load_popqa(source) for source in (tsv, tsv.parent, ROWS, parquet)]

    for data in found:
        assert data.questions == found[0].questions
        assert data.source.digest == found[0].source.digest


def test_load_popqa_puts_the_object_first():
    """The object's name leads the accepted answers when it is among them, and is not added."""
    listed = json.dumps(["leader", "politician", "leader"])
    data = load_popqa(
        [
            row(1, "A", "politician", possible_answers=listed),
            row(2, "B", "politician", possible_answers=json.dumps(["leader"])),
        ]
    )

    assert [question.triple.answers for question in data.questions] == [
        ("leader", "politician")[::-1],
        ("leader",),
    ]


def test_load_popqa_trims_accepted_answers():
    """White space around an answer, which no first line of a prediction has, does not hide it."""
    listed = json.dumps(["leader\n", " politician", "politician ", "\t"])

    data = load_popqa([row(1, "A", "politician ", possible_answers=listed)])

    assert data.questions[0].triple.answers == ("politician", "leader")
    texts = ["politician", "a leader"]
    assert match_columns(texts, [data.questions[0].triple.answers] * 2).is_match == [True, True]


def test_load_popqa_rejects_a_column_that_comes_late():
    """A field of which the first thousand rows know nothing is not passed over."""
    plain = {name: value for name, value in ROWS[0].items() if name != "s_pop"}
    rows = [plain | {"id": number} for number in range(1001)]

    with pytest.raises(RecordError, match=r"list:1002: column 's_pop' appears here for the first"):
        load_popqa([*rows, ROWS[1]])


@pytest.mark.parametrize("empty", ["[]", "", None])
def test_missing_answers_are_kept_and_counted(empty):
    """A fact without accepted answers stays and is told of."""
    with pytest.warns(
        UnscoredWarning, match=r"1 questions of list have no accepted answer \(1 facts: 1\)"
    ) as caught:
        data = load_popqa([row(1, "A", "politician", possible_answers=empty), ROWS[0]])

    assert caught[0].filename == __file__
    assert data.questions[0].triple.answers == ()


def test_uris_that_are_no_items_are_left_out():
    """A missing or foreign address gives no identifier."""
    data = load_popqa([row(1, "A", "b", s_uri=None, o_uri="http://example.org/entity/P19")])

    assert data.questions[0].triple.subject.id is None
    assert data.questions[0].triple.object.id is None


def test_load_popqa_rejects_a_missing_column():
    """A column of PopQA that is not there is named."""
    with pytest.raises(
        ColumnNotFoundError, match=r"'possible_answers' under possible_answers\. Its"
    ):
        load_popqa([{name: ROWS[0][name] for name in COLUMNS[:-1]}])


def test_load_popqa_rejects_a_repeated_id():
    """An id is one fact."""
    with pytest.raises(DataError, match=r"list:2: id '4222362' is on an earlier row too"):
        load_popqa([ROWS[0], ROWS[0]])


def test_load_popqa_rejects_broken_values():
    """A bad value is told with its row and field."""
    with pytest.raises(
        RecordError, match=r"list:1: column 's_pop': expected .* at least 0, got -5"
    ):
        load_popqa([row(1, "A", "b", s_pop=-5)])
    with pytest.raises(RecordError, match=r"list:1: column 'o_pop': expected a whole number"):
        load_popqa([row(1, "A", "b", o_pop="x")])


def test_load_popqa_rejects_an_unreachable_hub():
    """The default is the hub's repository; offline, the message names it."""
    with pytest.raises(SourceNotFoundError, match=r"'akariasai/PopQA' is not in its cache"):
        load_popqa()
