"""Files with two conditions, which `paired` reads."""

import json

import pandas as pd
import pytest

from surface_consistency.analysis.measures import paired
from surface_consistency.analysis.settings import RuleSettings
from surface_consistency.cli.answers import read_pairs
from surface_consistency.cli.main import main
from surface_consistency.errors import ColumnNotFoundError, DataError, SourceNotFoundError
from surface_consistency.results.columns import ResultColumns

PLAIN = {"first": "canonical", "second": "redirect"}
ROWS = [
    {"triplet_id": "7", "name": "NA", "canonical": "1", "redirect": "0"},
    {"triplet_id": "7", "name": "null", "canonical": "True", "redirect": "true"},
    {"triplet_id": "9", "name": "ППК", "canonical": "false", "redirect": ""},
]


def write_csv(path, rows):
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def pairs(path, *, condition=None, rule=None, by=(), first="canonical", second="redirect", **named):
    given = {"first": first, "second": second} | ({"by": by} if by else {})
    scoring = RuleSettings(rule=rule)
    return read_pairs(path, ResultColumns(**named), given, scoring, condition=condition)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_files_with_and_without_types_give_the_same_pairs(tmp_path, kind):
    """Labels "NA" and "null" stay text, and an empty score is missing."""
    file = write_csv(tmp_path / "scores.csv", ROWS)
    if kind == "jsonl":
        file = write_jsonl(tmp_path / "scores.jsonl", ROWS)
    if kind == "parquet":
        file = tmp_path / "scores.parquet"
        cells = {"canonical": [True, True, False], "redirect": [False, True, None]}
        pd.DataFrame(ROWS).assign(**cells).to_parquet(file)

    frame, named, notes, _ = pairs(file, cluster=("triplet_id",))

    assert frame["name"].tolist() == ["NA", "null", "ППК"]
    assert frame["canonical"].tolist() == [1, 1, 0]
    assert frame["redirect"].fillna(-1).tolist() == [0, 1, -1]
    assert (named, notes) == ({"cluster": "triplet_id"}, [])


def long(*cells):
    return [dict(zip(("item", "form", "correct"), one.split(), strict=True)) for one in cells]


def test_rows_of_two_conditions_are_paired_by_item(tmp_path):
    rows = long("1 canonical 1", "1 redirect 0", "2 redirect 0.5", "2 canonical 0", "3 canonical 1")

    frame, named, notes, _ = pairs(write_csv(tmp_path / "long.csv", rows), condition="form")

    assert frame[["first_correct", "second_correct"]].values.tolist() == [[1, 0], [0, 0.5]]
    assert named["pair"] == named["item"] == "item"
    assert notes == ["1 rows under only one of the two conditions are excluded."]


def test_rows_of_other_conditions_are_excluded_with_a_note(tmp_path):
    file = write_csv(tmp_path / "long.csv", long("1 canonical 1", "1 redirect 0", "1 alias 0"))

    assert pairs(file, condition="form")[2] == ["1 rows with other values of form are excluded."]


def test_answers_under_two_conditions_are_scored_by_a_rule(tmp_path):
    cells = {"canonical": "It is Rome.", "redirect": "It is Oslo."}
    rows = [
        {"item": n, "form": form, "prediction": text, "references": ["Rome"]}
        for n in range(3)
        for form, text in cells.items()
    ]

    frame = pairs(write_jsonl(tmp_path / "a.jsonl", rows), condition="form", rule="popqa")[0]

    assert frame["first_correct"].tolist() == [1, 1, 1]
    assert frame["second_correct"].tolist() == [0, 0, 0]


def test_repeats_are_paired_by_their_number(tmp_path, capsys):
    rows = [
        {"item": n, "form": form, "seed": seed, "correct": (n + seed) % 2}
        for n in range(20)
        for seed in (1, 2)
        for form in PLAIN.values()
    ]
    file = str(write_csv(tmp_path / "long.csv", rows))

    words = ["--first", "canonical", "--second", "redirect", "--condition", "form", "--json"]
    assert main(["paired", file, *words]) == 0

    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["accuracy_difference"], row["test_retest_flip_rate"]) == (0.0, 1.0)


