"""Stored predictions in the layouts that people have."""

import json

import pytest

from surface_consistency.data.redirectqa import load_sample
from surface_consistency.data.redirectqa_release import hub_rows
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RecordError,
    SourceNotFoundError,
)
from surface_consistency.inference.predictions import (
    ID_COLUMNS,
    TEXT_COLUMNS,
    read_predictions,
)
from surface_consistency.schemas import Generation, write_jsonl


def lm_eval_sample(text="London", *, doc=None, arguments=None, **fields):
    """One line of `samples_*.jsonl`, with the fields of lm-evaluation-harness 0.4."""
    return {
        "doc_id": 0,
        "doc": {"id": "q1", "question": "Capital of England?"} if doc is None else doc,
        "target": "London",
        "arguments": arguments
        or {"gen_args_0": {"arg_0": "Q: Capital of England? A:", "arg_1": {"until": ["\n"]}}},
        "resps": [[text]],
        "filtered_resps": [text.strip()],
        "doc_hash": "1f" * 32,
        "exact_match": 1.0,
    } | fields


def write_lines(path, *items):
    """Write JSON lines; a string is written as it is."""
    lines = [item if isinstance(item, str) else json.dumps(item) for item in items]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("id_column", ID_COLUMNS)
@pytest.mark.parametrize("text_column", TEXT_COLUMNS)
def test_jsonl_finds_the_usual_columns(tmp_path, id_column, text_column):
    row = {"model": "m", id_column: "q1", text_column: " London\nQ:"}

    path = write_lines(tmp_path / "p.jsonl", row)

    assert read_predictions(path) == {"q1": " London\nQ:"}


def test_jsonl_takes_named_columns_and_whole_numbers(tmp_path):
    rows = [{"id": "x", "row": 7, "text": "no", "greedy": "London"}]

    path = write_lines(tmp_path / "p.jsonl", *rows)

    assert read_predictions(path, id_column="row", text_column="greedy") == {"7": "London"}


def test_jsonl_skips_blank_lines_byte_order_mark_and_null_texts(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text('\ufeff{"id": "a", "text": "x"}\n\n{"id": "b", "text": null}\n', "utf-8")

    assert read_predictions(path) == {"a": "x"}


def test_a_run_log_is_read_as_predictions(tmp_path):
    """Generations that this package wrote can be scored as anyone's."""
    write_jsonl(tmp_path / "log.jsonl", [Generation(prompt_id="q1", text="London", prompt_key="k")])

    assert read_predictions(tmp_path / "log.jsonl") == {"q1": "London"}


def test_csv_cells_are_text_whatever_they_say(tmp_path):
    """ "NA", "null" and "nan" are answers, "" is an empty one, 007 keeps its zeros."""
    path = tmp_path / "p.csv"
    path.write_text(
        'question_id,prediction\r\n007,NA\r\n1,null\r\n2,nan\r\n3,\r\n4,"a, ""b""\nc"\r\n',
        encoding="utf-8-sig",
    )

    expected = {"007": "NA", "1": "null", "2": "nan", "3": "", "4": 'a, "b"\nc'}
    assert read_predictions(path) == expected


def test_tsv_is_cut_at_tabs(tmp_path):
    (tmp_path / "p.tsv").write_text("id\toutput\nq1\tLondon, England\n")

    assert read_predictions(tmp_path / "p.tsv") == {"q1": "London, England"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"q1": " London\n"}),
        ({"doc": {"question_id": 12}}, {"12": " London\n"}),
        ({"doc": {"question": "Capital of England?"}}, {"Capital of England?": " London\n"}),
        ({"doc": {"question": ["?"]}}, {"Q: Capital of England? A:": " London\n"}),
        ({"doc": {}, "arguments": [["Q: hm? A:", {"until": ["\n"]}]]}, {"Q: hm? A:": " London\n"}),
    ],
)
def test_lm_eval_samples_are_keyed_by_document_or_prompt(tmp_path, fields, expected):
    path = write_lines(tmp_path / "samples_t.jsonl", lm_eval_sample(" London\n", **fields))

    assert read_predictions(path) == expected


def test_lm_eval_samples_of_hub_rows_are_keyed_by_question(tmp_path):
    """Rows in the release's columns, asked after demonstrations, go by the question that is asked.

    The harness knows them by `triplet_id`, which all names and wordings of a fact share.
    """
    questions = load_sample().questions[:40]
    shots = "Q: What sport does Pelé play? A: football\n\n"
    lines = [
        lm_eval_sample(
            f" {row.object_surface}\n",
            doc=row.model_dump(mode="json"),
            arguments={"gen_args_0": {"arg_0": f"{shots}Q: {row.question} A:", "arg_1": {}}},
            doc_id=number,
        )
        for number, row in enumerate(hub_rows(questions))
    ]

    found = read_predictions(write_lines(tmp_path / "samples_redirectqa.jsonl", *lines))

    assert found == {item.question: f" {item.triple.object.name}\n" for item in questions}


def test_lm_eval_samples_take_named_columns(tmp_path):
    sample = lm_eval_sample(" London\n", doc={"triplet": 5})

    path = write_lines(tmp_path / "samples_t.jsonl", sample)

    found = read_predictions(path, id_column="triplet", text_column="filtered_resps")
    assert found == {"5": "London"}


def test_lm_eval_samples_of_two_filters_agree(tmp_path):
    """The harness writes a line for each filter; the unfiltered response is the same."""
    lines = [
        lm_eval_sample(" 42\n", filter="strict", filtered_resps=["42"]),
        lm_eval_sample(" 42\n", filter="loose", filtered_resps=["[invalid]"]),
    ]

    path = write_lines(tmp_path / "samples_t.jsonl", *lines)

    assert read_predictions(path) == {"q1": " 42\n"}


