"""Plain tables of results, long and wide, and the names of their columns."""

import csv
import gzip
import math

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
from tests.results.kinds import written

ROWS = [
    {"item": "007", "model": "a", "correct": 1, "topic": "x"},
    {"item": "NA", "model": "a", "correct": 0, "topic": "y"},
    {"item": "007", "model": "b", "correct": None, "topic": "x"},
]


def table(results, *columns):
    """The rows of some columns, NaN as None."""
    frame = results.frame[list(columns)].astype(object)
    return [tuple(row) for row in frame.where(frame.notna(), None).to_numpy().tolist()]


@pytest.mark.parametrize(
    "name", ["t.csv", "t.csv.gz", "t.tsv", "t.jsonl", "t.json", "t.parquet", "t.folder"]
)
def test_every_kind_of_file_gives_the_same_results(tmp_path, name):
    results = read_results(written(tmp_path / name, ROWS))

    assert table(results, "item", "model", "metric", "score", "topic") == [
        ("007", "a", "correct", 1.0, "x"),
        ("NA", "a", "correct", 0.0, "y"),
        ("007", "b", "correct", None, "x"),
    ]


@pytest.mark.parametrize(
    "make",
    [
        *(list, pd.DataFrame, datasets.Dataset.from_list, iter),
        *(lambda rows, kind=kind: pd.DataFrame(rows).astype({"item": kind, "model": kind})
          for kind in ("category", "string", object)),
    ],
)  # fmt: skip
def test_rows_in_memory_give_the_same_results(make):
    results = read_results(make(ROWS))

    assert table(results, "item", "model", "score")[:2] == [("007", "a", 1.0), ("NA", "a", 0.0)]
    assert set(results.frame["file"]) == {"rows"}


CELLS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), min_size=1)


@hypothesis.given(st.lists(st.tuples(CELLS, st.sampled_from(["0", "1", ""])), min_size=1))
def test_reading_by_columns_agrees_with_the_csv_module(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["item", "repeat", "correct"])
        lines.writerows((item, n, cell) for n, (item, cell) in enumerate(rows))

    frame = read_results(path).frame

    with open(path, encoding="utf-8", newline="") as file:
        expected = list(csv.DictReader(file))
    assert frame["item"].tolist() == [row["item"] for row in expected]
    scores = [float(row["correct"] or "nan") for row in expected]
    np.testing.assert_array_equal(frame["score"], scores)


def test_columns_of_models_are_detected_by_their_labels_and_reported():
    rows = [{"fact": "f1", "gpt": 1, "llama": 0}, {"fact": "f2", "gpt": 0, "llama": 0}]
    results = read_results(rows)

    cells = zip(["f1", "f2"] * 2, ["gpt", "gpt", "llama", "llama"], [1, 0, 0, 0], strict=True)
    assert table(results, "item", "model", "score") == [*cells]
    assert "columns gpt, llama contain only 0 and 1; each is read as one model" in results.notes[0]


def test_columns_of_scores_require_names_or_metrics():
    rows, names = [{"fact": "f1", "gpt": 0.3, "llama": 0.7}], ["gpt", "llama"]
    wide = read_results(rows, ResultColumns(names=names))
    long = read_results(rows, ResultColumns(metrics=names))

    scored = {("gpt", 0.3), ("llama", 0.7)}
    assert {*table(wide, "model", "score")} == {*table(long, "metric", "score")} == scored
    assert {*table(wide, "metric"), *table(long, "model")} == {("score",), ("rows",)}
    with pytest.raises(DataError, match=r"gpt, llama could .* metrics by `metrics`, or.* `names`"):
        read_results(rows)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        *((name, "other") for name in ("prompt_id", "question_id", "problem_idx", "prompt")),
        # The number of a prompt is often that of a template.
        *((name, "prompt_id") for name in ("doc_id", "idx", "index")),
    ],
)
def test_items_are_found_by_their_usual_names(name, other):
    frame = pd.DataFrame({other: [0, 0], name: ["a", "b"], "correct": [1, 0]})

    assert read_results(frame).frame["item"].tolist() == ["a", "b"]


def test_metric_column_gives_the_metric_of_each_row():
    scores = [("em", 1.0), ("f1", 0.5)]
    rows = [{"item": "q1", "model": "m", "metric": name, "score": n} for name, n in scores]

    assert table(read_results(rows), "metric", "score") == scores
    assert table(read_results(rows, ResultColumns(metrics=["f1"])), "metric", "score") == scores[1:]


