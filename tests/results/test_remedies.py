"""Remedies in messages of the reader: after following each one, the results are read."""

import json
import re

import pandas as pd
import pytest

from surface_consistency.errors import DataError
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.frame import read_results


def two(**column):
    """Two rows of one item with two values of a column."""
    ((name, values),) = column.items()
    return [{"item": "q", "model": "m", "score": n, name: v} for n, v in enumerate(values)]


FLAGS = [{"id": n, "gpt": n % 2, "llama": 1, "is_hard": n % 2} for n in range(4)]
SCORED = [{"id": n, "model": "m", "bleu": n / 9, "rouge": n / 8} for n in range(4)]
WIDE = [{"id": n, "bleu": n / 9, "rouge": n / 8} for n in range(4)]
UNNAMED = [{"nr": n, "score": n % 2} for n in range(4)]
OTHER = [{"id": n, "model": "m", "mark": "x", "text_out": "A", "points": str(n)} for n in range(3)]
HARNESS = [
    {
        **{"doc_id": n, "doc": {"name": f"d{n}"}, "target": "A", "resps": [["A"]]},
        **{"filtered_resps": ["A"], "filter": kind, "metrics": ["em", "f1"]},
        **{"em": 1.0, "f1": [1, 0]},
    }
    for n in range(2)
    for kind in ("strict", "first")
]
UNNUMBERED = [{**row, "doc_id": None} for row in HARNESS]

# The rows, the initial options, the message, and the options that it names.
REMEDIES = {
    "repeat": (two(run=(1, 2)), {}, r"by `repeat` or `form` or `item`", {"repeat": "run"}),
    "form": (two(turn=(1, 2)), {}, r"by `repeat` or `form` or `item`", {"form": "turn"}),
    "item": (two(part=(1, 2)), {}, r"or `item`", {"item": ["item", "part"]}),
    "equal scores": (
        [{"item": "q", "score": 7, "turn": n} for n in (1, 2)],
        *({}, "equal scores and other values of turn", {"form": "turn"}),
    ),
    "other questions as forms": (
        [{"item": "q", "model": n, "score": 1, "question": n, "wording": n} for n in "ab"],
        *({}, "distinguishes them by `form`", {"form": "wording"}),
    ),
    "other questions as items": (
        [{"item": "q", "model": n, "score": 1, "question": n} for n in "ab"],
        *({}, "distinguishes items by `item`", {"item": ["question"]}),
    ),
    "no item": (UNNAMED, {}, "name it by `item`. Columns: nr, score", {"item": ["nr"]}),
    "flags": (FLAGS, {}, "is_hard may be a property .* by `names`", {"names": ["gpt", "llama"]}),
    "models or metrics": (WIDE, {}, "by `metrics`, or, if each is", {"metrics": ["bleu", "rouge"]}),
    "models by name": (WIDE, {}, "is a model, by `names`", {"names": ["bleu", "rouge"]}),
    "no such metric": (
        SCORED,
        {"metrics": ["em"]},
        "of `metrics` not found. Columns: ",
        {"metrics": ["rouge"]},
    ),
    "no score": (
        [{"id": n, "model": "m", "grade": str(n), "note": "x"} for n in range(2)],
        *({"score": "note"}, "contains 'x', which is not a score: a finite", {"score": "grade"}),
    ),
    "no scores and no answers": (
        [{"id": n, "out": "A"} for n in range(2)],
        *({}, r"or a column of answers \(not all empty\) by `prediction`", {"prediction": "out"}),
    ),
    "costs alone": (
        [{"id": n, "latency": n / 9, "num_tokens": n} for n in range(2)],
        *(
            {},
            ".m.jsonl: latency is a cost, .* `metrics` names it, so it is",
            {"metrics": ["latency"]},
        ),
    ),
    "a property alone": (
        [{"id": n, "turn": n} for n in range(2)],
        *({}, "'turn' is the only column of numbers, .* by `score`", {"score": "turn"}),
    ),
    "a property and answers": (
        [{"id": n, "year": 1990, "answer": "A"} for n in range(2)],
        *({}, "or that of the answers by `prediction`", {"prediction": "answer"}),
    ),
    "lists as items": (
        [{"id": [n], "nr": n, "score": 1} for n in range(2)],
        *({}, "column of texts or numbers by `item`", {"item": ["nr"]}),
    ),
    "blank item": (
        [{"id": "" if n else "a", "nr": n, "score": 1} for n in range(2)],
        *({}, "or name another column by `item`", {"item": ["nr"]}),
    ),
    "filter of a table": (
        *(SCORED, {"filter": "x", "metrics": ["bleu"]}, "`filter` is for", {"metrics": ["bleu"]}),
    ),
    "no such filter": (HARNESS, {"filter": "x"}, "name one of: first, strict", {"filter": "first"}),
    "a metric of lists": (
        HARNESS,
        *(
            {"metrics": ["f1"], "filter": "first"},
            r"f1' contains lists, .* name another by `metrics`: em$",
        ),
        {"metrics": ["em"], "filter": "first"},
    ),
    "no number": (
        UNNUMBERED,
        *(
            {"filter": "first"},
            "has no doc_id; fill it in, or name another field by `item`: .*name",
        ),
        {"item": ["name"], "filter": "first"},
    ),
    "labels of no file": (
        [{"id": 1, "model": name, "score": 1} for name in "ab"],
        *({"names": ["x", "y"]}, "the models are named a, b; omit `names`", {}),
    ),
    "one label for two models": (
        [{"id": 1, "model": name, "score": 1} for name in "ab"],
        *({"names": ["x"]}, "gives one label, 'x'; omit `names`", {}),
    ),
}