def samples(path, **scores):
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
    """Fields of the document keep their names; one of several metrics must be chosen."""
    path = samples(tmp_path, em=[1.0, 0.0, 1.0, 1.0], acc=[0.0, 0.0, 0.0, 1.0])
    named = {"condition": "form", "item": ("triplet_id",)}

    with pytest.raises(DataError, match=r"2 metrics .em.*, acc.*pass by='metric'"):
        pairs(path, **named)
    frame = pairs(path, metrics=("acc",), **named)[0]
    assert frame["item"].tolist() == ["T0", "T1"]
    assert frame[["first_correct", "second_correct"]].values.tolist() == [[0, 0], [0, 1]]


FORMS = long("1 canonical 1", "1 redirect 0")
TWICE = long("1 canonical 1", "1 canonical 0", "1 redirect 0")
UNPAIRED = long("1 canonical 1", "2 redirect 0")
HEAD = "triplet_id,canonical,redirect\n7,1,0\n"
FORM = {"condition": "form"}


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        (FORMS, FORM | {"second": "redirct"}, ColumnNotFoundError, "not a value .*'redirect'"),
        (FORMS, FORM | {"second": "canonical"}, ValueError, "each a value of form"),
        (TWICE, FORM, DataError, "occurs more than once with .*distinguishes the rows by `repeat`"),
        (UNPAIRED, FORM, DataError, "no item has a row under both"),
        (FORMS, FORM | {"by": ("form",)}, DataError, "'form' of item '1' differs between"),
        (
            f"{HEAD}7,1,NA\n",
            {},
            DataError,
            r"v\.csv: row 2, column 'redirect': 'NA' is not a score",
        ),
        (HEAD, {"second": "alias"}, ColumnNotFoundError, "column 'alias' of `second` not found"),
        (HEAD, {"second": None}, ValueError, "`first` and `second`, each a column of scores"),
        (HEAD, {"score": "x"}, ValueError, "`score` without `condition` has no effect"),
        (HEAD, {"rule": "popqa"}, ValueError, "`rule` without `condition` has no effect"),
        (HEAD, {"cluster": ("a", "b")}, ValueError, "`cluster` takes one column; got a, b"),
        ("canonical,redirect\n", {}, DataError, "v.csv has no rows; check how it was written"),
        ("Canonical,CANONICAL,redirect\n1,0,1\n", {}, ColumnNotFoundError, "both spellings of"),
        (None, {}, SourceNotFoundError, "file or folder .*nowhere.csv not found"),
    ],
)
def test_rows_that_cannot_be_paired_raise_an_error(tmp_path, source, options, error, message):
    path = tmp_path / ("nowhere.csv" if source is None else "v.csv")
    if isinstance(source, str):
        path.write_text(source)
    elif source:
        write_csv(path, source)

    with pytest.raises(error, match=message):
        pairs(path, **options)


def test_empty_cell_of_the_cluster_is_rejected(tmp_path, capsys):
    file = tmp_path / "v.csv"
    file.write_text(HEAD + ",1,1\n")
    words = ["--first", "canonical", "--second", "redirect", "--cluster", "triplet_id"]

    assert main(["paired", str(file), *words]) == 2
    assert "column 'triplet_id' has no id in row 1" in capsys.readouterr().err


def test_column_that_groups_pairs_is_the_cluster(tmp_path):
    file = write_csv(
        tmp_path / "v.csv", [{"article": n % 20, "a": n % 3, "b": 0} for n in range(80)]
    )
    frame, named, *_ = pairs(file, first="a", second="b")

    result = paired(frame.assign(a=frame["a"] > 0), first="a", second="b", **named)

    assert result.to_frame()["n_clusters"].tolist() == [20]
    assert "article, a context that items share: 80 items in 20" in result.note


def test_object_in_a_column_of_groups_is_rejected(tmp_path, capsys):
    rows = [{"item": str(place), "a": 1, "b": 0, "g": {"x": 1}} for place in range(4)]
    file = write_jsonl(tmp_path / "v.jsonl", rows)

    assert main(["paired", str(file), "--first", "a", "--second", "b", "--by", "g"]) == 2
    assert "column 'g' contains" in capsys.readouterr().err