def test_answers_and_references_are_read_with_scores():
    results = read_results(
        [
            {
                "id": 1,
                "question": "Who?",
                "prediction": "I",
                "possible_answers": '["I", "me"]',
                "em": 1,
            },
            {"id": 2, "question": "What?", "prediction": "", "possible_answers": "It", "em": 0},
        ]
    )

    answers = table(results, "item", "prediction", "references")
    assert answers == [("1", "I", ("I", "me")), ("2", "", ("It",))]
    assert results.frame["content"].nunique() == 2


def test_forms_of_an_item_may_have_different_questions():
    asked = [("a", "Who?"), ("b", "What?")]
    results = read_results(
        [{"item": "1", "form": form, "question": text, "correct": 1} for form, text in asked]
    )

    assert table(results, "item", "form", "question") == [("1", *one) for one in asked]
    assert results.clusters == ("item",)


ONE = {"item": "1", "model": "a", "question": "Who?", "correct": 1}
OTHER = ONE | {"model": "b", "question": "What?"}


@pytest.mark.parametrize(
    ("error", "rows", "message"),
    [
        (DataError, [ONE, ONE | {"correct": 0}], "more than once with score 1 and 0 .*by `repeat`"),
        (DataError, [ONE, OTHER], r"'1', is 'Who\?' .* in one row and 'What\?' .* by `form`"),
        (RecordError, [ONE, ONE | {"item": ""}], "row 2 has no item in column 'item'"),
        (RecordError, [ONE | {"correct": {"a": 1}}], r"'correct' contains \{'a': 1\}, which"),
        (RecordError, [ONE | {"correct": "inf"}], "row 1 of column 'correct' contains 'inf'"),
        (RecordError, [ONE | {"correct": "-Infinity"}], "of column 'correct' contains '-Infinity'"),
    ],
)
def test_rows_that_contradict_each_other_or_lack_a_score_raise_an_error(error, rows, message):
    with pytest.raises(error, match=message):
        read_results(rows)


def test_seed_column_gives_the_repeats_of_an_item():
    rows = [{"item": "1", "correct": 1 - n, "seed": n + 41} for n in range(2)]

    assert table(read_results(rows), "repeat", "score") == [(41, 1.0), (42, 0.0)]


def test_item_of_several_columns_can_be_clustered_by_one_of_them():
    rows = [{"fact": "f", "template": t, "correct": 1} for t in ("x", "y")]
    given = ResultColumns(item=["fact", "template"], cluster=["fact"])

    results = read_results(rows, given)

    assert table(results, "item", "fact") == [("f | x", "f"), ("f | y", "f")]
    assert results.clusters == ("fact",)


@pytest.mark.parametrize("role", ["model", "score", "form", "item", "cluster", "metrics"])
def test_error_for_a_missing_column_contains_the_role(role):
    name = "nobody" if role in ("model", "score", "form") else ["nobody"]

    with pytest.raises(
        ColumnNotFoundError, match=f"column 'nobody' of `{role}` not found. Columns: "
    ):
        read_results(ROWS, ResultColumns.model_validate({role: name}))


def test_further_columns_with_a_name_of_the_frame_are_renamed():
    frame = read_results([{"item": "1", "correct": 1, "file": "x.txt", "em": "no"}]).frame

    assert frame["row.file"].tolist() == ["x.txt"]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        *[(True, 1.0), (" False ", 0.0), ("0.5", 0.5), (73.5, 73.5), ("yes", None), ([1, 0], None)],
        *[("-0.25", -0.25), (" 1e-05", 1e-05), ("1_000", None), ("75%", None), ("inf", None)],
        *((value, math.nan) for value in (None, "", math.nan, pd.NA)),
    ],
)
def test_number_of_reads_scores_and_labels_as_numbers(value, number):
    assert number_of(value) == pytest.approx(number, nan_ok=True)


