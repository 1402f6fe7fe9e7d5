"""Sheets for human labels."""

import csv

import pandas as pd
import pytest

from surface_consistency.engine.judging.judges import HumanJudge
from surface_consistency.engine.judging.labels import read_labels, write_labelling_sheet
from surface_consistency.errors import DataError


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.fixture
def tasks(task):
    """Ten answers of each form, one of which is missing."""
    made = [
        task(form, f"answer {n}", f"{form}-{n}") for form in ("short", "long") for n in range(9)
    ]
    made += [task("short", None, "short-9"), task("long", None, "long-9")]
    return pd.concat(made, ignore_index=True)


def test_a_labelling_sheet_samples_each_form_and_is_read_back(tasks, judged, tmp_path):
    path = tmp_path / "sheet.csv"

    assert write_labelling_sheet(path, tasks, n=6, seed=3) == 12

    rows = rows_of(path)
    assert [row["form"] for row in rows] == ["short"] * 6 + ["long"] * 6
    assert {row["correct"] for row in rows} == {""}
    assert len({(row["prompt_id"], row["question_id"]) for row in rows}) == 12
    assert not {"short-9", "long-9"} & {row["prompt_id"] for row in rows}
    assert read_labels(path)["correct"].isna().all()
    path.write_text(path.read_text().replace(",,,short", ",1,,short"))
    assert sum(j.correct is True for j in judged(HumanJudge(path), tasks)) == 6


def test_sheet_depends_on_the_seed_and_contains_all_answers_of_a_small_run(tasks, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_labelling_sheet(tmp_path / name, tasks, n=5, seed=seed)

    texts = [(tmp_path / name).read_text() for name in "abc"]
    assert texts[0] == texts[1] != texts[2]
    assert write_labelling_sheet(tmp_path / "sheet.csv", tasks, n=1_000) == 9 + 45


@pytest.mark.parametrize(
    ("answer", "cell"),
    [
        ('=HYPERLINK("http://x")', '\'=HYPERLINK("http://x")'),
        ("-1 degree", "'-1 degree"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("zwei\nZeilen, mit Komma", "zwei\nZeilen, mit Komma"),
        ("ローマ帝国", "ローマ帝国"),
        # Read as one row only if the cell is quoted.
        ("one\rtwo", "one\rtwo"),
        # A leading quote is escaped, so that the escape can be undone.
        ("'=1", "''=1"),
        ("-40", "-40"),
    ],
)
def test_cells_that_look_like_formulas_are_escaped(task, tmp_path, answer, cell):
    path = tmp_path / "sheet.csv"

    write_labelling_sheet(path, task("short", answer))

    assert rows_of(path)[0]["answer"] == cell


def test_ids_that_look_like_formulas_are_read_back(tasks, judged, tmp_path):
    path = tmp_path / "sheet.csv"
    tasks = tasks.assign(prompt_id="=" + tasks["prompt_id"])

    write_labelling_sheet(path, tasks, n=2)
    path.write_text(path.read_text().replace(",,,short", ",1,,short"))

    assert rows_of(path)[0]["prompt_id"].startswith("'=")
    assert sum(one.correct is True for one in judged(HumanJudge(path), tasks)) == 2


@pytest.mark.parametrize(
    ("answer", "cell", "is_it"),
    [
        ("In Rome.\nIt is old.", "In Rome. It is old.", True),
        ("1912-04-15", "15.04.1912", True),
        ("false", "FALSE", True),
        ("a word " * 9_000, ("a word " * 9_000)[:32_767], True),
        ("In Rome.", "In Milan.", False),
        ("It was in Rome, and not before the year 1912.", "It was in Milan.", False),
        (None, "In Rome.", False),
    ],
)
def test_labels_of_other_answers_than_those_of_the_run_are_rejected(
    task, judged, tmp_path, answer, cell, is_it
):
    path = tmp_path / "sheet.csv"
    write_labelling_sheet(path, task("short", cell))
    row = rows_of(path)[0] | {"correct": "1", "answer": cell}
    pd.DataFrame([row]).to_csv(path, index=False)

    if is_it:
        assert judged(HumanJudge(path), task("short", answer))[0].correct
    else:
        with pytest.raises(DataError, match="1 of 1 labels belong to answers that differ"):
            judged(HumanJudge(path), task("short", answer))


def test_sheets_without_answers_or_sample_are_rejected(task, tmp_path):
    with pytest.raises(ValueError, match="there is no answer to label"):
        write_labelling_sheet(tmp_path / "sheet.csv", task("short", None))
    with pytest.raises(ValueError, match="must be 1 or more, got 0"):
        write_labelling_sheet(tmp_path / "sheet.csv", task("short", "a"), n=0)


def test_empty_rows_of_a_labelling_sheet_are_ignored(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("prompt_id,question_id,correct\np,q,1\n,,\n,,\n")

    assert read_labels(path)[["prompt_id", "question_id"]].values.tolist() == [["p", "q"]]
