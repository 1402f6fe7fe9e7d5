"""No value of a file causes a traceback, and messages repeat at most 300 characters of it."""

import copy
import csv
import gzip
import json
import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from surface_consistency import accuracy
from surface_consistency.errors import DataError, RecordError, SourceNotFoundError
from surface_consistency.results.columns import ResultColumns
from surface_consistency.results.frame import read_results
from surface_consistency.results.layouts import _within
from surface_consistency.results.rows import Flat, is_labels, readable
from surface_consistency.rows.readers import read_rows
from surface_consistency.studies.unlearning.settings import UnlearningSource
from surface_consistency.studies.unlearning.study import UnlearningStudy
from tests.faults.inputs import command

FORMS = Path("tests/data/files/forms")
LONG = "Ж" * 3_000
FILES = sorted(
    path
    for folder in (FORMS, Path("tests/data/files/unlearning"))
    for path in folder.rglob("*")
    if path.suffix in (".json", ".jsonl") and path.name != "truth.json" and "real" not in str(path)
)
NESTED = json.loads("[" * 60 + "]" * 60)
VALUES = (
    *(None, [], {}, [1], {"x": 1}, "x", 1.5, -1, True, 10**400, float("inf"), "1" * 5_000, NESTED),
    *("\ud800", [[]], ["a", None, {"b": []}], "", "٣"),
)


def paths_in(value, path=()):
    """List the paths of all values."""
    cells = (
        value.items() if isinstance(value, dict) else enumerate(value) if path is not None else ()
    )
    for key, cell in cells:
        yield (*path, key)
        if isinstance(cell, dict | list):
            yield from paths_in(cell, (*path, key))


def damaged(rows, rng):
    """Replace or remove a value at a random path, or repeat a row."""
    rows = copy.deepcopy(rows)
    *steps, last = rng.choice(list(paths_in(rows)))
    outer = rows
    for step in steps:
        outer = outer[step]
    if rng.random() < 0.2:
        del outer[last]
    else:
        outer[last] = copy.deepcopy(rng.choice(VALUES))
    return rows + rows[-1:] if isinstance(rows, list) and rng.random() < 0.1 else rows


@pytest.mark.parametrize("path", FILES, ids=lambda path: "-".join(path.parts[3:]))
def test_damaged_files_of_tools_are_read_or_raise_an_error_with_the_path(tmp_path, path):
    folder = tmp_path / path.parent.name
    shutil.copytree(path.parent, folder)
    text = path.read_text()
    lines = path.suffix == ".jsonl" and not text.startswith("[")
    rows = [json.loads(line) for line in text.splitlines() if line] if lines else json.loads(text)
    rng = random.Random(path.name)

    for _ in range(12):
        made = damaged(rows[:20] if isinstance(rows, list) else rows, rng)
        written = "\n".join(map(json.dumps, made)) if lines else json.dumps(made)
        (folder / path.name).write_text(written)
        error = None
        try:
            read_results(folder / path.name)
        except DataError as caught:
            error = caught
        assert error is None or str(tmp_path) in str(error)