def test_columns_of_lists_of_labels_are_further_columns_and_those_of_objects_are_not():
    row = {"item": "1", "correct": 1, "references": ["a", "b"], "meta": {"a": 1}, "tags": ["x"]}
    others = {"item": "2", "tags": "y", "vectors": [0.5] * 101, "nested": [["x"]]}

    results = read_results([row, {**row, **others}])

    assert results.frame["references"].tolist() == [("a", "b")] * 2
    assert results.frame.columns[-2:].tolist() == ["file", "tags"]
    assert results.frame["tags"].tolist() == [["x"], "y"]
    assert results.nested == ("meta", "vectors", "nested")


def test_hashes_of_questions_do_not_depend_on_the_machine():
    hashed = content_of(pd.Series(["Who?", None]), pd.Series([("I", "me"), ()]), 2)

    assert hashed.tolist() == [16468984067500016953, 0]


def test_several_columns_of_numbers_without_names_raise_an_error():
    """The remedy of the message works, and costs are not among the columns."""
    rows = [
        {"model": model, "item": n, "n_words": 9, "quality": n / 2, "latency": 0.1, "price": 1}
        for n in range(2) for model in "ab"
    ]  # fmt: skip

    with pytest.raises(
        DataError, match=r"columns n_words, quality could each contain .* `metrics`$"
    ):
        read_results(rows)
    named = read_results(rows, ResultColumns(metrics=("quality",)))
    assert named.frame["score"].tolist() == [0.0, 0.0, 0.5, 0.5]
    alone = [{name: row[name] for name in ("model", "item", "quality", "latency")} for row in rows]
    assert read_results(alone).frame["metric"].unique().tolist() == ["quality"]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        *(("gpt", [0, 1]), ("gpt", ["true", "false"]), ("bleu", [0.2, None]), ("wer", [0.4, 1.2])),
        *(("judge_score", [1, 10]), ("is_right", [0, 1]), ("perplexity", [12, 90])),
    ],
)
def test_only_numeric_column_is_read_as_the_score_and_reported(name, cells):
    read = read_results([{"id": n, name: cell} for n, cell in enumerate(cells)])

    assert read.frame["metric"].unique().tolist() == [name]
    assert read.notes == (f"rows: column {name!r} is read as the score",)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        *(("turn", [1, 1]), ("turn", [1, 2]), ("year", [1987, 2001]), ("id_number", [7, 8])),
        *(("length", [3, 90]), ("age", [30, 40]), ("is_hard", [0, 1]), ("confidence", [0.2, 0.9])),
        *(("rating", [1, 10]), ("match_id", [3, 4]), ("popularity", [0.1, 0.4])),
    ],
)
def test_numeric_column_that_may_be_a_property_of_items_is_not_the_score(name, cells):
    with pytest.raises(DataError, match=f"column '{name}' is the only column of numbers, and it "):
        read_results([{"id": n, name: cell} for n, cell in enumerate(cells)])


@pytest.mark.parametrize("flag", ["is_hard", "hasDate", "answerable", "Hard", "winner_tie"])
def test_wide_table_with_a_possible_property_of_items_raises_an_error(flag):
    rows = [{"id": n, "gpt": n % 2, "llama": 1, flag: n % 2} for n in range(4)]

    with pytest.raises(DataError, match=f"{flag} may be a property of the items; name the "):
        read_results(rows)


@pytest.mark.parametrize("names", [["gpt"], ["gpt", "llama"]])
def test_named_columns_are_the_models(names):
    rows = [{"id": n, "is_hard": 1, "gpt": 0, "llama": 0} for n in range(4)]
    frame = read_results(rows, ResultColumns(names=names)).frame

    assert list(frame["model"].unique()) == names
    assert (frame["score"] == 0).all()


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize(
    ("cell", "reads"),
    [
        ('"x, ""y""\nz"', 'x, "y"\nz'),
        ('""', "missing"),
        ('""""', '"'),
        ('x"y', 'x"y'),
        ('"x', None),
        ('"x"y', None),
        ('"x" ', None),
    ],
)
def test_quotes_within_cells_are_read_or_raise_an_error(tmp_path, cell, reads, suffix):
    path = tmp_path / f"t{suffix}"
    content = f'item,correct,note\n1,1,"a"\n2,0,{cell}\n3,1,b\n4,1,"c"'.encode()
    path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)

    if reads is None:
        with pytest.raises(RecordError, match=r"quote cells that .*close each quote"):
            read_results(path)
    else:
        notes = read_results(path).frame["note"].fillna("missing")
        assert notes.tolist() == ["a", reads, "b", "c"]
