import json
import re
from pathlib import Path

import pandas as pd
import pytest

from surface_consistency.analysis.settings import PairSettings
from surface_consistency.analysis.verdicts import read_verdicts as read
from surface_consistency.cli.main import main
from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.results.columns import ResultColumns


def read_verdicts(source, options):
    """Read with the options by name, as on the command line."""
    pairs = {n: options[n] for n in PairSettings.model_fields if n in options}
    columns = {n: options[n] for n in ResultColumns.model_fields if n in options}
    missing = options.get("missing", "missing")
    return read(source, PairSettings(**pairs), ResultColumns(**columns), missing=missing)


WIDE = {"first": "canonical", "second": "redirect", "cluster": ("triplet_id",)}

ROWS = [
    {"triplet_id": "7", "name": "NA", "canonical": "1", "redirect": "0"},
    {"triplet_id": "7", "name": "null", "canonical": "True", "redirect": "true"},
    {"triplet_id": "9", "name": "ППК", "canonical": "false", "redirect": ""},
]


def write_csv(path, rows):
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_of_text_and_of_types_hold_the_same_pairs(tmp_path, kind):
    """Labels "NA" and "null" stay text, and an empty verdict is missing."""
    file = write_csv(tmp_path / "verdicts.csv", ROWS)
    if kind == "parquet":
        file = tmp_path / "verdicts.parquet"
        cells = {"canonical": [True, True, False], "redirect": [False, True, None]}
        pd.DataFrame(ROWS).assign(**cells).to_parquet(file)

    frame = read_verdicts(file, WIDE)

    assert frame["name"].tolist() == ["NA", "null", "ППК"]
    assert frame["first_correct"].tolist() == [True, True, False]
    assert frame["second_correct"].isna().tolist() == [False, False, True]
    assert frame["item"].tolist() == ["7", "7", "9"]


def test_data_sets_frames_and_rows_are_read():
    for source in (pd.DataFrame(ROWS), ROWS, iter(ROWS)):
        assert read_verdicts(source, WIDE)["first_correct"].tolist() == [True, True, False]
    datasets = pytest.importorskip("datasets")
    typed = [row | {"canonical": 1, "redirect": place % 2} for place, row in enumerate(ROWS)]
    found = read_verdicts(datasets.Dataset.from_list(typed), WIDE)
    assert found["second_correct"].tolist() == [False, True, False]


def test_one_row_a_condition_is_paired(tmp_path):
    cells = ["1 canonical 1", "1 redirect 0", "1 redirect 1", "2 redirect 0", "2 canonical 0"]
    rows = [dict(zip(("item", "form", "correct"), one.split(), strict=True)) for one in cells]
    options = {"first": "canonical", "second": "redirect", "condition": "form"}

    frame = read_verdicts(write_csv(tmp_path / "long.csv", rows), options)

    assert frame["first_correct"].tolist() == [True, True, False]
    assert frame["second_correct"].tolist() == [False, True, False]


HARNESS = {"first": "canonical", "second": "redirect", "condition": "form", "item": ("triplet_id",)}


def harness_samples(path, **scores):
    """Lines as lm-evaluation-harness 0.4.13 writes them with --log_samples, two forms of a fact."""
    rows = [
        {
            "doc_id": number,
            "doc": {"triplet_id": f"T{number // 2}", "form": ("canonical", "redirect")[number % 2]},
            "target": "Prague",
            "arguments": {"gen_args_0": {"arg_0": f"Q{number}", "arg_1": {"until": ["\n"]}}},
            "resps": [["Prague"]],
            "filtered_resps": ["Prague"],
            "filter": "none",
            "metrics": list(scores),
            "doc_hash": f"d{number}",
            "prompt_hash": f"p{number}",
            "target_hash": "t",
            **{name: values[number] for name, values in scores.items()},
        }
        for number in range(4)
    ]
    return write_jsonl(path / "samples_facts_2026-11-22.jsonl", rows)