def test_lm_eval_rejects_loglikelihoods(tmp_path):
    path = write_lines(tmp_path / "s.jsonl", lm_eval_sample(resps=[[[-1.5, False]]]))

    with pytest.raises(RecordError, match=r"s\.jsonl:1: field 'resps' holds no generated text"):
        read_predictions(path)


def test_lm_eval_rejects_samples_without_any_identifier(tmp_path):
    path = write_lines(tmp_path / "s.jsonl", lm_eval_sample(doc={}, arguments={"x": 1}))

    with pytest.raises(RecordError, match="neither id, question_id nor question and `arg"):
        read_predictions(path)


def test_lm_eval_rejects_a_missing_column_of_the_document(tmp_path):
    path = write_lines(tmp_path / "s.jsonl", lm_eval_sample())

    with pytest.raises(ColumnNotFoundError, match="no field 'qid' in `doc`; saw id, question"):
        read_predictions(path, id_column="qid")


def test_lm_eval_rejects_lines_of_another_kind(tmp_path):
    path = write_lines(tmp_path / "s.jsonl", lm_eval_sample(), {"id": "q2", "text": "x"})

    with pytest.raises(RecordError, match=r"s\.jsonl:2: not a sample of lm-evaluation-harness"):
        read_predictions(path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"nr": 1, "text": "x"}, r"the identifier; looked for id, question_id, .*; saw nr, text"),
        ({"id": 1, "said": "x"}, r"the prediction; looked for prediction, text, .*; saw id, said"),
    ],
)
def test_predictions_reject_missing_columns(tmp_path, row, message):
    path = write_lines(tmp_path / "p.jsonl", row)

    with pytest.raises(ColumnNotFoundError, match=message):
        read_predictions(path)


def test_predictions_reject_a_named_column_that_is_missing(tmp_path):
    path = write_lines(tmp_path / "p.jsonl", {"id": 1, "text": "x"})

    with pytest.raises(ColumnNotFoundError, match="looked for qid; saw id, text; name it by `id_c"):
        read_predictions(path, id_column="qid")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "b", "text": "x"', "not a line of JSON"),
        ("[1, 2]", r"expected an object with named fields, got \[1, 2\]"),
        ('{"text": "x"}', "no field 'id'; saw text"),
        ('{"id": null, "text": "x"}', "an identifier is a string or a whole number, got None"),
        ('{"id": 1.5, "text": "x"}', "an identifier is a string or a whole number, got 1.5"),
        ('{"id": "b", "text": 5}', "a prediction is a string, got 5"),
    ],
)
def test_jsonl_rejects_broken_lines(tmp_path, line, message):
    path = write_lines(tmp_path / "p.jsonl", {"id": "a", "text": "x"}, line)

    with pytest.raises(RecordError, match=rf"p\.jsonl:2: .*{message}"):
        read_predictions(path)


@pytest.mark.parametrize(
    "line",
    [
        r'{"id": "q1", "text": "Malm\ud800ö \ud83d\ude00"}',
        r'{"doc": {"id": "q1"}, "resps": [["Malm\ud800ö \ud83d\ude00"]]}',
    ],
)
def test_predictions_replace_lone_surrogates(tmp_path, line):
    """JSON can escape half a pair; what is read can be written, and whole pairs stay."""
    path = write_lines(tmp_path / "p.jsonl", line)

    assert read_predictions(path) == {"q1": "Malm?ö \U0001f600"}


def test_jsonl_rejects_other_encodings(tmp_path):
    (tmp_path / "p.jsonl").write_bytes(b'{"id": "a", "text": "Malm\xf6"}\n')

    with pytest.raises(RecordError, match=r"p\.jsonl:1: not a line of JSON"):
        read_predictions(tmp_path / "p.jsonl")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,text\na,x\nb\n", r":3: 1 cells under a header of 2"),
        ('id,text\na,"x\ny"\nb,c,d\n', r":4: 3 cells under a header of 2"),
        ("id,text,id\na,x,b\n", r":1: the header names column 'id' twice"),
        ('id,text\na,"x\n', "not readable as UTF-8 text with delimiter ','"),
    ],
)
def test_csv_rejects_broken_rows(tmp_path, text, message):
    (tmp_path / "p.csv").write_text(text)

    with pytest.raises(RecordError, match=rf"p\.csv.*{message}"):
        read_predictions(tmp_path / "p.csv")


def test_predictions_reject_two_answers_to_one_question(tmp_path):
    path = write_lines(
        tmp_path / "p.jsonl",
        {"id": "a", "text": "x"},
        {"id": "a", "text": "x"},
        {"id": "a", "text": "y"},
    )

    with pytest.raises(RecordError, match=r"p\.jsonl:3: a second .* 'a', other .*p\.jsonl:1"):
        read_predictions(path)


@pytest.mark.parametrize(
    ("name", "text"), [("p.jsonl", "\n"), ("p.csv", ""), ("q.csv", "id,text\n")]
)
def test_predictions_reject_empty_files(tmp_path, name, text):
    (tmp_path / name).write_text(text)

    with pytest.raises(DataError, match="holds no predictions; it is empty"):
        read_predictions(tmp_path / name)


def test_predictions_reject_unknown_kinds_and_missing_files(tmp_path):
    (tmp_path / "p.xlsx").write_bytes(b"PK")

    with pytest.raises(DataError, match=r"unknown kind of file '\.xlsx'; save .* \.csv, \.jsonl"):
        read_predictions(tmp_path / "p.xlsx")
    with pytest.raises(SourceNotFoundError, match="expected stored predictions there"):
        read_predictions(tmp_path / "none.csv")
