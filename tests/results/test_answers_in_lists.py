"""Predictions that are lists, messages, replies or other objects, in all kinds of files."""

import ast
import json

import numpy as np
import pandas as pd
import pytest

from surface_consistency.analysis.models import compare
from surface_consistency.cli.main import main
from surface_consistency.errors import DataError, RecordError
from surface_consistency.results.frame import read_results
from surface_consistency.results.predictions import read_predictions
from surface_consistency.results.rows import answer_of
from tests.results.kinds import written

N = 20
N_CORRECT = {"a": 15, "b": 5}
KINDS = ("answers.jsonl", "answers.json", "answers.parquet")
CHAT = {
    "messages": lambda text: [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": text},
    ],
    "message": lambda text: {"role": "assistant", "content": text},
    "parts": lambda text: [{"role": "assistant", "content": [{"type": "text", "text": text}]}],
    "reply": lambda text: {
        "id": "chatcmpl-1",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        ],
    },
    "completion": lambda text: {"object": "text_completion", "choices": [{"text": text}]},
    "list": lambda text: [text],
    "nested": lambda text: [[text]],
}
"""One answer, in the formats of servers and tools."""
OTHERS = {
    "samples": lambda text: [text, "Rome"],
    "object": lambda text: {"answer": text},
    "question": lambda text: [
        {"role": "assistant", "content": text},
        {"role": "user", "content": "Why?"},
    ],
    "choices": lambda text: {"choices": [{"text": text}, {"text": "Rome"}]},
    "broken off": lambda text: {"choices": [{"text": text, "finish_reason": "error"}]},
}


def rows(answer, **more):
    return [
        {
            "item": i,
            "model": model,
            "references": f"Town {i}x",
            "prediction": answer(f"Town {i}x" if i < n else "Nowhere"),
            **more,
        }
        for model, n in N_CORRECT.items()
        for i in range(N)
    ]


def difference(*results, **options):
    (row,) = compare(*results, **options).to_frame().to_dict("records")
    return row["difference"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", CHAT)
def test_single_answer_of_a_list_or_a_reply_is_scored(tmp_path, kind, shape):
    path = written(tmp_path / kind, rows(CHAT[shape]))

    assert difference(path, rule="exact") == pytest.approx(-0.5)


@pytest.mark.parametrize("shape", CHAT)
def test_single_answer_of_a_list_or_a_reply_is_read_in_frames_and_predictions(tmp_path, shape):
    frame = pd.DataFrame(rows(CHAT[shape]))

    assert difference(frame, rule="exact") == pytest.approx(-0.5)
    path = written(
        tmp_path / "p.jsonl", [{"id": i, "prediction": CHAT[shape]("Rome")} for i in "ab"]
    )
    assert read_predictions(path).texts == ["Rome", "Rome"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", OTHERS)
def test_several_texts_and_objects_are_rejected_only_under_a_rule(tmp_path, kind, shape, capsys):
    path = written(tmp_path / kind, rows(OTHERS[shape], correct=1))

    with pytest.raises(DataError, match=r"40 of 40 predictions .*first .*Town.*`repeat`"):
        compare(path, rule="exact")
    assert main(["accuracy", str(path), "--rule", "exact"]) == 2
    assert "40 of 40 predictions are lists or objects" in capsys.readouterr().err
    assert compare(path).to_frame()["difference"].tolist() == [0]
    frame = read_results(path).frame
    assert frame["prediction"].isna().all()
    assert frame["score"].eq(1).all()
    (note,) = (one for one in read_results(path).notes if "predictions" in one)
    assert "40 of 40 predictions are lists or objects that are not one text, first" in note
    with pytest.raises(RecordError, match=r"predictions are lists or objects .*`prediction`"):
        read_predictions(path)


def test_rule_rejects_objects_in_rows_without_scores():
    with pytest.raises(DataError, match=r"`rule` exact: 40 of 40 predictions .*'answer'"):
        compare(rows(OTHERS["object"]), rule="exact")


def test_samples_as_rows_with_a_column_repeat_are_scored():
    samples = [
        row | {"prediction": text, "repeat": n}
        for row in rows(OTHERS["samples"])
        for n, text in enumerate(row["prediction"])
    ]

    assert difference(samples, rule="exact") == pytest.approx(-0.25)


def test_outputs_of_promptfoo_that_are_objects_are_rejected_by_a_rule():
    results = [
        {
            **{"testIdx": n, "vars": {"question": f"Q{n}"}, "prompt": {"raw": "Q"}},
            **{"provider": {"id": "m"}, "response": {"output": {"town": "Rome"}}},
            **{"success": True, "score": 1, "testCase": {"metadata": {"target": "Rome"}}},
        }
        for n in range(4)
    ]
    run = {"evalId": "e", "results": {"results": results}}

    assert read_results([run]).frame["prediction"].isna().all()
    with pytest.raises(DataError, match=r"4 of 4 predictions .*'town'"):
        compare([run], rule="exact", references="target")


@pytest.mark.parametrize("write", [repr, json.dumps, lambda one: str(np.array(one))])
def test_lists_written_as_text_are_reported_and_the_remedy_works(tmp_path, write):
    answers = rows(lambda text: write([text]))
    path = written(tmp_path / "answers.csv", answers)

    finding = compare(path, rule="exact").sentences[0]
    assert "20 of 20 answers of a are a list of one text, written as text" in finding
    assert "replace each prediction by ast.literal_eval(prediction)[0]." in finding
    corrected = [row | {"prediction": ast.literal_eval(row["prediction"])[0]} for row in answers]
    assert difference(corrected, rule="exact") == pytest.approx(-0.5)


def test_answers_in_brackets_are_not_reported_if_some_are_not_lists():
    answers = rows(lambda text: f"['{text}']")
    answers[0]["prediction"] = answers[1]["prediction"] = "[Rome]"

    finding = compare(answers, rule="boundary").sentences[0]

    assert "answers of b are a list" in finding
    assert "answers of a are a list" not in finding


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((None, None), ([], None), (np.nan, None), (5, "5"), ("['a']", "['a']"), (" a\n", " a\n")),
        *((["a"], "a"), (np.array(["a"], dtype=object), "a"), ([None], None), (b"a", "a")),
        ({"role": "assistant", "content": None}, None),
        ({"choices": [{"message": {"content": "a"}, "finish_reason": "length"}]}, "a"),
        (
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "b"}, {"text": "a"}],
            },
            "a",
        ),
    ],
)
def test_answer_of_returns_the_text_or_none(value, text):
    assert answer_of(value) == text