@pytest.mark.parametrize(
    "error",
    [
        *(AssertionError("x"), AttributeError("x"), IndexError("x"), KeyError("x")),
        *(OverflowError("x"), RecursionError("x"), TypeError("x"), ZeroDivisionError("x")),
        UnicodeDecodeError("utf-8", b"x", 0, 1, "x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_error_while_iterating_samples_names_file_and_layout(error):
    def failing(flats, file, notes):
        yield from flats
        raise error

    flats = _within("TOOL", Path("f.json"), failing, [Flat({}, {}, {})], [])

    assert next(flats) == Flat({}, {}, {})
    with pytest.raises(RecordError, match=r"^f.json: not in the layout of TOOL \(.*; restore the"):
        next(flats)


@pytest.mark.parametrize("error", [SourceNotFoundError("no file"), PermissionError("denied")])
def test_errors_of_the_file_system_are_not_converted(error):
    with pytest.raises(type(error), match=str(error)), readable("f.json:1", "TOOL"):
        raise error


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("instances.json", '"id":', '"x":', r"instances.json:1: .*no field 'id'"),
        ("instances.json", '"id": "id', '"id": ["a"], "x": "id', "instances.json:1: .*unhashable"),
        ("instances.json", '"references": [', '"references": ["a", ', "instances.json:1: .*'get'"),
        ("instances.json", '"tags": [', '"tags": 1.5, "x": [', "instances.json:1: .*iterable"),
        ("display_predictions.json", '"instance_id":', '"x":', "no field 'instance_id'"),
        ("display_predictions.json", '"instance_id": "', '"instance_id": {}, "x": "', "unhashable"),
    ],
)
def test_damaged_companion_files_of_helm_are_named_in_the_error(tmp_path, name, old, new, message):
    shutil.copytree(FORMS / "helm" / "alpha", tmp_path / "alpha")
    path = tmp_path / "alpha" / name
    path.write_text(path.read_text().replace(old, new))

    with pytest.raises(RecordError, match=message):
        read_results(tmp_path / "alpha" / "per_instance_stats.json")


@pytest.mark.parametrize(
    ("file", "field", "value"),
    [
        *[
            ("eee/alpha_samples.jsonl", name, cell)
            for name in ("sample_id", "model_id")
            for cell in ([1], {})
        ],
        *[
            ("nemo_evaluator/alpha/results.jsonl", "repeat", cell)
            for cell in ([1], "٣", 1.5, 10**400)
        ],
        (
            "lm_eval/two-ranks-two-filters/alpha/samples_forms_gen_2026-11-22T10-00-00.000000.jsonl",
            "filter",
            {},
        ),
        ("lm_eval/0.4.13/alpha/samples_forms_mc_2026-11-22T19-06-29.470271.jsonl", "metrics", [1]),
    ],
)
def test_values_of_another_type_raise_an_error_with_row_and_layout(tmp_path, file, field, value):
    rows = [json.loads(line) for line in (FORMS / file).read_text().splitlines()]
    rows[1][field] = value
    path = tmp_path / Path(file).name
    path.write_text("\n".join(map(json.dumps, rows)))

    with pytest.raises(RecordError, match=r"jsonl:2: not in the layout of "):
        read_results(path)


EEE = {
    "evaluation_id": "e", "sample_id": "s", "evaluation_name": "n", "model_id": "m",
    "evaluation": {"score": 1}, "input": {"raw": "q"}, "output": {"raw": ["a"]},
}  # fmt: skip
FRAME = {"sample_id": "s", "eval_id": "e", "log": "l", "epoch": 1, "id": "x", "score_m": "C"}
TEST = {
    "provider": "p", "prompt": {"raw": "q", "label": "L"}, "vars": {"x": "1"}, "promptIdx": 0,
    "testIdx": 0, "response": {"output": "a"}, "success": True, "score": 1,
}  # fmt: skip


def event(number, **data):
    """Write an event of OpenAI evals."""
    fields = {"run_id": "r", "event_id": number, "sample_id": f"s{number}", "type": "match"}
    return {**fields, "data": {"sampled": "a", **data}}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        *[({**EEE, "metadata": {"epoch": cell}}, "expected") for cell in ({"a": 1}, "x", "٣", 1.5)],
        *[({**EEE, "evaluation_result_id": cell}, "expected") for cell in (["x"], {}, True)],
        *[({**FRAME, "epoch": cell}, "epoch is") for cell in (None, 0, "")],
        *[({**FRAME, "id": cell}, "id is") for cell in ([[]], {"a": 1})],
        ({**TEST, "prompt": {"label": ["x"]}}, "expected text"),
    ],
)
def test_invalid_numbers_and_names_raise_an_error_with_the_row(tmp_path, row, message):
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(row))

    with pytest.raises(RecordError, match=rf"s.jsonl:1: not in the layout of .*{message}"):
        read_results(path)


