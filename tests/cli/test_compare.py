"""The command `compare`: reading of files, sentences, JSON, Markdown and exit codes."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from surface_consistency.analysis.measures import accuracy, consistency, paired
from surface_consistency.cli.main import main
from surface_consistency.cli.output import WORSE
from surface_consistency.errors import DataError

FILES = Path(__file__).parents[1] / "data" / "files" / "forms"

CELLS = ("both", "reference_only", "model_only", "neither")
NEMO = [str(next((FILES / "nemo_evaluator" / model).glob("*"))) for model in ("alpha", "beta")]


@pytest.fixture
def worse(tmp_path):
    """Two files of 40 items; the second model loses ten."""
    files = []
    for name, lost in (("main", 0), ("branch", 10)):
        rows = [{"item": n, "score": n >= lost, "prediction": f"{name} {n}"} for n in range(40)]
        files.append(str(tmp_path / f"{name}.jsonl"))
        pd.DataFrame(rows).to_json(files[-1], orient="records", lines=True)
    return files


def test_two_files_of_a_tool_require_no_option(capsys):
    """With --json one object is printed."""
    assert main(["compare", *NEMO]) == 0
    out = " ".join(capsys.readouterr().out.split())
    sentence = (
        "The accuracy (reward) does not differ significantly between alpha and beta (difference"
    )
    assert sentence in out
    assert "Clusters: items, assumed to be independent" in out
    assert main(["compare", *NEMO, "--names", "a", "b", "--json", "--wide"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    (row,) = json.loads(line)["rows"]
    assert (row["model"], row["reference"]) == ("b", "a")
    assert [row[name] for name in CELLS] == [3, 2, 0, 1]


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
def test_exit_code_reports_a_worse_model(worse, options, code, capsys):
    assert main(["compare", *worse, *options]) == code
    printed = capsys.readouterr()
    assert "branch" in printed.out
    assert ("worse than main by score" in printed.err) is (code == WORSE)
    clustered = (
        f"`fail_if` {options[1]}, clusters: items, assumed to be independent" if options else ""
    )
    assert printed.err.startswith(clustered)
    assert bool(printed.err) is bool(options)


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--score", "latency"], WORSE, "The mean score (latency, lower is better) is 20.0 points"),
        (
            ["--score", "latency", "--lower-is-better", "none"],
            0,
            "The mean score (latency) is 20.0",
        ),
        (["--metrics", "hits", "--lower-is-better", "hits", "latency"], 2, "--lower-is-better lat"),
        ([], 2, "neither scores nor answers; name the column of scores by --score"),
    ],
)
def test_cost_is_a_score_only_if_named(options, code, sentence, tmp_path, capsys):
    """Lower is better for a cost unless another direction is named."""
    for name, latency in (("one", 0.1), ("two", 0.3)):
        rows = [{"item": n, "latency": latency * (0.9 + n % 2 / 5)} for n in range(40)]
        pd.DataFrame(rows).assign(**{"hits": 1} if "hits" in options else {}).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    files = [str(tmp_path / f"{name}.csv") for name in ("one", "two")]

    fail = ["--fail-if", "worse", "--baseline", "one"]
    assert main(["compare", *files, *options, *fail]) == code
    assert sentence in " ".join("".join(capsys.readouterr()).split())


def test_markdown_and_page_list_lost_items_with_both_answers(worse, tmp_path, capsys):
    assert main(["compare", *worse, "--markdown"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("**The accuracy (score) is 25.0 points lower for branch than for main (9")
    assert "<summary>10 items lost</summary>" in out
    assert "`main 3` | `branch 3`" in out
    assert main(["compare", *worse, "--out", str(tmp_path / "page")]) == 0
    assert capsys.readouterr().out.rstrip().endswith("report.html")
    assert (tmp_path / "page" / "report.html").is_file()
    changed = pd.read_csv(tmp_path / "page" / "tables" / "changed.csv")
    assert changed["change"].tolist() == ["lost"] * 10


def test_file_with_models_items_and_forms_is_scored_by_a_rule(tmp_path, capsys):
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

    row, *groups = json.loads(capsys.readouterr().out)["rows"]
    assert (row["n"], row["n_clusters"], row["difference"]) == (24, 12, -0.5)
    assert [(one["prompt"], one["n"], one["difference"]) for one in groups] == [
        ("what", 12, -0.5),
        ("who", 12, -0.5),
    ]
    assert (row["prompt"], groups[0]["model_mean"], groups[0]["reference_mean"]) == (
        "all",
        0.25,
        0.75,
    )


def files_of(pattern):
    return list(dict.fromkeys(str(next(FILES.glob(pattern.format(m)))) for m in ("alpha", "beta")))


@pytest.mark.parametrize("tool", ["opencompass/predictions/{}", "vlmevalkit/{0}/{0}_Forms.tsv"])
def test_predictions_without_scores_require_a_rule(tool, capsys):
    files = files_of(tool)
    assert main(["compare", *files]) == 2
    assert "no row contains a score" in capsys.readouterr().err
    assert main(["compare", *files, "--rule", "exact", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["model_mean"] < row["reference_mean"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "contains no rows"),
        ("nr,score\n1,1\n", "'task_id'; name it by --item. Columns: nr, score"),
        ("id,score\n8,1\n9,1\n", "items are called '8' by broken, '1' by whole"),
        ("id,score\n8,1\n9,1\n", "error: by the metric 'score': no item has a score for every"),
        ("id,score\n1,\n2,\n", "(items with a score: broken 0, whole 2); drop broken"),
        ("id,prompt,score\n1,Who?,1\n1,Whom?,0\n", "column that distinguishes them by --form"),
    ],
)
def test_error_of_an_invalid_file_states_the_problem(tmp_path, content, sentence, capsys):
    (tmp_path / "broken.csv").write_text(content)
    (tmp_path / "whole.csv").write_text("id,score\n1,1\n2,0\n")
    assert main(["compare", str(tmp_path / "broken.csv"), str(tmp_path / "whole.csv")]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "pass result files, folders or run folders"),
        ([*NEMO, "--json", "--markdown"], "--json and --markdown are mutually"),
        ([*NEMO, "--margin", "0"], "--margin: input should be greater than 0"),
        ([*NEMO, "--margin", "2"], "margin 2 includes the whole scale, 0 to 1"),
        ([*NEMO, "--fail-if", "maybe-worse"], "requires --margin"),
        ([*NEMO, "--cluster", "shelf"], "shelf"),
    ],
)
def test_invalid_options_raise_with_the_remedy(words, message, capsys):
    assert main(["compare", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def answers(tmp_path):
    """40 items in two forms by two models; four items per article."""
    rows = [
        {"model": model, "fact": n, "wording": form, "article": n // 4, "hit": (n + k) % 3 > 0,
         "kind": "ab"[n % 2]}
        for n in range(40) for k, form in enumerate(("who", "what")) for model in ("m", "n")
    ]  # fmt: skip
    file = tmp_path / "answers.csv"
    pd.DataFrame(rows).astype({"hit": int}).to_csv(file, index=False)
    return file


@pytest.mark.parametrize("function", [accuracy, consistency])
def test_command_prints_the_result_of_its_function(answers, function, capsys):
    names = {"item": "fact", "form": "wording", "score": "hit", "cluster": "article"}
    words = [part for name, value in names.items() for part in (f"--{name}", value)]
    command = [function.__name__, str(answers), *words, "--by", "kind"]
    expected = function(pd.read_csv(answers), **names, by="kind")

    assert main([*command, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == json.loads(json.dumps(expected.to_dict()))
    assert main([*command, "--latex"]) == 0
    assert capsys.readouterr().out == expected.to_latex() + "\n"
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    *rows, level = lines[-5:]
    assert [row.split()[:2] for row in rows] == [[*pair] for pair in ("ma", "mb", "na", "nb")]
    assert level == "95 % confidence intervals in brackets."
    assert max(map(len, lines)) <= 80
    assert main([*command, "--wide"]) == 0
    assert capsys.readouterr().out.splitlines()[-2].startswith(rows[-1][:10])


def test_column_that_groups_items_is_named_in_a_note(answers, capsys):
    words = ["accuracy", str(answers), "--item", "fact", "--form", "wording", "--score", "hit"]

    assert main(words) == 0
    found = " ".join(capsys.readouterr().out.split())
    assert "Clusters: article, a context that items share: 40 items in 10; pass" in found
    for named in ("article", "fact"):
        assert main([*words, "--cluster", named]) == 0
        assert "Clusters: article" not in capsys.readouterr().out


def test_column_of_forms_can_be_a_group(answers, capsys):
    words = ["accuracy", str(answers), "--item", "fact", "--form", "wording", "--score", "hit"]

    assert main([*words, "--by", "wording", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["wording"] for row in rows] == ["what", "who", "what", "who"]


def test_conditions_in_rows_are_paired_like_those_in_columns(tmp_path, capsys):
    rows = pd.DataFrame({"item": range(30), "a": [1, 1, 0] * 10, "b": [1, 0, 0] * 10})
    rows.to_csv(tmp_path / "wide.csv", index=False)
    long = rows.melt("item", var_name="name", value_name="correct")
    long.to_csv(tmp_path / "long.csv", index=False)
    words = ["--first", "a", "--second", "b", "--json"]

    assert main(["paired", str(tmp_path / "wide.csv"), *words]) == 0
    assert main(["paired", str(tmp_path / "long.csv"), *words, "--condition", "name"]) == 0

    wide, other = map(json.loads, capsys.readouterr().out.splitlines())
    assert wide == other
    assert wide["rows"] == paired(rows, first="a", second="b").to_dict()["rows"]


def test_single_row_is_printed_as_names_and_values(answers, capsys):
    words = ["--item", "fact", "--form", "wording", "--score", "hit", "--cluster", "article"]

    assert main(["compare", str(answers), *words]) == 0

    out = capsys.readouterr().out
    assert "\nmodel: n\nreference: m\nDifference (points): 0.0" in out
    assert "\nn: 80\nclusters: 10\n" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["accuracy"], "pass one or more result files or folders"),
        (["accuracy", "{}", "--json", "--latex"], "--json and --latex are mutually"),
        (["consistency", "{}", "--markdown", "--wide"], "--wide has no effect on --markdown"),
        (["compare", "{}", "--first", "a"], "use `surface-consistency paired`"),
        (["analyse", "forms", "{}"], "analyse forms was removed"),
        (["accuracy", "{}", "--cluster", "fact", "article"], "--cluster takes one column"),
        (["accuracy", "{}", "--scores", "hit"], "Unknown option: --scores. Did you mean --score"),
    ],
)
def test_invalid_option_of_a_measure_is_reported(answers, words, message, capsys):
    assert main([word.format(answers) for word in words]) == 2
    assert message in capsys.readouterr().err


def test_several_metrics_are_not_averaged(tmp_path, capsys):
    pd.DataFrame({"id": [1, 2, 3], "f1": [0.5, 1, 0], "em": [0, 1, 0]}).to_csv(
        tmp_path / "scores.csv", index=False
    )

    assert main(["accuracy", str(tmp_path / "scores.csv")]) == 2
    assert "pass --by metric for one row per metric" in capsys.readouterr().err
    assert main(["accuracy", str(tmp_path / "scores.csv"), "--by", "metric"]) == 0


@pytest.mark.parametrize("column", ["answer", "response"])
@pytest.mark.parametrize("command", ["compare", "consistency"])
def test_error_for_answers_without_scores_names_options_that_score(
    tmp_path, capsys, command, column
):
    rows = [{"item": n // 2, "form": n % 2, "capital": "Rome", column: "Rome"} for n in range(20)]
    file = tmp_path / "answers.csv"
    pd.DataFrame(rows).to_csv(file, index=False)

    assert main([command, str(file)]) == 2
    named = " ".join(re.findall(r"--(?:prediction|references|rule) \w+", capsys.readouterr().err))
    assert "--references COLUMN" in named
    assert main([command, str(file), *named.replace("COLUMN", "capital").split()]) == 0
    with pytest.raises(DataError, match=r"`prediction=answer`, .*by compare|columns\(.* `rule`"):
        consistency(file)


def test_answers_in_several_forms_are_scored_by_a_rule(tmp_path, capsys):
    rows = [
        {"item": n, "form": form, "prediction": "Rome" if n % 2 or form == "who" else "Oslo",
         "references": ["Rome"]}
        for n in range(20) for form in ("who", "what")
    ]  # fmt: skip
    file = tmp_path / "answers.jsonl"
    pd.DataFrame(rows).to_json(file, orient="records", lines=True)

    assert main(["consistency", str(file)]) == 2
    assert (
        "no row contains a score; name the column of scores by --score" in capsys.readouterr().err
    )
    assert main(["consistency", str(file), "--rule", "popqa", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["consistency"], row["all_correct"], row["accuracy"]) == (0.5, 0.5, 0.75)


@pytest.mark.parametrize("command", ["accuracy", "compare"])
def test_error_without_metrics_states_the_reason(tmp_path, capsys, command):
    rows = [
        {
            **{"doc_id": n, "doc": {"q": n}, "target": "A", "resps": [["A"]]},
            **{"filtered_resps": ["A"], "metrics": ["latency"], "latency": 0.5},
        }
        for n in range(20)
    ]
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))

    assert main([command, str(file)]) == 2
    assert (
        "latency is a cost, which is read as a score only if --metrics names it, so it is excluded"
        in (" ".join(capsys.readouterr().err.split()))
    )


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["compare"], "mean"),
        (["accuracy", "--cluster", "item"], "accuracy"),
        (["consistency"], "accuracy"),
        (["paired", "--condition", "form", "--first", "who", "--second", "what"], "first_accuracy"),
    ],
)
def test_fold_accents_requires_a_rule_and_applies_to_it(tmp_path, capsys, command, name):
    rows = [
        {"item": n, "form": form, "prediction": "Zurich", "references": ["Zürich"]}
        for n in range(20)
        for form in ("who", "what")
    ]
    file = tmp_path / "answers.jsonl"
    pd.DataFrame(rows).to_json(file, orient="records", lines=True)
    rates = []
    for folded in ([], ["--fold-accents"]):
        words = [command[0], str(file), *command[1:], "--rule", "boundary", *folded, "--json"]
        assert main(words) == 0
        rates.append(json.loads(capsys.readouterr().out)["rows"][0])

    assert [row[name] for row in rates] == [0, 1]
    assert main([command[0], str(file), *command[1:], "--fold-accents"]) == 2
    assert "--fold-accents has no effect without --rule; name a rule" in capsys.readouterr().err


def test_option_test_raises_for_one_model(tmp_path, capsys):
    file = tmp_path / "m.csv"
    pd.DataFrame({"item": range(40), "correct": [1, 0] * 20}).to_csv(file, index=False)

    assert main(["compare", str(file), "--test", "exact"]) == 2
    assert (
        "--test requires several models, but all results are of one model"
        in capsys.readouterr().err
    )
