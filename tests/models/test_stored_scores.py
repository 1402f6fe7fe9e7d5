"""Tests of log-probabilities from records, plain rows and samples of lm-evaluation-harness."""

import json

import pytest

from surface_consistency.errors import DataError, RecordError, RunnerError, SourceNotFoundError
from surface_consistency.models import MultipleChoiceRunner, load_runner
from surface_consistency.models.stored_scores import StoredScores
from surface_consistency.schemas import GenerationParams, Prompt, write_jsonl
from surface_consistency.schemas.scoring import ScoredText, ScoringRequest

PARAMS = GenerationParams()


def rows_file(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def sample(context, **returned):
    """Return a sample as in lm-evaluation-harness 0.4: numbers and booleans are text."""
    return {
        "doc_id": 0,
        "doc": {"question": context},
        "arguments": {
            f"gen_args_{n}": {"arg_0": context, "arg_1": continuation}
            for n, continuation in enumerate(returned)
        },
        "resps": [[[str(value), str(is_greedy)]] for value, is_greedy in returned.values()],
        "filtered_resps": [[str(value), str(is_greedy)] for value, is_greedy in returned.values()],
    }


def scored(path, **request):
    (returned,) = StoredScores(path).score([ScoringRequest(**{"id": "r", **request})])
    return returned


def test_records_are_found_by_the_id_of_the_request(tmp_path):
    records = [
        ScoredText(request_id=f"q\n{n}", token_ids=(n, 9), log_probabilities=(-2.0 + n, -1.0))
        for n in range(2)
    ]
    path = tmp_path / "scores.jsonl"
    write_jsonl(path, records)
    runner = load_runner("stored-scores", model=path)

    (answer,) = MultipleChoiceRunner(runner).generate(
        [Prompt(id="q", text="Q: Who? A:", options=(" Ann", " Bob"))], PARAMS
    )

    assert runner.is_stored
    assert answer.text == " Bob"
    assert answer.scores[1].log_probabilities == (-1.0, -1.0)
    assert answer.scores[1].n_scored == 2


def test_samples_of_lm_evaluation_harness_are_read(tmp_path):
    path = rows_file(
        tmp_path / "samples.jsonl",
        sample("Q: Who? A:", **{" Ann": (-3.5, False), " Bob": (-1.25, True)}),
        sample("A text", **{" on": (-0.5, True)}),
    )

    bob = scored(path, context="Q: Who? A:", continuation=" Bob")

    assert (bob.log_probability, bob.is_greedy, bob.is_sum) == (-1.25, True, True)
    assert scored(path, context="A text", continuation=" on").log_probability == -0.5
    unfiltered = sample("c", **{" a": (-1.0, False), " b": (-2.0, False)})
    del unfiltered["filtered_resps"]
    unfiltered["arguments"] = [["c", " a"], ["c", " b"]]
    lists = rows_file(tmp_path / "lists.jsonl", unfiltered)
    assert scored(lists, context="c", continuation=" b").log_probability == -2.0
    # Other demonstrations before the same question, and no space before the option.
    elsewhere = scored(path, context="Q: X? A: x\n\nQ: Who? A:", continuation="Bob")
    assert elsewhere.log_probability == -1.25


def test_plain_rows_are_found_by_their_texts(tmp_path):
    path = rows_file(
        tmp_path / "scores.jsonl",
        {"context": "c", "continuation": " a b", "log_probability": -1.5},
        {"context": "c", "continuation": " d"}
        | {"log_probabilities": [-1.0, -0.25], "tokens": [" ", "d"]},
        {"context": "", "continuation": "whole", "log_probability": -9.0},
    )
    table = tmp_path / "scores.csv"
    table.write_text("context,continuation,log_probability\nc, a b,-1.5\n", encoding="utf-8")

    for file in (path, table):
        assert scored(file, context="c", continuation=" a b").log_probability == -1.5
    assert scored(path, context="c", continuation=" d").n_scored == 2
    assert scored(path, continuation="whole").log_probability == -9.0


def test_one_question_with_two_contexts_is_found_by_the_full_context(tmp_path):
    """If two rows end with the same question and differ, the question is not sufficient."""
    path = rows_file(
        tmp_path / "samples.jsonl",
        sample("1\nQ: Who? A:", **{" Ann": (-1.0, False)}),
        sample("2\nQ: Who? A:", **{" Ann": (-2.0, False)}),
    )

    assert scored(path, context="2\nQ: Who? A:", continuation=" Ann").log_probability == -2.0
    with pytest.raises(RunnerError, match=r"no log-probability of 1 of 1 texts"):
        scored(path, context="3\nQ: Who? A:", continuation=" Ann")


def test_error_names_a_text_that_is_not_stored(tmp_path):
    path = rows_file(tmp_path / "s.jsonl", sample("c", **{" a": (-1.0, False)}))
    requests = [ScoringRequest(id=n, context="c", continuation=f" {n}") for n in "ab"]

    returned = (
        r"s\.jsonl has no log-probability of 1 of 2 texts, the first ' b' after 'c' \(request 'b'"
    )
    with pytest.raises(RunnerError, match=returned + r".*; store them too, or .*`calibrate=False`"):
        list(StoredScores(path).score(requests))


WITHOUT = ":1: the sample contains no log-likelihoods; .*Score generated texts with `runner=stored`"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"context": "c", "continuation": "a"}, r":1: no field 'log_probability' or 'log_prob"),
        ({"log_probability": -1.0}, r":1: a row identifies its text by 'request_id', or by 'cont"),
        (
            {"request_id": "q", "log_probability": "x"},
            r":1: 'x' is not a log-probability, which is",
        ),
        ({"request_id": "q", "log_probability": 0.5}, r":1: .*must be at most 0, got"),
        ({"request_id": "q", "log_probability": "nan"}, r":1: .*must be at most 0, got nan"),
        (
            {"request_id": "q", "log_probabilities": [-1.0, -2.0]},
            ":1: .*one log-probability, the sum",
        ),
        ({"doc": {}, "arguments": [["c", {}]], "resps": [["a text"]]}, WITHOUT),
        ({"doc": {}, "arguments": [["c", "a"]], "resps": []}, ":1: a sample must have as many `r"),
    ],
)
def test_error_names_a_row_without_log_probability(tmp_path, row, message):
    with pytest.raises(RecordError, match=message):
        StoredScores(rows_file(tmp_path / "s.jsonl", row))


def test_contradictory_rows_raise_an_error(tmp_path):
    row = {"context": "c", "continuation": " a", "log_probability": -1.0}
    path = rows_file(tmp_path / "s.jsonl", row, row)
    assert StoredScores(path).fingerprint()["n_scores"] == 1

    with pytest.raises(
        RecordError, match=r":2: the log-probability .* differs from that at .*:1; keep"
    ):
        StoredScores(rows_file(tmp_path / "s.jsonl", row, {**row, "log_probability": -2.0}))


def test_error_names_an_empty_file_and_generate_raises_an_error(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"none\.jsonl"):
        StoredScores(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match=r"contains no log-probabilities; it is empty"):
        StoredScores(rows_file(tmp_path / "empty.jsonl"))
    runner = StoredScores(rows_file(tmp_path / "s.jsonl", sample("c", **{" a": (-1.0, False)})))
    with pytest.raises(
        RunnerError,
        match="'stored-scores' does not define `generate`, which prompts without options need",
    ):
        list(runner.generate([Prompt(id="q", text="c")], PARAMS))