def test_event_without_a_score_is_a_missing_score(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(json.dumps(event(n, correct=n == 1)) for n in (1, 2)))
    with path.open("a") as file:
        file.write("\n" + json.dumps(event(3)))

    assert read_results(path).frame["score"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize(
    "rows",
    [
        [TEST, TEST, {**TEST, "testIdx": 1, "success": False}],
        [
            event(1, correct=True),
            event(1, correct=True),
            {**event(1, correct=False), "event_id": 2},
        ],
    ],
)
def test_a_copied_result_counts_once_and_a_repeat_twice(tmp_path, rows):
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    results = read_results(path)

    first = results.frame[results.frame["metric"] == results.frame["metric"].iat[0]]
    assert first["repeat"].tolist() == [0, 1]
    assert results.notes[0].endswith("results that are exact copies of another are dropped: 1")


@pytest.mark.parametrize("model", ["", None])
@pytest.mark.parametrize("kind", ["jsonl", "csv", "rows", "eee"])
def test_row_without_a_model_is_rejected_if_other_rows_have_one(tmp_path, kind, model):
    rows = [{"item": n, "model": m, "correct": 1} for n, m in enumerate(["m", "m", model, "n"])]
    if kind == "eee":
        rows = [
            {**EEE, "sample_id": str(n), "model_id": row["model"]} for n, row in enumerate(rows)
        ]
    path = tmp_path / f"s.{'csv' if kind == 'csv' else 'jsonl'}"
    if kind == "csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    else:
        path.write_text("\n".join(map(json.dumps, rows)))

    with pytest.raises(RecordError, match="row 3 has no model, but other rows have one"):
        read_results(rows if kind == "rows" else path)


def test_empty_column_of_models_gives_the_name_of_the_file(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text('{"item": "a", "model": "", "correct": 1}')

    assert read_results(path).frame["model"].tolist() == ["s"]


@pytest.mark.parametrize("score", ["Infinity", "-Infinity", '"inf"', "1e400", "1" * 400])
def test_infinite_scores_of_a_tool_raise_an_error_with_the_row(tmp_path, score):
    text = '{{"doc_id": {}, "doc": {{}}, "filtered_resps": ["a"], "em": {}, "f1": 1}}\n'
    path = tmp_path / "s.jsonl"
    path.write_text(text.format(0, 1) + text.format(1, score))

    with pytest.raises(RecordError, match=r"s.jsonl:2: metric 'em' contains .*not a finite number"):
        read_results(path)
    assert set(read_results(path, ResultColumns(metrics=("f1",))).frame["metric"]) == {"f1"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"case_id": 0, "requested_rewrite": ["x"]}, "e.json:1: not in the layout of edits"),
        ({"case_id": 0, "requested_rewrite": "x"}, "e.json:1: not in the layout of edits"),
        ({"question": ["x"], "answer": "y"}, "e.json:1: not in the layout of TOFU"),
    ],
)
def test_invalid_questions_about_unlearning_raise_an_error_with_the_row(tmp_path, row, message):
    path = tmp_path / "e.json"
    path.write_text(json.dumps([row]))

    with pytest.raises(RecordError, match=message):
        UnlearningStudy().load(UnlearningSource(source=str(path)))


@pytest.mark.parametrize("role", ["model", "form", "task", "repeat", "item", "metric"])
def test_lists_and_objects_in_place_of_names_raise_an_error_with_the_row(role):
    row = {"item": "a", "model": "m", "form": "f", "metric": "acc", "score": 1}

    with pytest.raises(RecordError, match=rf"row 2 of column '{role}' contains \['x'\].*`{role}`"):
        read_results([{**row, role: "y"}, {**row, role: ["x"]}])


@pytest.mark.parametrize(
    "score", ["Infinity", "-Infinity", "1e400", '"inf"', '"٣"', '"１"', "1" * 400]
)
def test_scores_that_are_not_finite_ascii_numbers_raise_an_error_with_the_row(tmp_path, score):
    path = tmp_path / "s.jsonl"
    path.write_text(f'{{"item": "a", "correct": 1}}\n{{"item": "b", "correct": {score}}}\n')

    with pytest.raises(RecordError, match=r"s.jsonl: row 2 of column 'correct' .*a finite number"):
        read_results(path)


def test_infinite_scores_of_parquet_raise_an_error_with_the_row(tmp_path):
    rows = [{"item": str(n), "model": m, "correct": 1.0} for n in range(9) for m in "ab"]
    rows[3]["correct"] = float("inf")
    pd.DataFrame(rows).to_parquet(tmp_path / "s.parquet")

    for words in (["compare"], ["accuracy"]):
        code, _, err = command([*words, tmp_path / "s.parquet"])
        assert code == 2
        assert "row 4 of column 'correct' contains inf, which is not a score" in err


