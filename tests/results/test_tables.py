"""Plain tables of results: long, wide, and what their columns may be called."""

import csv
import json
from pathlib import Path

import datasets
import hypothesis
import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest

from surface_consistency.errors import ColumnNotFoundError, DataError, RecordError
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.frame import read_results
from surface_consistency.results.tables import content_of, number_of

ROWS = [
    {"item": "007", "model": "a", "correct": 1, "topic": "x"},
    {"item": "NA", "model": "a", "correct": 0, "topic": "y"},
    {"item": "007", "model": "b", "correct": None, "topic": "x"},
]


def written(path, rows):
    """Write rows as the kind of file that the path names."""
    frame = pd.DataFrame(rows)
    kind = path.suffix
    if kind == ".parquet":
        frame.to_parquet(path)
    elif kind in (".csv", ".tsv"):
        frame.to_csv(path, index=False, sep="," if kind == ".csv" else "\t")
    elif kind == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    return path


def said(results, *columns):
    """The rows of some columns, NaN as None."""
    frame = results.frame[list(columns)].astype(object)
    return [tuple(row) for row in frame.where(frame.notna(), None).to_numpy().tolist()]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.json", "t.parquet"])
def test_every_kind_of_file_says_the_same(tmp_path, name):
    results = read_results(written(tmp_path / name, ROWS))

    assert said(results, "item", "model", "metric", "score", "topic") == [
        ("007", "a", "correct", 1.0, "x"),
        ("NA", "a", "correct", 0.0, "y"),
        ("007", "b", "correct", None, "x"),
    ]


@pytest.mark.parametrize("make", [list, pd.DataFrame, datasets.Dataset.from_list, iter])
def test_rows_in_memory_say_the_same(make):
    results = read_results(make(ROWS))

    assert said(results, "item", "model", "score")[0] == ("007", "a", 1.0)
    assert set(results.frame["file"]) == {"rows"}


def test_a_saved_data_set_is_read(tmp_path):
    datasets.Dataset.from_list(ROWS).save_to_disk(tmp_path / "set")

    assert said(read_results(tmp_path / "set"), "item", "model") == [
        ("007", "a"),
        ("NA", "a"),
        ("007", "b"),
    ]


def test_packed_tables_are_read_as_others(tmp_path):
    pd.DataFrame(ROWS).to_csv(tmp_path / "t.csv.gz", index=False)

    assert len(read_results(tmp_path / "t.csv.gz").frame) == 3


CELLS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), min_size=1)


@hypothesis.given(st.lists(st.tuples(CELLS, st.sampled_from(["0", "1", ""])), min_size=1))
def test_reading_by_columns_gives_what_the_csv_module_reads(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["item", "repeat", "correct"])
        lines.writerows((item, n, cell) for n, (item, cell) in enumerate(rows))

    frame = read_results(path).frame

    with open(path, encoding="utf-8", newline="") as file:
        own = list(csv.DictReader(file))
    assert frame["item"].tolist() == [row["item"] for row in own]
    scores = [float(row["correct"] or "nan") for row in own]
    np.testing.assert_array_equal(frame["score"], scores)


def test_a_column_for_each_model_is_told_by_its_verdicts_and_said():
    results = read_results(
        [{"fact": "f1", "gpt": 1, "llama": 0}, {"fact": "f2", "gpt": 0, "llama": 0}]
    )

    assert said(results, "item", "model", "score") == [
        ("f1", "gpt", 1.0),
        ("f2", "gpt", 0.0),
        ("f1", "llama", 0.0),
        ("f2", "llama", 0.0),
    ]
    assert "columns gpt, llama hold verdicts and are taken for a model each" in results.notes[0]


def test_columns_of_scores_may_be_models_or_metrics_so_that_is_asked():
    rows = [{"fact": "f1", "gpt": 0.3, "llama": 0.7}]

    with pytest.raises(DataError, match=r"gpt, llama could .* metrics by `metrics`, or.* `label`"):
        read_results(rows)
    wide = read_results(rows, ResultColumns(label=["gpt", "llama"]))
    long = read_results(rows, ResultColumns(metrics=["gpt", "llama"]))
    assert said(wide, "model", "metric", "score") == [
        ("gpt", "score", 0.3),
        ("llama", "score", 0.7),
    ]
    assert said(long, "model", "metric", "score") == [("rows", "gpt", 0.3), ("rows", "llama", 0.7)]


@pytest.mark.parametrize("name", ["prompt_id", "question_id", "problem_idx", "index", "prompt"])
def test_items_are_found_by_the_names_that_they_usually_have(name):
    frame = pd.DataFrame({name: ["a", "b"], "other": ["c", "c"], "correct": [1, 0]})

    assert read_results(frame).frame["item"].tolist() == ["a", "b"]


@pytest.mark.parametrize("name", ["doc_id", "idx", "index"])
def test_the_number_of_a_prompt_names_no_item_where_another_column_does(name):
    """It is often that of a template."""
    frame = pd.DataFrame({"prompt_id": [0, 0], name: ["a", "b"], "correct": [1, 1]})

    assert read_results(frame).frame["item"].tolist() == ["a", "b"]


def test_a_column_may_name_the_metric_of_its_row():
    rows = [
        {"item": "q1", "model": "m", "metric": "em", "score": 1},
        {"item": "q1", "model": "m", "metric": "f1", "score": 0.5},
    ]

    assert said(read_results(rows), "metric", "score") == [("em", 1.0), ("f1", 0.5)]
    one = read_results(rows, ResultColumns(metrics=["f1"]))
    assert said(one, "metric", "score") == [("f1", 0.5)]


