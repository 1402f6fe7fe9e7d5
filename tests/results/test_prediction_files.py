"""The same predictions in every kind of file, and errors for invalid files."""

import gzip
import json

import datasets
import pytest

from surface_consistency.errors import ColumnNotFoundError, DataError, RecordError
from surface_consistency.results.columns import PredictionSettings
from surface_consistency.results.frame import read_results
from surface_consistency.results.predictions import QuestionIndex, read_predictions
from tests.results.kinds import written

ROWS = [
    {"id": "q1", "prediction": "London"},
    {"id": "q2", "prediction": "NA"},
    {"id": "q3", "prediction": None},
]
INDEX = QuestionIndex(ids=["q1", "q2", "q3"], questions=["Capital?", "Symbol?", "Nobody?"])


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
def test_results_of_batches_are_matched_by_their_custom_id(tmp_path, kind):
    """The result has another id, that of the batch; a failed request has no answer."""
    refused = {"status_code": 400, "body": {"error": {"message": "no"}}}
    rows = [
        {"id": f"batch_req_{n}", "custom_id": f"q{n}", "response": response, "error": error}
        for n, response, error in (
            (2, refused, None),
            (1, {"status_code": 200, "body": BODIES[kind]}, None),
            (3, None, {"code": "expired"}),
        )
    ]

    found = read_predictions(written(tmp_path / "batch.jsonl", rows)).match(INDEX)

    assert found == ["London", None, None]


INCOMPLETE = {
    "abort": {"choices": [{"text": "London", "finish_reason": "abort"}]},
    "upstream idle": {"choices": [{"text": "Lon", "error": {"message": "upstream idle"}}]},
    "SAFETY": {"choices": [{"message": {"content": "Lon"}, "finish_reason": "SAFETY"}]},
    "I cannot say": {"choices": [{"message": {"content": None, "refusal": "I cannot say"}}]},
    "content_filter": {"incomplete_details": {"reason": "content_filter"}} | BODIES["responses"],
    "cancelled": {"status": "cancelled"} | BODIES["responses"],
    "server_error": {"error": {"message": "server_error"}},
}
COMPLETE = [
    {"choices": [{"message": {"content": "London"}, "finish_reason": "STOP"}]},
    {"choices": [{"text": "London", "finish_reason": None}]},
    {"status": "completed", "incomplete_details": None} | BODIES["responses"],
    {"incomplete_details": {"reason": "max_output_tokens"}} | BODIES["responses"],
]


def test_incomplete_replies_of_batches_are_missing(tmp_path):
    """Finish reasons are those of servers (`server_end`); the reason is the error of the row."""
    bodies = [*INCOMPLETE.values(), *COMPLETE]
    rows = [
        {"custom_id": f"q{n}", "response": {"body": body}, "error": None}
        for n, body in enumerate(bodies)
    ]

    samples = read_predictions(written(tmp_path / "batch.jsonl", rows)).samples

    texts = [None if text != text else text for text in samples["prediction"]]
    assert texts == [None] * len(INCOMPLETE) + ["London"] * len(COMPLETE)
    for words, error in zip(INCOMPLETE, samples["error"], strict=False):
        assert words in error
    assert samples["error"].isna().sum() == len(COMPLETE)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_predictions_that_a_server_interrupted_are_missing(tmp_path, suffix):
    ends = {"STOP": True, "length": True, None: True, "abort": False, "content_filter": False}
    rows = [
        {"id": f"q{n}", "prediction": "London", "finish_reason": end} for n, end in enumerate(ends)
    ]

    found = read_predictions(written(tmp_path / f"p.{suffix}", rows)).samples["prediction"]

    assert [text == "London" for text in found] == [*ends.values()]
    assert found.isna().tolist() == [not is_answer for is_answer in ends.values()]


def test_only_column_with_ids_of_questions_is_used(tmp_path):
    """`key` is distinct and contains only ids; `rank` is distinct but does not contain ids."""
    rows = [
        {"rank": n, "key": row["id"], "same": "q1", "prediction": row["prediction"]}
        for n, row in enumerate(ROWS)
    ]
    # One column contains ids, the other texts: in another order they would give other labels.
    pairs = zip(ROWS, reversed(INDEX.questions), strict=True)
    two = [{"key": row["id"], "asks": text, "prediction": "x"} for row, text in pairs]
    # One value that is not a question: the rows may be of other data.
    stranger = [{"key": key, "prediction": "x"} for key in ("q1", "q2", "q9")]
    path = written(tmp_path / "two.csv", two)

    assert read_predictions(written(tmp_path / "p.csv", rows)).match(INDEX)[:2] == ["London", "NA"]
    with pytest.raises(ColumnNotFoundError, match=r"'key', 'asks' could each name the questions"):
        read_predictions(path).match(INDEX)
    named = read_predictions(path, PredictionSettings(item=("key",)))
    assert named.match(INDEX) == ["x", "x", "x"]
    with pytest.raises(ColumnNotFoundError, match="no column identifies the questions"):
        read_predictions(written(tmp_path / "s.csv", stranger)).match(INDEX)


PACKED = gzip.compress("".join(json.dumps(row) + "\n" for row in ROWS * 50).encode())
NO_REPLY = b'{"custom_id": "q1", "response": {"body": {"data": []}}, "error": null}'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.jsonl.gz", PACKED[:-9], "p.jsonl.gz: cannot be unpacked"),
        ("p.jsonl.gz", PACKED[3:], "p.jsonl.gz: cannot be unpacked"),
        ("p.json", b'[{"id": "q1", "prediction": "x"}, 3]', "p.json:2: an item .* is one JSON obj"),
        ("b.jsonl", NO_REPLY, "b.jsonl:1: the body of the response contains no r"),
    ],
)
def test_error_of_a_damaged_file_contains_its_path(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)

    with pytest.raises(RecordError, match=message):
        read_predictions(tmp_path / name)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_folder_with_several_splits_raises_an_error(tmp_path):
    parts = {name: datasets.Dataset.from_list(ROWS) for name in ("dev", "test")}
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "both"))

    with pytest.raises(DataError, match=r"several splits; use the folder of one: .*dev, .*test"):
        read_predictions(tmp_path / "both")


WITHOUT_ANSWERS = {"per_instance_stats.json", "alpha_Forms_result.tsv", "beta_Forms_result.tsv"}
"""Files that contain only scores: `read_results` reads them, but they have no answers."""


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.SurfaceConsistencyWarning")
def test_read_predictions_and_read_results_give_the_same_answers(data_files):
    """Both readers reject the same files, and the answers are equal except for white space."""
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
            with pytest.raises(DataError, match=r"no |not certain"):
                read_predictions(file)
            continue
        texts = [text for text in read_predictions(file).texts if text is not None]
        answers = frame["prediction"].dropna()
        assert {text.strip() for text in texts} == {text.strip() for text in answers}, file
        n_read += 1
    assert n_read == 49