def test_samples_of_the_harness_are_read(tmp_path):
    """Fields of the document go by their own names; of several metrics one is chosen."""
    path = harness_samples(tmp_path, em=[1.0, 0.0, 1.0, 1.0], acc=[0.0, 0.0, 0.0, 1.0])

    with pytest.raises(DataError, match=r"scores by em.*, acc.*choose one by `score`"):
        read_verdicts(path, HARNESS)
    acc = read_verdicts(path, {"score": "acc"} | HARNESS)
    assert acc["first_correct"].tolist() == [False, False]
    frame = read_verdicts(harness_samples(tmp_path, exact_match=[1.0, 0.0, 1.0, 1.0]), HARNESS)
    assert frame["item"].tolist() == ["T0", "T1"]
    assert frame["first_correct"].tolist() == [True, True]
    assert frame["second_correct"].tolist() == [False, True]


def test_conditions_that_are_left_out_are_told(caplog):
    rows = [{"item": 1, "form": form, "correct": 1} for form in ("a", "b", "c")]

    read_verdicts(rows, {"first": "a", "second": "b", "condition": "form"})

    assert "left out: rows whose form is 'c'" in caplog.text


FORMS = [{"question": 1, "form": form} for form in ("plain", "polite", "terse")]
TERSE = {"first": "plain", "second": "tersee", "condition": "form"}
SHARED = [{"item": 1, "form": form, "correct": 1} for form in ("a", "a", "b")]
AB = {"first": "a", "second": "b", "condition": "form"}
HEAD = "triplet_id,canonical,redirect\n7,1,0\n7,True,true\n9,false,\n"
LARGE = "canonical,redirect\n" + "1,0\n" * 5_000 + "1,maybe\n"
TWICE = "Canonical,CANONICAL,redirect\n1,0,1\n"
PLAIN = {"first": "canonical", "second": "redirect"}
BY_ID = WIDE | {"pair": "triplet_id"}
OTHER = PLAIN | {"second": "alias"}


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        (FORMS, TERSE, ValueError, r"'tersee' is no value .*mean 'terse'\?\); there are plain, "),
        (SHARED, AB, ValueError, "name what tells them apart through `item` besides"),
        (f"{HEAD}7,1,NA\n", WIDE, ValueError, r"v\.csv: row 4, column 'redirect': 'NA' is no ver"),
        (HEAD, OTHER, ColumnNotFoundError, r"second='alias' .*\['triplet_id', 'can"),
        (HEAD, BY_ID, ValueError, "pair id '7' stands more than once"),
        (TWICE, PLAIN, ColumnNotFoundError, "'Canonical' and 'CANONICAL' are both writings"),
        (LARGE, PLAIN, ValueError, r"v\.csv: row 5001, column 'redirect': 'maybe' is no verd"),
        (None, WIDE, SourceNotFoundError, "no file or folder .*nowhere.csv"),
        ([1, 2], WIDE, TypeError, "row 1 must be a mapping, got int"),
        ([], WIDE, ValueError, "no rows"),
    ],
)
def test_read_verdicts_rejects_bad_input(tmp_path, caplog, source, options, error, message):
    if source is None:
        source = tmp_path / "nowhere.csv"
    elif isinstance(source, str):
        (tmp_path / "v.csv").write_text(source)
        source = tmp_path / "v.csv"

    with pytest.raises(error, match=message):
        read_verdicts(source, options)
    assert not caplog.text


@pytest.mark.parametrize(
    ("header", "label"), [("Form ,Item,Correct", "Canonical "), ("form,item, correct", "canonical")]
)
def test_near_names_of_columns_and_conditions_are_read(tmp_path, header, label):
    """Case and white space do not matter where nothing else bears the name."""
    path = tmp_path / "v.csv"
    path.write_text(f"{header}\n{label},q1, 1 \nredirect,q1,0\n")
    names = {"first": "canonical", "second": "redirect", "condition": "form", "item": ("item",)}

    frame = read_verdicts(path, names)

    assert frame[["first_correct", "second_correct"]].values.tolist() == [[True, False]]