@pytest.mark.parametrize(("rows", "given", "message", "remedy"), REMEDIES.values(), ids=REMEDIES)
def test_remedy_of_the_message_works(tmp_path, rows, given, message, remedy):
    path = tmp_path / "m.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))

    with pytest.raises(DataError, match=message):
        read_results(path, ResultColumns(**given))
    assert len(read_results(path, ResultColumns(**remedy)).frame)


def test_ids_of_two_types_can_be_converted_as_in_the_message():
    frame = pd.DataFrame({"id": [1, "1"], "score": [1, 0]}, dtype=object)

    with pytest.raises(DataError, match=r"such as frame\['id'\].astype\(str\)"):
        read_results(frame)
    rows = frame.assign(id=frame["id"].astype(str), repeat=[0, 1])
    assert read_results(rows).frame["item"].tolist() == ["1", "1"]


def test_a_table_with_semicolons_can_be_written_as_in_the_message(tmp_path):
    path, new = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("id;score;note\n1;0,5;a\n2;0,25;b\n")

    with pytest.raises(
        DataError, match=r"2 cells under 1 columns; the header separates its names"
    ) as e:
        read_results(path)
    call = re.search(r"pandas\.(read_csv\(.*index=False\))", str(e.value))[1]
    eval(f"pd.{call}", {"pd": pd, "file": path, "new": new})

    assert read_results(new).frame["score"].tolist() == [0.5, 0.25]


def test_rows_of_two_tools_are_read_from_separate_files(tmp_path):
    rows = [{"problem_idx": 1, "reward": 1}, {"instance_id": "a", "stats": []}]
    for name, content in {"both": rows, "nemo": rows[:1]}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))

    with pytest.raises(DataError, match="write the rows of each tool to a separate file"):
        read_results(tmp_path / "both.json")
    assert read_results(tmp_path / "nemo.json").frame["score"].tolist() == [1.0]


@pytest.mark.parametrize(
    "content",
    [{"q1": 0.5, "q2": 1}, {"q1": {"acc": 0.5}}, {"train": [{"a": 1}], "test": [{"a": 1}]}],
)
def test_an_object_can_be_written_as_rows_as_in_the_message(tmp_path, content):
    (tmp_path / "a.json").write_text(json.dumps(content))

    with pytest.raises(DataError, match=r"such as (\[.*\])$") as error:
        read_results(tmp_path / "a.json")
    rows = re.search(r"such as (\[.*\])$", str(error.value))[1].replace("'", '"')
    (tmp_path / "b.json").write_text(rows)
    assert read_results(tmp_path / "b.json").frame["item"].tolist() == ["q1"]


def test_a_broken_row_can_be_written_as_a_plain_table_as_in_the_message():
    row = {"instance_id": "a", "stats": [{"mean": 1}]}

    with pytest.raises(
        DataError, match=r"not in the layout of HELM .* columns item, model and score"
    ):
        read_results([row])
    assert len(read_results([{"item": "a", "model": "m", "score": 1}]).frame) == 1
