"""The same predictions in every kind of file that people have, and what is wrong with others."""

import gzip
import json

import datasets
import pandas as pd
import pytest

from surface_consistency.errors import ColumnNotFoundError, DataError, RecordError
from surface_consistency.results.columns import PredictionSettings
from surface_consistency.results.frame import read_results
from surface_consistency.results.predictions import (
    QuestionIndex,
    read_predictions,
)

ROWS = [
    {"id": "q1", "prediction": "London"},
    {"id": "q2", "prediction": "NA"},
    {"id": "q3", "prediction": None},
]
ASKED = QuestionIndex(ids=["q1", "q2", "q3"], questions=["Capital?", "Symbol?", "Nobody?"])


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def save(path, rows):
    """Write rows in the format of a path."""
    name = path.name
    if name == "folder":
        datasets.Dataset.from_list(rows).save_to_disk(str(path))
    elif name.endswith(".parquet"):
        pd.DataFrame(rows).to_parquet(path)
    else:
        frame = pd.DataFrame(rows)
        text = {
            "jsonl": lambda: lines(rows),
            "json": lambda: json.dumps(rows, indent=1),
            "csv": lambda: frame.to_csv(index=False),
            "tsv": lambda: frame.to_csv(index=False, sep="\t"),
        }[name.removesuffix(".gz").rpartition(".")[2]]()
        data = text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    "name",
    [
        *("p.jsonl", "p.json", "p.csv", "p.tsv", "p.jsonl.gz", "p.json.gz", "p.csv.gz"),
        *("p.parquet", "folder"),
    ],
)
def test_every_kind_of_file_gives_the_same_answers(tmp_path, name):
    """A text "NA" stays one; what is null is no answer, save in CSV, where it is a blank."""
    read = read_predictions(save(tmp_path / name, ROWS))

    found = read.match(ASKED)
    assert found[:2] == ["London", "NA"]
    assert not found[2]


def chat(text, **more):
    return {"choices": [{"message": {"role": "assistant", "content": text}}]} | more


BODIES = {
    "chat": chat("London"),
    "completion": {"choices": [{"text": "London"}]},
    "responses": {
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "content": [{"type": "output_text", "text": "London"}]},
        ]
    },
    "parts": chat([{"type": "text", "text": "Lon"}, {"type": "text", "text": "don"}]),
}


@pytest.mark.parametrize("kind", BODIES)
def test_results_of_batches_go_by_their_custom_id(tmp_path, kind):
    """The id of the result itself is that of the batch; a failed request has no answer."""
    rows = [
        {
            "id": "batch_req_2",
            "custom_id": "q2",
            "response": {"status_code": 400, "body": {"error": {"message": "no"}}},
            "error": None,
        },
        {
            "id": "batch_req_1",
            "custom_id": "q1",
            "response": {"status_code": 200, "body": BODIES[kind]},
            "error": None,
        },
        {"id": "batch_req_3", "custom_id": "q3", "response": None, "error": {"code": "expired"}},
    ]

    found = read_predictions(save(tmp_path / "batch.jsonl", rows)).match(ASKED)

    assert found == ["London", None, None]


def test_a_result_of_another_form_is_named(tmp_path):
    row = {"custom_id": "q1", "response": {"body": {"data": []}}, "error": None}

    with pytest.raises(RecordError, match=r"b.jsonl:1: the body of the response holds no reply"):
        read_predictions(save(tmp_path / "b.jsonl", [row]))


def test_any_column_that_names_the_questions_is_taken(tmp_path):
    """`key` is another in every row and holds ids alone; `rank` is another too, but names none."""
    rows = [
        {"rank": n, "key": row["id"], "same": "q1", "prediction": row["prediction"]}
        for n, row in enumerate(ROWS)
    ]

    found = read_predictions(save(tmp_path / "p.csv", rows)).match(ASKED)

    assert found[:2] == ["London", "NA"]


def test_two_columns_that_could_name_the_questions_are_told(tmp_path):
    """One holds ids, the other texts: in another order they would give other verdicts."""
    texts = reversed(ASKED.questions)
    rows = [
        {"key": row["id"], "asks": text, "prediction": "x"}
        for row, text in zip(ROWS, texts, strict=True)
    ]
    path = save(tmp_path / "p.csv", rows)

    with pytest.raises(ColumnNotFoundError, match=r"'key', 'asks' could each name the questions"):
        read_predictions(path).match(ASKED)
    found = read_predictions(path, PredictionSettings(item=("key",))).match(ASKED)
    assert found == ["x", "x", "x"]


def test_a_column_with_a_stranger_names_nothing(tmp_path):
    """One value that is no question, and the column is not taken: rows might be of other data."""
    rows = [{"key": key, "prediction": "x"} for key in ("q1", "q2", "q9")]

    with pytest.raises(ColumnNotFoundError, match="no column names the questions"):
        read_predictions(save(tmp_path / "p.csv", rows)).match(ASKED)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_folder_of_several_splits_is_told(tmp_path):
    """The splits are named."""
    parts = {name: datasets.Dataset.from_list(ROWS) for name in ("dev", "test")}
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "both"))

    with pytest.raises(DataError, match=r"several splits; give the folder of one: .*dev, .*test"):
        read_predictions(tmp_path / "both")


@pytest.mark.parametrize("cut", [slice(0, -9), slice(3, None)])
def test_a_packed_file_that_is_broken_is_named(tmp_path, cut):
    """Cut off, or no gzip at all."""
    path = tmp_path / "p.jsonl.gz"
    path.write_bytes(gzip.compress(lines(ROWS * 50).encode())[cut])

    with pytest.raises(RecordError, match=r"p.jsonl.gz: cannot be unpacked"):
        read_predictions(path)


def test_a_list_of_other_things_is_named(tmp_path):
    (tmp_path / "p.json").write_text('[{"id": "q1", "prediction": "x"}, 3]')

    with pytest.raises(RecordError, match=r"p.json:2: an item .* is one JSON object"):
        read_predictions(tmp_path / "p.json")


WITHOUT_ANSWERS = {"per_instance_stats.json", "alpha_Forms_result.tsv", "beta_Forms_result.tsv"}
"""Files of scores alone: `read_results` reads them, and there is nothing to judge."""


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.SurfaceConsistencyWarning")
def test_answers_of_every_tool_are_those_that_are_compared(data_files):
    """What one reader refuses the other does, and the answers are equal, white space aside."""
    n_read, home = 0, data_files / "forms"
    for file in sorted(home.rglob("*.*")):
        if not file.is_file() or file.suffix in (".md", ".py"):
            continue
        try:
            frame = read_results(file).frame
        except DataError:
            frame = None
        if frame is None or frame["prediction"].isna().all():
            assert frame is None or file.name in WITHOUT_ANSWERS
            with pytest.raises(DataError, match="no "):
                read_predictions(file)
            continue
        texts = [text for text in read_predictions(file).texts if text is not None]
        answers = frame["prediction"].dropna()
        assert {text.strip() for text in texts} == {text.strip() for text in answers}, file
        n_read += 1
    assert n_read == 49