@pytest.mark.parametrize(
    ("row", "words", "told"),
    [
        ({"g": {"x": 1}}, ["--by", "g"], r"column 'g' holds .*a dict, which makes no group; name"),
        ({"g": ["a", [1]]}, ["--by", "g"], r"column 'g' holds '\[1\]', a list, which makes no gro"),
        ({"item": "\ud800"}, [], r"v.jsonl: row 2: column 'item' holds half a surr.*replace"),
        ({"g/h": 1}, ["--by", "g/h", "--out", "out"], r"column 'g/h' cannot name the file of a t"),
        ({}, ["--out", "out\udc80"], r"'out\\udc80.* holds bytes that are no UTF-8.*rename"),
    ],
)
def test_what_no_file_or_group_can_hold_is_told_in_one_line(
    tmp_path, monkeypatch, capsys, row, words, told
):
    monkeypatch.chdir(tmp_path)
    rows = [{"item": str(place), "a": 1, "b": 0, "g/h": place % 2} for place in range(4)]
    rows[1] |= row
    write_jsonl(Path("v.jsonl"), rows)

    assert main(["paired", "v.jsonl", "--first", "a", "--second", "b", *words]) == 2

    [line] = [one for one in capsys.readouterr().err.splitlines() if "warning: " not in one]
    assert re.search(f"^error: .*{told}", line)


SHELVES = [
    {"shelf": "a", "One ": "1", "two": "0", "note": "x"},
    {"shelf": "b", "One ": "TRUE", "two": "", "note": ""},
    {"shelf": "a", "One ": "0", "two": " 1.0", "note": "NA"},
]


@pytest.mark.parametrize(("missing", "blank"), [("missing", pd.NA), ("wrong", False)])
def test_a_table_read_by_columns_says_what_it_says_by_rows(tmp_path, missing, blank):
    file = tmp_path / "wide.csv"
    pd.DataFrame(SHELVES).to_csv(file, index=False)
    columns = {"first": "one", "second": "two", "cluster": ("shelf",), "missing": missing}
    by_columns, by_rows = read_verdicts(file, columns), read_verdicts(SHELVES, columns)

    assert by_columns.to_dict("records") == by_rows.to_dict("records")
    assert by_columns["first_correct"].tolist() == [True, True, False]
    assert by_columns["second_correct"].tolist() == [False, blank, True]


def test_parquet_with_gaps_is_read_as_its_rows(tmp_path):
    frame = pd.DataFrame({"one": [1, None, 0], "two": [0, 1, 1], "topic": ["x", "y", None]})
    frame.to_parquet(tmp_path / "wide.parquet")
    read = read_verdicts(tmp_path / "wide.parquet", {"first": "one", "second": "two"})

    assert read["first_correct"].tolist() == [True, pd.NA, False]
    assert read["topic"].isna().tolist() == [False, False, True]


def test_conditions_are_called_as_their_columns_their_label_or_as_a_file_of_ours_says():
    rows = [{"item": n, "a": 1, "b": n % 2, "first_condition": "title"} for n in range(4)]
    called = ["first_condition", "second_condition"]
    own = {"first": "first_correct", "second": "second_correct"}
    ours = dict.fromkeys(own.values(), 1) | dict(zip(called, ("title", "redirect"), strict=True))

    for source, options, expected in (
        (rows, {"first": "a", "second": "b"}, ["a", "b"]),
        (rows, {"first": "a", "second": "b", "names": ("old", "new")}, ["old", "new"]),
        ([ours] * 2, own, ["title", "redirect"]),
    ):
        found = read_verdicts(source, options)[called]
        assert found.drop_duplicates().values.tolist() == [expected]
    with pytest.raises(DataError, match="`names` names the two conditions; got one"):
        read_verdicts(rows, {"first": "a", "second": "b", "names": ("one",)})


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.SurfaceConsistencyWarning")
def test_the_page_shows_the_answers_of_the_file_and_else_no_browser(tmp_path):
    rows = [{"item": n, "a": 1, "b": n % 2, "question": f"Who is {n}?"} for n in range(8)]
    told = {"first_prediction": "Ada Lovelace", "second_prediction": "somebody else"}
    pages = {}
    for name, more in (("bare", {}), ("told", told)):
        file = write_jsonl(tmp_path / f"{name}.jsonl", [row | more for row in rows])
        words = ["paired", str(file), "--first", "a", "--second", "b", "--names", "old", "new"]
        assert main([*words, "--out", str(tmp_path / name)]) == 0
        pages[name] = (tmp_path / name / "report.html").read_text(encoding="utf-8")

    assert "Ada Lovelace" in pages["told"]
    assert "Who is 3?" in pages["told"]
    assert "no answer" not in pages["told"]
    assert 'id="answers"' in pages["told"]
    assert 'id="answers"' not in pages["bare"]
    assert "new only" in pages["bare"]