@pytest.mark.parametrize("name", ["s.csv", "s.jsonl", "s.json", "s.tsv"])
def test_one_or_two_byte_order_marks_are_removed(tmp_path, name):
    rows = [{"model": model, "item": "a", "correct": "1"} for model in ("x", "y")]
    path = tmp_path / name
    if path.suffix in (".csv", ".tsv"):
        with path.open("w", newline="", encoding="utf-8") as file:
            file.write("\ufeff\ufeff")
            writer = csv.DictWriter(file, [*rows[0]], delimiter="," if name == "s.csv" else "\t")
            writer.writeheader()
            writer.writerows(rows)
    else:
        lines = json.dumps(rows) if name == "s.json" else "\n".join(map(json.dumps, rows))
        path.write_text(f"\ufeff\ufeff{lines}", encoding="utf-8")

    assert [row for _, row in read_rows(path)] == rows
    assert read_results(path).frame["model"].tolist() == ["x", "y"]


def labelled(**more):
    """Twelve items of two models, with one label, two labels, or a label twice."""
    tags = ("x", ["x", "y"], ["y", "y"])
    return [
        {"item": f"q{n}", "model": model, "correct": n % 2, "tags": tags[n % 3], **more}
        for n in range(12)
        for model in "ab"
    ]


@pytest.mark.parametrize("order", [1, -1], ids=["text first", "list first"])
def test_rows_count_once_in_each_of_their_labels(tmp_path, order):
    path = tmp_path / "l.jsonl"
    path.write_text("\n".join(map(json.dumps, labelled()[::order])))

    code, out, _ = command(["compare", path, "--by", "tags", "--json", "--wide"])
    table = accuracy(path, by="tags")

    assert code == 0
    groups = [row for row in json.loads(out)["rows"] if row["tags"] in ("x", "y")]
    assert [row["n"] for row in groups] == [8, 8]
    assert {(row["model"], row["tags"]): row["n"] for row in table.to_dict()["rows"]} == {
        (model, tag): 8 for model in "ab" for tag in "xy"
    }
    assert "8 of 24 rows have several labels in column tags and count once for each" in out
    for note in (table.note, table.table_note):
        assert "8 of 24 rows have several labels in column tags" in note


@pytest.mark.parametrize("measure", ["compare", "accuracy", "consistency"])
@pytest.mark.parametrize(
    ("option", "column", "message"),
    [
        ("--cluster", "tags", "column 'tags' contains lists, and an item is in one cluster"),
        ("--cluster", "meta", "column 'meta' contains objects, or lists of lists"),
        ("--by", "meta", "column 'meta' contains objects, or lists of lists"),
    ],
)
def test_lists_as_clusters_and_objects_as_groups_raise(tmp_path, measure, option, column, message):
    path = tmp_path / "l.jsonl"
    path.write_text("\n".join(map(json.dumps, labelled(meta={"k": 1}))))

    code, _, err = command([measure, path, option, column])

    assert code == 2
    assert message in err


@pytest.mark.parametrize("by", ["meta", "nested"])
def test_objects_of_a_frame_are_rejected_as_labels(by):
    frame = pd.DataFrame(labelled(meta={"k": 1}, nested=[["x"]])).drop(columns="model")

    with pytest.raises(DataError, match=f"column '{by}' contains .* which is not a label"):
        accuracy(frame.drop_duplicates("item"), by=by)
    with pytest.raises(DataError, match=r"column 'tags' has .* in row 1, and a list or an object"):
        accuracy(frame.drop_duplicates("item"), cluster="tags")


def test_cell_has_at_most_100_labels():
    assert is_labels(["x"] * 100)
    assert not is_labels(["x"] * 101)
    assert not is_labels({"x": 1})


