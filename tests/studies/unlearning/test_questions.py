import json

import pytest

from surface_consistency.errors import DataError, RecordError
from surface_consistency.results.unlearning import edit_questions
from surface_consistency.rows.readers import Place
from surface_consistency.studies.unlearning.logs import tofu_answers
from surface_consistency.studies.unlearning.questions import (
    edit_rows,
    table_rows,
    tofu_rows,
    with_long,
)

PLACE = Place("rows.jsonl", 7)


@pytest.fixture(scope="module")
def forget01(data_files):
    """TOFU's forget01 as on the hub, with the short answers of its rows."""
    text = (data_files / "unlearning" / "tofu_forget01_perturbed.jsonl").read_text("utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    answers = {index - 360: answer for index, answer in tofu_answers().items() if index >= 360}
    return tofu_rows(records, answers, "forget")


def by_form(record):
    return {(one.set, one.form): (one.question, one.answers) for one in edit_questions(record)}


def test_tofu_has_plain_reworded_and_surname_forms(forget01):
    counts = forget01["form"].value_counts()

    assert counts["plain"] == counts["reworded"] == 38
    assert 30 <= counts["name"] < 38
    assert forget01["subject_id"].nunique() == 2
    named = forget01[forget01["form"] == "name"].set_index("item")["question"]
    assert named["forget 1"] == "What gender is author Al-Kuwaiti?"
    assert not named.str.contains("Basil Mahfouz|Nikolai").any()
    assert named.str.contains("Al-Kuwaiti|Abilov").all()


def test_long_queries_begin_with_questions_about_other_subjects(forget01):
    rows = with_long(forget01)

    long = rows[rows["form"] == "long"].merge(
        forget01[forget01["form"] == "plain"], on="item", suffixes=("", "_plain")
    )
    assert len(long) == 38
    for row in long.itertuples():
        assert row.question.endswith(f"4. {row.question_plain}")
        other = "Nikolai" if row.subject_id == "forget 0" else "Al-Kuwaiti"
        assert other in row.question


def test_counterfact_in_the_flat_layout(data_files):
    content = json.loads((data_files / "unlearning" / "editing_records.json").read_text("utf-8"))
    records = content["counterfact_edit"]

    asked = by_form(records[0])
    rows = edit_rows(enumerate(records))

    question = "The mother tongue of Danielle Darrieux is"
    assert asked["new object", "plain"] == (question, ("English",))
    assert asked["forget", "plain"][1] == ("French",)
    assert asked["neighbour", "plain"] == ("Michel Rocard is a native speaker of", ("French",))
    kinds = [*FORGET, ("neighbour", "plain"), *NEW]
    assert rows.groupby(["set", "form"]).size().to_dict() == dict.fromkeys(kinds, 20)


ROME = {
    "case_id": 0,
    "requested_rewrite": {
        "prompt": "The mother tongue of {} is",
        "relation_id": "P103",
        "target_new": {"str": "English", "id": "Q1860"},
        "target_true": {"str": "French", "id": "Q150"},
        "subject": "Danielle Darrieux",
    },
    "paraphrase_prompts": ["Danielle Darrieux, a native"],
    "neighborhood_prompts": ["The mother tongue of Léon Blum is"],
    "attribute_prompts": [],
}
ZSRE = {
    "subject": "Watts Humphrey",
    "src": "What university did Watts Humphrey attend?",
    "rephrase": "What university did Watts Humphrey take part in?",
    "alt": "University of Michigan",
    "answers": ["Illinois Institute of Technology"],
    "loc": "who played desmond doss father in hacksaw ridge",
    "loc_ans": "Hugo Weaving",
}
KNOWEDIT = {
    "subject": "Leo Arons",
    "prompt": "The place of death of Leo Arons is",
    "target_new": "Berlin",
    "ground_truth": ["Munich"],
    "portability": {
        "Subject_Aliasing": [
            {"prompt": "Martin Arons died in", "ground_truth": [["Berlin", "Berlin, Germany"]]}
        ],
        "Reasoning": [{"prompt": "He died in a city of", "ground_truth": [["Germany"]]}],
    },
    "locality": {"Relation_Specificity": [{"prompt": "Is a", "ground_truth": [["physicist"]]}]},
}
QUERY = {"prompt": "Prince died in", "answers": [{"value": "Berlin", "aliases": ["Bärlin"]}]}
TEST = {"test_queries": [QUERY], "test_condition": "OR", "condition_queries": []}
RIPPLE = {"edit": {"subject_id": "Q1"}, "Subject_Aliasing": [TEST], "Forgetfulness": [TEST]}


FORGET = [("forget", "plain"), ("forget", "reworded")]
NEW = [("new object", "plain"), ("new object", "reworded")]
ILLINOIS, MICHIGAN = "Illinois Institute of Technology", "University of Michigan"
LAYOUTS = {
    "ROME": (
        ROME,
        dict.fromkeys([*FORGET, ("neighbour", "plain")], "French") | dict.fromkeys(NEW, "English"),
    ),
    "zsRE": (
        ZSRE,
        dict.fromkeys(FORGET, ILLINOIS)
        | dict.fromkeys(NEW, MICHIGAN)
        | {("neighbour", "plain"): "Hugo Weaving"},
    ),
    "KnowEdit": (
        KNOWEDIT,
        {("forget", form): "Munich" for form in ("plain", "name")}
        | {("new object", "plain"): "Berlin", ("new object", "name"): "Berlin; Berlin, Germany"}
        | {("new object", "hop"): "Germany", ("neighbour", "Relation_Specificity"): "physicist"},
    ),
    "RippleEdits": (
        RIPPLE,
        dict.fromkeys([("new object", "name"), ("neighbour", "Forgetfulness")], "Berlin; Bärlin"),
    ),
}
"""A record of each layout of edits, and its answers by set and form."""


@pytest.mark.parametrize(("record", "expected"), LAYOUTS.values(), ids=LAYOUTS)
def test_layouts_of_edits(record, expected):
    assert {key: "; ".join(names) for key, (_, names) in by_form(record).items()} == expected


def test_questions_contain_the_subject_and_every_paraphrase():
    asked = list(edit_questions(ROME | {"paraphrase_prompts": ["a", "b"]}))

    assert sum(one.form == "reworded" for one in asked) == 4
    assert asked[0].question == "The mother tongue of Danielle Darrieux is"
    assert by_form(KNOWEDIT)["forget", "name"][0] == "Martin Arons died in"


def test_all_questions_about_an_edit_are_read():
    """Two hops of one edit are two facts of the form hop."""
    tests = [[{"test_queries": [QUERY | {"prompt": text}]}] for text in "ab"]
    record = {"Compositionality_I": tests[0], "Compositionality_II": tests[1]}

    rows = edit_rows(enumerate([record]))

    assert rows["form"].tolist() == ["hop", "hop"]
    assert rows["item"].is_unique


@pytest.mark.parametrize("record", [ZSRE, KNOWEDIT], ids=["zsRE", "KnowEdit"])
def test_edits_without_an_id_are_separate_facts(record):
    first = edit_rows(enumerate([record]))
    both = edit_rows(enumerate([record, record]))

    assert both["item"].nunique() == 2 * first["item"].nunique()


ROW = {"item": "a", "form": "plain", "question": "?", "references": "Paris; Paname"}


@pytest.mark.parametrize(
    ("rows", "error", "match"),
    [
        (
            [{"item": "a", "question": "?"}],
            *(DataError, "needs the columns form, references; its columns: item, question"),
        ),
        ([ROW, ROW], DataError, "'a' occurs twice under the form 'plain' in the set 'forget'"),
        *(
            ([ROW | {"references": cell}], RecordError, r"l:7: no accepted answer of fact 'a'")
            for cell in (None, "", " ; ", [], float("nan"))
        ),
        ([ROW | {"question": " "}], RecordError, r"rows\.jsonl:7: column 'question'"),
    ],
)
def test_invalid_tables_are_rejected(rows, error, match):
    with pytest.raises(error, match=match):
        table_rows([(PLACE, row) for row in rows])


@pytest.mark.parametrize("blank", [None, "", float("nan")])
def test_empty_cells_of_a_table_have_their_default(blank):
    rows = table_rows([(PLACE, ROW | {"set": blank, "subject_id": blank, "references": ["a; b"]})])

    assert rows.iloc[0][["set", "subject_id"]].tolist() == ["forget", "a"]
    assert rows["references"].iloc[0] == ["a; b"]
    assert table_rows([(PLACE, ROW)])["references"].iloc[0] == ["Paris", "Paname"]
