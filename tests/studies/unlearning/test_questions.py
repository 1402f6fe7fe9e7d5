import json

import pytest

from surface_consistency.errors import DataError, RecordError
from surface_consistency.rows.readers import Place
from surface_consistency.studies.unlearning.logs import tofu_answers
from surface_consistency.studies.unlearning.questions import (
    edit_questions,
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
    """Questions of an edit by set and form."""
    return {(one.set, one.form): (one.question, one.answers) for one in edit_questions(record)}


def test_tofu_is_asked_plainly_reworded_and_by_surname(forget01):
    counts = forget01["form"].value_counts()

    assert counts["plain"] == counts["reworded"] == 38
    assert 30 <= counts["name"] < 38
    assert forget01["subject_id"].nunique() == 2
    row = forget01[(forget01["fact_id"] == "forget 1") & (forget01["form"] == "name")].iloc[0]
    assert row["question"] == "What gender is author Al-Kuwaiti?"


def test_other_numbers_of_questions_than_tofus_have_no_persons():
    records = [{"question": f"Who is Ann Lee {n}?", "answer": "Ann"} for n in range(30)]

    rows = tofu_rows(records, dict.fromkeys(range(30), "Ann"), "forget")

    assert rows["subject_id"].nunique() == 30
    assert set(rows["form"]) == {"plain"}


def test_other_names_of_tofu_stand_where_the_full_name_stood(forget01):
    named = forget01[forget01["form"] == "name"]["question"]

    assert not named.str.contains("Basil Mahfouz|Nikolai").any()
    assert named.str.contains("Al-Kuwaiti|Abilov").all()


def test_long_queries_ask_about_other_subjects_first(forget01):
    rows = with_long(forget01)

    long = rows[rows["form"] == "long"].merge(
        forget01[forget01["form"] == "plain"], on="fact_id", suffixes=("", "_plain")
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
    rows = edit_rows(records)

    assert asked["new object", "plain"] == (
        "The mother tongue of Danielle Darrieux is",
        ("English",),
    )
    assert asked["forget", "plain"][1] == ("French",)
    assert asked["neighbour", "plain"] == ("Michel Rocard is a native speaker of", ("French",))
    assert rows.groupby(["set", "form"]).size().to_dict() == {
        ("forget", "plain"): 20,
        ("forget", "reworded"): 20,
        ("neighbour", "plain"): 20,
        ("new object", "plain"): 20,
        ("new object", "reworded"): 20,
    }


def test_counterfact_as_rome_has_it():
    """Made in the layout of ROME's file, around the first record of CounterFact."""
    record = {
        "case_id": 0,
        "requested_rewrite": {
            "prompt": "The mother tongue of {} is",
            "relation_id": "P103",
            "target_new": {"str": "English", "id": "Q1860"},
            "target_true": {"str": "French", "id": "Q150"},
            "subject": "Danielle Darrieux",
        },
        "paraphrase_prompts": ["Danielle Darrieux, a native", "Danielle Darrieux spoke"],
        "neighborhood_prompts": ["The mother tongue of Léon Blum is"],
        "attribute_prompts": [],
    }

    asked = list(edit_questions(record))

    assert by_form(record)["forget", "plain"] == (
        "The mother tongue of Danielle Darrieux is",
        ("French",),
    )
    assert sum(one.form == "reworded" for one in asked) == 4
    assert by_form(record)["neighbour", "plain"][1] == ("French",)


def test_zsre_by_its_own_names():
    record = {
        "subject": "Watts Humphrey",
        "src": "What university did Watts Humphrey attend?",
        "rephrase": "What university did Watts Humphrey take part in?",
        "alt": "University of Michigan",
        "answers": ["Illinois Institute of Technology"],
        "loc": "who played desmond doss father in hacksaw ridge",
        "loc_ans": "Hugo Weaving",
    }

    asked = by_form(record)

    assert asked["new object", "reworded"][1] == ("University of Michigan",)
    assert asked["forget", "plain"][1] == ("Illinois Institute of Technology",)
    assert asked["neighbour", "plain"][1] == ("Hugo Weaving",)


def test_knowedit_asks_other_names_hops_and_neighbours():
    record = {
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
        "locality": {
            "Relation_Specificity": [{"prompt": "Arons was a", "ground_truth": [["physicist"]]}]
        },
    }

    asked = by_form(record)

    assert asked["new object", "name"][1] == ("Berlin", "Berlin, Germany")
    assert asked["forget", "name"] == ("Martin Arons died in", ("Munich",))
    assert asked["new object", "hop"][1] == ("Germany",)
    assert ("forget", "hop") not in asked
    assert asked["neighbour", "Relation_Specificity"][1] == ("physicist",)


def test_rippleedits_has_aliases_of_answers():
    query = {"prompt": "Prince died in", "answers": [{"value": "Berlin", "aliases": ["Bärlin"]}]}
    test = {"test_queries": [query], "test_condition": "OR", "condition_queries": []}
    record = {"edit": {"subject_id": "Q1"}, "Subject_Aliasing": [test], "Forgetfulness": [test]}

    asked = by_form(record)

    assert asked["new object", "name"] == ("Prince died in", ("Berlin", "Bärlin"))
    assert asked["neighbour", "Forgetfulness"][1] == ("Berlin", "Bärlin")


def test_no_question_about_an_edit_is_lost():
    """Two hops of one edit are two facts of the form hop."""
    queries = [{"prompt": text, "answers": [{"value": "x", "aliases": []}]} for text in "ab"]
    tests = [[{"test_queries": [query]}] for query in queries]
    record = {"Compositionality_I": tests[0], "Compositionality_II": tests[1]}

    rows = edit_rows([record])

    assert rows["form"].tolist() == ["hop", "hop"]
    assert rows["fact_id"].is_unique


def test_table_of_anyone_needs_facts_and_forms():
    with pytest.raises(
        DataError, match="needs the columns answers, form besides fact_id, question"
    ):
        table_rows([(PLACE, {"fact_id": "a", "question": "?"})])


ROW = {"fact_id": "a", "form": "plain", "question": "?", "answers": "Paris; Paname"}


def test_table_of_anyone_has_a_form_once():
    row = (PLACE, ROW)

    assert table_rows([row])["answers"].iloc[0] == ["Paris", "Paname"]
    with pytest.raises(
        DataError, match="'a' stands twice under the form 'plain' in the set 'forget'"
    ):
        table_rows([row, row])


@pytest.mark.parametrize("blank", [None, "", float("nan")])
def test_empty_cells_of_a_table_have_their_default(blank):
    rows = table_rows([(PLACE, ROW | {"set": blank, "subject_id": blank, "answers": ["a; b"]})])

    assert rows.iloc[0][["set", "subject_id"]].tolist() == ["forget", "a"]
    assert rows["answers"].iloc[0] == ["a; b"]


@pytest.mark.parametrize("cell", [None, "", " ; ", [], float("nan")])
def test_a_fact_without_an_answer_is_refused(cell):
    with pytest.raises(RecordError, match=r"rows\.jsonl:7: no accepted answer of fact 'a'"):
        table_rows([(PLACE, ROW | {"answers": cell})])


def test_a_fact_without_a_question_is_refused():
    with pytest.raises(RecordError, match=r"rows\.jsonl:7: column 'question'"):
        table_rows([(PLACE, ROW | {"question": " "})])