def test_answers_and_references_are_read_beside_scores():
    rows = [
        {
            "id": 1,
            "question": "Who?",
            "prediction": "I",
            "possible_answers": '["I", "me"]',
            "em": 1,
        },
        {"id": 2, "question": "What?", "prediction": "", "possible_answers": "It", "em": 0},
    ]

    results = read_results(rows)

    assert said(results, "item", "prediction", "references") == [
        ("1", "I", ("I", "me")),
        ("2", "", ("It",)),
    ]
    assert results.frame["content"].nunique() == 2


def test_one_item_that_is_two_questions_is_refused():
    rows = [
        {"item": "1", "model": "a", "question": "Who?", "correct": 1},
        {"item": "1", "model": "b", "question": "What?", "correct": 1},
    ]

    with pytest.raises(DataError, match=r"'1', is 'Who\?' .* in one row and 'What\?' .* by `form`"):
        read_results(rows)


def test_forms_of_an_item_may_ask_differently():
    rows = [
        {"item": "1", "form": "a", "question": "Who?", "correct": 1},
        {"item": "1", "form": "b", "question": "What?", "correct": 1},
    ]

    results = read_results(rows)

    assert said(results, "item", "form") == [("1", "a"), ("1", "b")]
    assert results.clusters == ("item",)


def test_rows_of_one_sample_that_differ_are_refused_with_what_tells_them_apart():
    rows = [{"item": "1", "correct": 1}, {"item": "1", "correct": 0}]

    with pytest.raises(DataError, match=r"more than once with score 1 and 0 .*by `repeat`, "):
        read_results(rows)
    read = read_results([row | {"seed": n} for n, row in enumerate(rows, 41)])
    assert said(read, "repeat", "score") == [(41, 1.0), (42, 0.0)]


def test_an_item_may_be_several_columns_and_a_cluster_one_of_them():
    rows = [{"fact": "f", "template": t, "correct": 1} for t in ("x", "y")]
    given = ResultColumns(item=["fact", "template"], cluster=["fact"])

    results = read_results(rows, given)

    assert said(results, "item", "fact") == [("f | x", "f"), ("f | y", "f")]
    assert results.clusters == ("fact",)


@pytest.mark.parametrize("role", ["model", "score", "form", "item", "cluster", "metrics"])
def test_a_named_column_that_is_not_there_is_refused_by_what_it_is_named_for(role):
    name = "nobody" if role in ("model", "score", "form") else ["nobody"]

    with pytest.raises(ColumnNotFoundError, match=f"no column 'nobody', named by `{role}`; saw"):
        read_results(ROWS, ResultColumns.model_validate({role: name}))


def test_an_item_without_a_name_is_refused_by_its_row():
    with pytest.raises(RecordError, match="row 2 names no item in column 'item'"):
        read_results([{"item": "1", "correct": 1}, {"item": "", "correct": 1}])


def test_further_columns_of_a_name_of_the_frame_get_another():
    frame = read_results([{"item": "1", "correct": 1, "file": "x.txt", "em": "no"}]).frame

    assert frame["row.file"].tolist() == ["x.txt"]


@pytest.mark.parametrize(
    ("value", "number"),
    [(True, 1.0), (" False ", 0.0), ("0.5", 0.5), (3, 3.0), ("yes", None), ([1, 0], None)],
)
def test_scores_are_numbers_and_verdicts(value, number):
    assert number_of(value) == number


@pytest.mark.parametrize("value", [None, "", float("nan"), pd.NA])
def test_what_is_no_score_is_missing(value):
    assert np.isnan(number_of(value))


def test_an_object_is_no_score():
    with pytest.raises(RecordError, match=r"row 1 of column 'score' holds \{'a': 1\}, which is"):
        read_results([{"item": "1", "score": {"a": 1}}])


def test_columns_of_lists_and_objects_are_no_further_columns():
    row = {"item": "1", "correct": 1, "references": ["a", "b"], "meta": {"a": 1}, "tags": ["x"]}

    frame = read_results([row]).frame

    assert frame["references"].tolist() == [("a", "b")]
    assert frame.columns[-1] == "file"


@pytest.mark.parametrize("word", ["nan", "inf", "-Infinity"])
def test_words_for_no_number_are_refused(word):
    with pytest.raises(RecordError, match=rf"row 1 of column 'correct' holds '{word}'"):
        read_results([{"item": "1", "correct": word}])


def test_scores_of_any_scale_are_left_as_they_are():
    assert said(read_results([{"item": "1", "score": 73.5}]), "score") == [(73.5,)]


def test_a_table_whose_rows_are_ragged_names_the_line(tmp_path):
    path = Path(tmp_path / "t.csv")
    path.write_text("item,correct\nq1,1\nq2\n")

    with pytest.raises(RecordError, match=r"t\.csv:3"):
        read_results(path)


def test_hashes_of_what_was_asked_are_the_same_everywhere():
    """Files that are read on two machines are held against each other by these."""
    hashed = content_of(pd.Series(["Who?", None]), pd.Series([("I", "me"), ()]), 2)

    assert hashed.tolist() == [16468984067500016953, 0]


@pytest.mark.parametrize("dtype", ["category", "string", object])
def test_columns_of_any_type_are_read(dtype):
    frame = pd.DataFrame(ROWS).astype({"item": dtype, "model": dtype, "topic": dtype})

    assert said(read_results(frame), "item", "model", "topic")[1] == ("NA", "a", "y")
