"""`compare` of models on the command line: files in; sentences, JSON, Markdown, exit codes out."""

import json
from pathlib import Path

import pandas as pd
import pytest

from surface_consistency.cli.main import main
from surface_consistency.cli.output import WORSE

FILES = Path(__file__).parents[1] / "data" / "files" / "forms"
NEMO = [str(next((FILES / "nemo_evaluator" / model).glob("*"))) for model in ("alpha", "beta")]


@pytest.fixture
def worse(tmp_path):
    """Two files of 40 items; the second model loses ten."""
    files = []
    for name, lost in (("main", 0), ("branch", 10)):
        rows = [
            {"item": n, "score": int(n >= lost), "prediction": f"{name} {n}"} for n in range(40)
        ]
        files.append(str(tmp_path / f"{name}.jsonl"))
        pd.DataFrame(rows).to_json(files[-1], orient="records", lines=True)
    return files


def test_two_files_of_a_tool_need_no_option(capsys):
    assert main(["compare", *NEMO]) == 0
    out = capsys.readouterr().out
    assert out.startswith("6 of 6 items have a score of every model.")
    assert "No difference is shown between beta and alpha on reward (−33.3 points" in out
    assert "3/2/0/1" in out
    assert "clusters: items, each on its own" in out


def test_json_is_one_object_a_metric(capsys):
    assert main(["compare", *NEMO, "--label", "a", "b", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    (row,) = json.loads(line)["differences"]
    assert (row["model"], row["reference"]) == ("b", "a")
    assert [row[name] for name in ("both", "reference_only", "model_only", "neither")] == [
        3,
        2,
        0,
        1,
    ]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 0),
        (["--fail-if", "worse"], WORSE),
        (["--fail-if", "worse", "--margin", "0.3"], 0),
        (["--fail-if", "maybe-worse", "--margin", "0.3"], WORSE),
        (["--fail-if", "worse", "--baseline", "branch"], 0),
    ],
)
def test_the_exit_code_tells_of_a_model_that_is_worse(worse, options, code, capsys):
    assert main(["compare", *worse, *options]) == code
    told = capsys.readouterr()
    assert "branch" in told.out
    assert ("branch against main by score" in told.err) is (code == WORSE)


def test_markdown_lists_what_was_lost_with_both_answers(worse, capsys):
    assert main(["compare", *worse, "--markdown"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("**branch is worse than main on score (−25.0 points [")
    assert "<summary>10 items lost</summary>" in out
    assert "main 3 | branch 3" in out


def test_a_page_and_its_tables_are_written(worse, tmp_path, capsys):
    assert main(["compare", *worse, "--out", str(tmp_path / "page")]) == 0
    assert capsys.readouterr().out.rstrip().endswith("report.html")
    assert (tmp_path / "page" / "report.html").is_file()
    changed = pd.read_csv(tmp_path / "page" / "tables" / "changed.csv")
    assert changed["change"].tolist() == ["lost"] * 10


def test_one_file_of_models_items_and_forms_is_judged_on_the_way(tmp_path, capsys):
    """The third call of the guide: a table of answers, each item in two paraphrases."""
    rows = [
        {"model": model, "fact": fact, "paraphrase": form, "prompt": form,
         "prediction": "Rome" if fact < reach else "no idea", "references": ["Rome"]}
        for model, reach in (("m", 9), ("n", 3)) for fact in range(12) for form in ("who", "what")
    ]  # fmt: skip
    file = tmp_path / "answers.jsonl"
    pd.DataFrame(rows).to_json(file, orient="records", lines=True)
    words = ["--item", "fact", "--form", "paraphrase", "--model", "model", "--by", "prompt"]

    assert main(["compare", str(file), *words, "--rule", "popqa", "--json"]) == 0

    shown = json.loads(capsys.readouterr().out)
    (row,) = shown["differences"]
    assert (row["n"], row["n_clusters"], row["difference"]) == (24, 12, -0.5)
    assert {(one["by"], one["group"]) for one in shown["groups"]} >= {("prompt", "who")}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give result files or folders of the models"),
        ([NEMO[0]], "all results are of one model"),
        ([*NEMO, "--first", "a"], "name models of files and runs by --label"),
        ([*NEMO, "--common"], "--common is for the folders of two runs"),
        ([*NEMO, "--json", "--markdown"], "--json and --markdown are two forms"),
        ([*NEMO, "--margin", "0"], "--margin must be more than 0"),
        ([*NEMO, "--baseline", "gamma"], "--baseline='gamma' is none of the models"),
        ([*NEMO, "--fail-if", "maybe-worse"], "needs --margin"),
        ([*NEMO, "--cluster", "shelf"], "shelf"),
        ([*NEMO, "--correct", "x"], "--correct is called --score now"),
        ([*NEMO, "--blank", "wrong"], "--blank is called --missing now"),
        ([*NEMO, "--scale", "2", "3"], "outside the scale 2 to 3"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(words, message, capsys):
    assert main(["compare", *words]) == 2
    assert message in capsys.readouterr().err