def test_lists_of_labels_in_the_metadata_of_a_tool_are_columns(tmp_path):
    source = FORMS / "nemo_evaluator" / "alpha" / "results.jsonl"
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    for row in rows:
        row["metadata"] = {"tags": ["x", "y"], "objects": {"a": 1}}
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))

    results = read_results(path)

    assert results.frame["tags"].tolist() == [["x", "y"]] * len(rows)
    assert results.nested == ("objects",)
    with pytest.raises(DataError, match="column 'objects' contains objects"):
        read_results(path, ResultColumns(cluster=("objects",)))


@pytest.mark.parametrize("column", ["item", "metric"])
def test_message_about_models_without_common_items_or_metrics_is_short(tmp_path, column):
    rows = [
        {"item": "a", "metric": "em", "model": f"{LONG}{n}", "score": 1, column: f"{LONG}{n}"}
        for n in range(8)
    ]
    path = tmp_path / "m.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    code, _, err = command(["compare", path])

    assert code == 2
    assert 0 < err.count("Ж") <= 300


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "command_of", ["compare", "accuracy", "consistency", "paired", "score", "run"]
)
@pytest.mark.parametrize("kind", range(8))
def test_messages_contain_at_most_300_characters_of_a_file(tmp_path, command_of, kind):
    row = {"item": "a", "model": "m", "form": "f", "correct": 1, "question": "Q?", "answers": ["x"]}
    invalid = [
        {**row, "correct": LONG}, {**row, "item": [LONG]}, {LONG: 1}, {**row, LONG: 1, LONG * 2: 0},
        {**row, "model": [LONG]}, {**row, "answers": {LONG: 1}}, {**row, "item": LONG}, [LONG],
    ]  # fmt: skip
    path = tmp_path / "m.jsonl"
    rows = [invalid[kind], {**row, "item": LONG, "question": LONG, "correct": 0}, invalid[kind]]
    path.write_text("\n".join(json.dumps(one) for one in rows))
    words = {
        "paired": ["paired", path, "--first", "correct", "--second", LONG[:200]],
        "score": ["score", "--predictions", path, "--source", "sample", "--out", tmp_path / "o"],
        "run": ["run", "forms", "--source", path, "--model", "x", "--out", tmp_path / "o"],
    }
    code, _, err = command(words.get(command_of, [command_of, path]))

    assert code in (0, 2, 3), err
    assert all(line.count("Ж") <= 300 for line in err.splitlines()), err


def test_compressed_table_above_the_limit_of_size_is_rejected(tmp_path):
    with gzip.open(tmp_path / "wide.csv.gz", "wb") as file:
        file.write(b"item,a,b\n" + b"1,1,0\n" * 2_000_000)
    words = [sys.executable, "-m", "surface_consistency", "compare", str(tmp_path / "wide.csv.gz")]

    done = subprocess.run(words, capture_output=True, text=True, timeout=60)

    assert done.returncode == 2
    assert "SURFACE_CONSISTENCY_MAX_UNPACKED_MB" in done.stderr


def test_empty_index_of_vlmevalkit_is_rejected(tmp_path):
    path = tmp_path / "m" / "m_set.csv"
    path.parent.mkdir()
    path.write_text(
        "index,question,answer,prediction,A,B,hit\n,q,A,A,a,b,1\n1,q,A,A,a,b,0\n", "utf-8"
    )

    with pytest.raises(RecordError, match="VLMEvalKit"):
        read_results(path)


def test_log_header_with_too_many_columns_is_rejected(tmp_path):
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({f"k{n}": 1 for n in range(10_001)}))
        archive.writestr("samples/a.json", "{}")

    with pytest.raises(RecordError, match=r"10,001 columns are more than the maximum of 10,000"):
        read_results(tmp_path / "log.eval")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"resolved_ids": ["a"], "unresolved_ids": ["b"], "error_ids": "b"},
            "error_ids is 'b', which is not a list of instances",
        ),
        (
            {"evaluation_id": "e", "model_id": "m", "evaluation_name": "t", "sample_id": "q"}
            | {"evaluation": {"score": 1}, "metadata": {"epoch": float("nan")}},
            "epoch is nan, which is not a number from 1",
        ),
    ],
)
def test_invalid_lists_of_ids_and_epochs_are_rejected(tmp_path, row, message):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(row if "resolved_ids" in row else [row]), "utf-8")

    with pytest.raises(DataError, match=message):
        read_results([path], ResultColumns())
