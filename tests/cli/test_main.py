"""The command line, from arguments to output and exit code."""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import surface_consistency
from surface_consistency.cli.main import _Terminal, main
from surface_consistency.cli.output import WORSE
from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.data.sources import SAMPLES
from surface_consistency.engine import import_verdicts
from surface_consistency.errors import PluginError
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from tests.cli.runners import write_runner
from tests.needs import NEEDS_TORCH

CONSTANT = """
def fingerprint(self):
    return {"answer": self.options["answer"]}

def generate(self, prompts, params):
    for prompt in prompts:
        yield Generation(prompt_id=prompt.id, text=self.options["answer"])
"""
PAIRED = ["--first", "a", "--second", "b"]
SAMPLE = ["--source", "sample"]
MODEL = ["--model", "m", "--out", "y"]


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """A runner in a user-defined module, which answers every prompt with "London"."""
    options = {"answer": "London", "api_key": ""}
    return write_runner(tmp_path, monkeypatch, "cli_runner", "Knowing", CONSTANT, **options)


def run(runner, out, *more):
    return main(["run", "redirectqa", *SAMPLE, "--runner", runner, "--out", str(out), *more])


def test_run_score_and_report_write_their_files(runner, tmp_path, capsys):
    first, second, both = (tmp_path / name for name in ("first", "second", "both"))

    assert run(runner, first, "--label", "one", "--limit", "20") == 0
    assert run(runner, second, "--label", "two", "--template", "both", "--limit", "20") == 0
    assert main(["score", str(first), "--rule", "boundary", "--fold-accents"]) == 0
    assert main(["report", str(first), str(second), "--out", str(both)]) == 0

    for folder in (first, second, both):
        assert (folder / "report.html").is_file()
        assert len(pd.read_csv(folder / "tables" / "overall.csv"))
    assert set(pd.read_csv(both / "tables" / "overall.csv")["model"]) == {"one", "two"}
    printed = capsys.readouterr().out
    assert printed.startswith("The accuracy of one under “title” is 0.0")
    assert "The bundled sample was used: the numbers do not describe a model.\n\nAll" in printed
    assert "report:" in printed
    assert "one by matching rule boundary+fold_accents on the first line; two by" in printed
    made = (first / "report.html").read_text(encoding="utf-8")
    assert f"surface-consistency run redirectqa --source sample --runner {runner}" in made
    assert f"surface-consistency score {first} --rule boundary --fold-accents" in made


def test_run_accepts_options_of_the_runner(runner, tmp_path, capsys):
    """Options of a runner are set by name; --json prints one object; secrets are not recorded."""
    options = ["--runner-option", "answer=Paris", "api_key=sk-123", "--max-new-tokens=9"]
    assert run(runner, tmp_path / "run", *options, "--limit", "5") == 0
    capsys.readouterr()
    assert run(runner, tmp_path / "again", "--limit", "5", "--json") == 0

    printed = json.loads(capsys.readouterr().out)
    assert printed["report"] == str(tmp_path / "again" / "report.html")
    row = printed["tables"]["overall"][0]
    assert sum(row[name] for name in ("both", "first_only", "second_only", "neither")) == row["n"]
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["runner"] == {"answer": "Paris"}
    assert manifest["command"].endswith("api_key=... --max-new-tokens=9 --limit 5")


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UnscoredWarning")
def test_message_about_predictions_does_not_suggest_a_repeated_run(tmp_path, capsys):
    plan = RedirectQAStudy().plan(load_redirectqa("sample"), RedirectQAStudy.records.settings())
    names = plan.items["prompt_id"].unique()
    lines = [f"{name},{'' if n < 3 else 'x'}\n" for n, name in enumerate(names)]
    (tmp_path / "answers.csv").write_text("id,pred\n" + "".join(lines))

    assert score(tmp_path, "--study", "redirectqa", "--predictions", tmp_path / "answers.csv") == 3

    printed = capsys.readouterr().out
    assert "3 of 584 prompts have no answer" in printed
    assert "The predictions contain none, or a blank one." in printed
    assert "runs them again" not in printed


def test_options_without_effect_on_finished_predictions_raise(tmp_path, capsys):
    plan = RedirectQAStudy().plan(load_redirectqa("sample"), RedirectQAStudy.records.settings())
    names = plan.items["prompt_id"].unique()
    (tmp_path / "a.csv").write_text("id,pred\n" + "".join(f"{name},x\n" for name in names))
    words = ["--predictions", tmp_path / "a.csv"]

    assert score(tmp_path, *words, "--shots", "3", "--seed", "1", "--limit", "9") == 2
    assert "--seed, --shots have no effect" in capsys.readouterr().err.replace(
        "--shots, --seed", "--seed, --shots"
    )
    assert not (tmp_path / "run").exists()


def test_report_writes_into_the_folder_of_a_single_run(runner, tmp_path, capsys):
    assert run(runner, tmp_path / "run", "--limit", "3") == 0
    (tmp_path / "run" / "report.html").unlink()

    assert main(["report", str(tmp_path / "run"), "--setting", "resamples=10"]) == 0
    assert (tmp_path / "run" / "report.html").is_file()
    assert main(["report", str(tmp_path / "run"), str(tmp_path / "run")]) == 2
    assert "--out is required for several runs" in capsys.readouterr().err


def test_option_without_value_is_not_reported_as_unknown(capsys):
    assert main(["run", "unlearning", "--runner", "x", "--out", "y"]) == 2
    assert capsys.readouterr().err == "error: --source is required and takes a value\n"


def test_common_options_come_before_the_others(capsys):
    assert main(["run", "redirectqa", "--help"]) == 0
    common, _, more = capsys.readouterr().out.partition("More options")
    assert all(flag in common for flag in ("Common options", "--out", "--source", "--rule"))
    assert all(flag in more for flag in ("--dtype", "--shots", "--setting"))


def test_comparison_or_another_study_does_not_replace_a_run(runner, tmp_path, capsys):
    out = str(tmp_path / "run")
    assert run(runner, out, "--limit", "3") == 0
    manifest = (tmp_path / "run" / "manifest.json").read_bytes()
    file = tmp_path / "v.csv"
    file.write_text("item,a,b\nx,1,0\ny,1,1\n")
    compare = ["paired", str(file), *PAIRED, "--out"]
    slaq = ["run", "slaq", "--source", "sample", "--runner", runner, "--limit", "1", "--out"]

    assert main([*compare, out]) == 2
    assert "contains a run; choose another folder" in capsys.readouterr().err
    assert main([*slaq, out]) == 2
    assert "contains a run of redirectqa, not of slaq; choose another" in capsys.readouterr().err
    assert (tmp_path / "run" / "manifest.json").read_bytes() == manifest
    frame = pd.read_csv(file).assign(pair=["x", "y"], first_correct=1, second_correct=0)
    import_verdicts(frame, tmp_path / "own", origin="v.csv", first="a", second="b")
    assert main(["score", str(tmp_path / "own")]) == 2
    assert "contains correctness labels that were made elsewhere" in capsys.readouterr().err


@pytest.mark.filterwarnings("default::surface_consistency.errors.UnscoredWarning")
def test_imported_labels_can_be_reported_again(labels_csv, tmp_path, capsys):
    """Imported labels are a run, but runs of other conditions are not compared with it."""
    out, again = tmp_path / "page", tmp_path / "again"
    frame = pd.read_csv(labels_csv, keep_default_na=False, na_values=[""])
    for folder, *conditions in (
        (out, "canonical", "redirect"),
        (tmp_path / "turned", "redirect", "canonical"),
    ):
        columns = dict(zip(conditions, ("first_correct", "second_correct"), strict=True))
        pairs = frame.rename(columns=columns | {"triplet_id": "item"})
        pairs = pairs.assign(pair=range(len(pairs)))
        named = dict(zip(("first", "second"), conditions, strict=True))
        import_verdicts(pairs, folder, origin="v.csv", by=["category"], **named)

    few = ["--setting", "resamples=100"]
    assert main(["report", str(out), "--out", str(again), *few]) == 0
    groups = pd.read_csv(again / "tables" / "by_category.csv", keep_default_na=False)
    assert sorted(groups["category"]) == sorted(frame["category"].unique())
    assert "canonical only" in (again / "report.html").read_text(encoding="utf-8")
    assert main(["report", str(out), "--fact", "3"]) == 0
    assert main(["run", "verdicts", "--source", "x", "--out", "y"]) == 2
    assert "correctness labels that were made elsewhere" in capsys.readouterr().err
    both = [str(out), str(tmp_path / "turned")]
    assert main(["report", *both, "--out", str(again)]) == 2
    assert "'canonical' and 'redirect' by category" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:292 of 584 predictions belong to no question of the data")
def test_score_accepts_predictions_made_elsewhere(tmp_path):
    questions = load_redirectqa("sample").questions
    rows = [{"question": q.question, "output": q.triple.answers[0]} for q in questions]
    file = tmp_path / "mine.csv"
    pd.DataFrame(rows).drop_duplicates("question").to_csv(file, index=False)

    assert score(tmp_path, "--predictions", file, "--template", "paraphrase") == 0
    # A choice is accepted even if it equals the default for these data.
    original = ["--template", "original", "--out", str(tmp_path / "original")]
    assert main(["score", *SAMPLE, "--predictions", str(file), *original]) == 0

    [row] = pd.read_csv(tmp_path / "run" / "tables" / "overall.csv").to_dict("records")
    assert (row["model"], row["template"]) == ("mine", "paraphrase")
    assert row["consistency"] > 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "no/where/at/all.jsonl"], "no/where/at/all.jsonl"),
        (["--limit", "0"], "--limit: input should be greater than or equal to 1, got 0"),
        (["--repeat", "-5"], "--repeat: input should be greater than or equal to 0, got -5"),
        (["--shots", "5000"], "--shots 5000, but only"),
        (["--column", "question=q"], "the source has no column 'q'"),
        (["--max-new-tokens", "0"], "--max-new-tokens: input should be greater than or equal to 1"),
        (["--model", "toy_model"], "--model toy_model: the study redirectqa has no toy model"),
        (["--rule", "vibes"], "--rule must be one of"),
        (["--cluster", "shape"], "--cluster must be one of subject_id, item, relation"),
        (["--runner", "nobody"], "nobody"),
        (["--runner-option", "colour=red"], "colour"),
        (["--runner-option", f"model={'[' * 99}{']' * 99}"], "--runner-option model: nested more"),
    ],
)
def test_invalid_command_is_one_line_and_code_2(runner, tmp_path, capsys, arguments, message):
    status = run(runner, tmp_path / "run", *arguments)

    printed = capsys.readouterr()
    assert status == 2
    assert printed.err.startswith("error: ")
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""
    assert not (tmp_path / "run" / "generations.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score"], "pass either the folder of a run or --predictions FILE"),
        (["score", "--predictions", "x.jsonl"], "--predictions requires --out"),
        (["score", "x", "--out", "y", "--label", "z"], "--label, --out belong to --predictions"),
        (["score", "x", "--limit", "3"], "--limit belongs to --predictions"),
        (["score", "x", "--judge", "llm", "--judge-model", "m"], "folder x not found (in "),
        (["report"], "no run folder was given"),
        (["demo", "--ot", "x"], "--out is required and takes a value; option --ot does not exist"),
        (["demo", "--steps", "3"], "--out is required and takes a value\n"),
        (["paired", "empty.csv", *PAIRED], "empty.csv contains no rows, so no "),
        (["run", "linking", *SAMPLE, "--out", "x"], "'transformers' needs a model (--model)"),
        (
            ["run", "forms", "--source", "x.jsonl", *MODEL],
            "--source: file or folder 'x.jsonl' not found",
        ),
        (
            ["run", "audit", "--databases", "x", *MODEL],
            "--databases: database file or folder x not found",
        ),
        (["run", "audit", "--databases", "sampel", *MODEL], "(did you mean 'sample'?)"),
        pytest.param(
            ["run", "forms", *SAMPLE, "--model", "no model", "--out", "y"],
            "--model: 'no model' is neither a folder nor a GGUF file nor a hub id",
            marks=NEEDS_TORCH,
        ),
        (
            ["score", "--predictions", "x", "--source", "x/y/z", "--out", "y"],
            "--source: file or folder",
        ),
        (["report", "made", "--out", "made/report.html"], "--out must be the folder"),
        (["report", "empty", "--out", "x"], "empty is not a run folder: manifest.json is missing"),
        (["report", "made/manifest.json"], "made/manifest.json is a file; give the folder of a"),
        (["analyse", "frequency", "x", "--frequencies", "y"], "folder x not found (in "),
    ],
)
def test_invalid_folder_is_one_line_and_code_2(tmp_path, monkeypatch, capsys, arguments, message):
    """An invalid path is reported before other errors of the command."""
    monkeypatch.chdir(tmp_path)
    for name in ("made", "empty"):
        Path(name).mkdir()
    Path("made/manifest.json").write_text("{}")
    Path("empty.csv").touch()

    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_debug_raises_the_original_error(runner, tmp_path, capsys):
    command = ["run", "redirectqa", "--source", "sample", "--shots", "-1"]
    command += ["--runner", runner, "--out", str(tmp_path / "run")]

    with pytest.raises(ValueError, match="--shots: input should be greater"):
        main(["--debug", *command])
    with pytest.raises(PluginError, match="study 'nothing' not found"):
        main(["run", "nothing", "--debug"])
    assert main(["--version", "--debug"]) == 0
    assert capsys.readouterr().out == f"{surface_consistency.__version__}\n"


def test_interrupt_ends_with_code_130(tmp_path, monkeypatch, capsys):
    """The message has the remedy; an interrupted comparison does not keep results."""

    def stop(*_, **__):
        raise KeyboardInterrupt

    body = "def generate(self, prompts, params):\n    raise KeyboardInterrupt\n    yield\n"
    stopping = write_runner(tmp_path, monkeypatch, "stopping", "Stop", body)
    monkeypatch.setattr("surface_consistency.analysis.compare.compare_results", stop)

    assert run(stopping, tmp_path / "run") == 130
    assert "interrupted; repeat the command to resume" in capsys.readouterr().err
    assert main(["compare", "one.csv", "other.csv"]) == 130
    assert capsys.readouterr().err == "interrupted; repeat the command to start again\n"


@pytest.fixture
def labels_csv(tmp_path):
    """40 facts in two categories, one of them labelled "NA"; one label is missing."""
    rows = [
        (fact, int(fact % 2), int(fact % 4 == 1), "NA" if fact < 20 else "from surnames")
        for fact in range(40)
    ]
    file = tmp_path / "verdicts.csv"
    lines = ["triplet_id,canonical,redirect,category", *(",".join(map(str, row)) for row in rows)]
    lines.append("40,1,,NA")
    file.write_text("\n".join(lines) + "\n")
    return str(file)


COMPARE = ["--first", "canonical", "--second", "redirect", "--cluster", "triplet_id"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--first", "canonical", "--second", "nothing"], "column 'nothing' of --second not found"),
        ([*COMPARE, "--by", "nothing"], "--by nothing is not among the columns"),
        # The last value of a repeated option is used.
        (["--first", "nothing", *COMPARE, "--test", "sign"], "--test: input should be"),
        ([*COMPARE, "--separator", ";"], "--separator separates the labels of --by"),
        ([*COMPARE, "--latex", "--wide"], "--wide has no effect on --latex"),
        ([*COMPARE, "--score", "x"], "--score without --condition has no effect"),
    ],
)
def test_error_of_paired_states_the_problem(labels_csv, capsys, arguments, message):
    assert main(["paired", labels_csv, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_report_prints_the_trace_of_a_fact(runner, tmp_path, capsys):
    out = str(tmp_path / "run")
    assert run(runner, out, "--limit", "3", "--json") == 0
    fact = pd.read_parquet(tmp_path / "run" / "outcomes.parquet")["item"].iloc[0]
    capsys.readouterr()

    assert main(["report", out, "--fact", fact]) == 0
    printed = capsys.readouterr().out
    assert all(text in printed for text in ('"London"', "canonical: ", "redirect: "))
    assert main(["report", out, "--fact", "no such"]) == 2
    assert "has no fact 'no such'; it has " in capsys.readouterr().err


def test_commands_are_listed(capsys):
    assert main([]) == main(["--help"]) == 0
    listed = capsys.readouterr().out
    names = (
        "compare",
        "consistency",
        "paired",
        "accuracy",
        "score",
        "run",
        "report",
        "analyse",
        "demo",
    )
    places = [listed.index(f"\n  {name}  ") for name in names]
    assert places == sorted(places)
    assert places[6] < listed.index("Further commands") < places[7]
    assert main(["run", "audit", "--help"]) == 0
    assert "Usage: surface-consistency run audit" in capsys.readouterr().out


@pytest.mark.parametrize("code", [0, WORSE])
def test_closed_pipe_keeps_the_exit_code(tmp_path, code):
    """As with `surface-consistency compare FILES --fail-if worse | head -1`."""
    for name, score in (("a", 1), ("b", 0)):
        rows = [{"item": n, "score": score if n else 1 - score} for n in range(20)]
        pd.DataFrame(rows).to_csv(tmp_path / f"{name}.csv")
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    read, write = os.pipe()
    os.close(read)

    done = process(["compare", *files, "--fail-if", "worse"] if code else ["--help"], stdout=write)

    os.close(write)
    assert done.returncode == code
    assert b"Broken" not in done.stderr


def test_completion_contains_commands_studies_and_options(tmp_path, monkeypatch, capsys):
    for name, value in (("HOME", str(tmp_path)), ("SHELL", "/bin/bash"), ("BASH_VERSION", "5.2")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("ZSH_VERSION", raising=False)

    assert main(["--install-completion"]) == 0

    printed = capsys.readouterr().out
    script = Path(printed.removeprefix("wrote ").partition(";")[0]).read_text(encoding="utf-8")
    for word in ("redirectqa", "slaq", "audit", "--demonstrations", "--judge-rule", "paraphrase"):
        assert word in script


@pytest.mark.parametrize(
    ("rename", "messages"),
    [
        ({"question": "prompt"}, ["--column question=NAME. To", "--setting ask_by_template=True"]),
        ({"object_aliases": "gold"}, ["name it: --column references=NAME. To accept only the"]),
        ({}, ["splits: train (rows.jsonl); pass --setting split=train"]),
    ],
)
def test_errors_about_data_name_flags(tmp_path, capsys, rename, messages):
    rows = [
        json.loads(line)
        for line in (SAMPLES / "redirectqa" / "test.jsonl").read_text().splitlines()
    ]
    rows = [{rename.get(name, name): cell for name, cell in row.items()} for row in rows]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = tmp_path / "rows.jsonl" if rename else tmp_path
    words = ["--source", str(source), "--runner", "x", "--out", str(tmp_path / "out")]

    assert main(["run", "redirectqa", *words]) == 2

    printed = capsys.readouterr().err
    assert all(message in printed for message in messages)
    assert "columns=" not in printed


def score(tmp_path, *words):
    return main(["score", "--source", "sample", "--out", str(tmp_path / "run"), *map(str, words)])


def accuracy(tmp_path):
    verdicts = pd.read_parquet(tmp_path / "run" / "verdicts.parquet")
    return verdicts["correct"].mean(), int(verdicts["correct"].isna().sum())


@pytest.mark.parametrize(
    ("columns", "remedies"),
    [
        (("text", "output"), ["name one of them by --prediction"]),
        (("mine",), ["name it by --prediction"]),
        (("pred",), ["name it by --item; or, if the ", "confirm it with --in-order"]),
    ],
)
def test_errors_about_predictions_name_flags(tmp_path, capsys, columns, remedies):
    """A digest in a message is accepted by the option."""
    rows = [
        dict.fromkeys(columns, q.triple.answers[0]) for q in load_redirectqa("sample").questions
    ]
    file = tmp_path / "p.csv"
    pd.DataFrame(rows).to_csv(file, index=False)

    assert score(tmp_path, "--predictions", file) == 2

    printed = capsys.readouterr().err
    assert all(remedy in printed for remedy in remedies)
    if "--in-order" in printed and len(remedies) > 1:
        digest = printed.partition("--in-order ")[2].split(",")[0].strip()
        assert score(tmp_path, "--predictions", file, "--in-order", digest) == 0
        assert accuracy(tmp_path) == (1.0, 0)
    assert score(tmp_path, "--predictions", tmp_path) == 2
    assert f"name its files, such as {tmp_path}/*.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[" * 100_000, f'{{"id": {"9" * 5_000}}}'])
def test_hostile_files_give_one_line_and_code_2(tmp_path, capsys, text):
    file = tmp_path / "x.jsonl"
    file.write_text(text + "\n")
    out = ("--out", str(tmp_path / "out"))
    stored = ["--source", "sample", "--runner", "stored", "--model", str(file)]

    for command in (
        ["run", "redirectqa", "--source", str(file), "--runner", "x", *out],
        ["run", "redirectqa", *stored, *out],
        ["score", "--source", "sample", "--predictions", str(file), *out],
        ["paired", str(file), *PAIRED],
    ):
        assert main(command) == 2
        printed = capsys.readouterr().err
        assert printed.startswith("error: ")
        # A list of JSON has no separate lines.
        assert f"x.jsonl{'' if text.startswith('[') else ':1: '}" in printed


FAILING = """
def generate(self, prompts, params):
    failed = {"text": None, "finish_reason": "error", "error": "\\x1b[31mno luck"}
    for place, prompt in enumerate(prompts):
        yield Generation(prompt_id=prompt.id, **({"text": "London"} if place % 3 else failed))
"""


@pytest.mark.filterwarnings("ignore::surface_consistency.errors.UnscoredWarning")
def test_prompts_without_an_answer_have_an_exit_code_and_are_in_captions(
    tmp_path, monkeypatch, capsys
):
    failing = write_runner(tmp_path, monkeypatch, "cli_failing", "Failing", FAILING)
    out = tmp_path / "run"

    assert run(failing, out, "--limit", "4", "--repeat", "0") == 3

    scoring = json.loads((out / "scoring.json").read_text())
    n, n_prompts = scoring["n_unanswered"], scoring["n_prompts"]
    assert 0 < n < n_prompts
    log = [json.loads(line) for line in (out / "generations.jsonl").read_text().splitlines()]
    assert (n, n_prompts) == (sum(line["text"] is None for line in log), len(log))
    printed = capsys.readouterr().out
    assert f"\nAll pairs ({n} of {n_prompts} prompts unanswered)\n" in printed
    assert f"{n} of {n_prompts} prompts have no answer" in printed
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count(f"({n} of {n_prompts} prompts unanswered)") > 1
    assert main(["score", str(out)]) == 3
    assert main(["report", str(out), "--out", str(tmp_path / "page")]) == 0
    capsys.readouterr()
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    assert re.search(r"(?m)^  3 +Success, but some prompts have no answer", listed)


HOSTILE = "\x1b]0;owned\x07\x9b31m\u202eevil\x7f\nnote: all is well"


def test_closed_stream_is_not_written():
    """Python 3.13 reports errors in finalizers."""
    stream, other = (io.TextIOWrapper(io.BytesIO()) for _ in range(2))
    terminal = _Terminal(stream)
    stream.close()

    terminal.close()
    _Terminal(other).close()

    assert not other.closed
    assert not terminal.isatty()


def test_control_characters_of_files_are_escaped_on_the_terminal(tmp_path, capsys):
    """Labels in tables, errors and JSON are printed escaped; JSON keeps its content."""
    verdicts = tmp_path / "v.csv"
    rows = [f'{i},{i % 2},1,"{HOSTILE}"' for i in range(30)]
    verdicts.write_text("\n".join(["item,a,b,group", *rows]), encoding="utf-8")
    words = ["paired", str(verdicts), *PAIRED, "--by", "group"]

    assert main(words) == 0
    table = capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    machine = capsys.readouterr().out
    assert main([*words, "--by", HOSTILE]) == 2
    error = capsys.readouterr().err

    assert "is not among the columns" in error
    for printed in (table, machine):
        assert not set(printed) & set("\x1b\x07\x9b\x7f\u202e")
        assert "\\u202eevil\\u007f" in printed
    assert json.loads(machine)["rows"][0]["group"] == HOSTILE


@pytest.mark.parametrize("json_flag", [[], ["--json"]])
def test_ascii_terminal_does_not_end_a_finished_run(runner, tmp_path, json_flag):
    """With `PYTHONIOENCODING=ascii` or without locale, other characters are escaped."""
    assert run(runner, tmp_path / "run", "--limit", "4", "--label", "Modell – ä") == 0
    ascii_only = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONPATH": "."}
    words = ["report", str(tmp_path / "run"), "--out", str(tmp_path / "page"), *json_flag]

    done = process([*words, "--setting", "resamples=10"], env=os.environ | ascii_only)

    assert (done.returncode, done.stderr) == (0, b"")
    if json_flag:
        assert json.loads(done.stdout)["tables"]["overall"][0]["model"] == "Modell – ä"
    else:
        assert b"Modell \\u2013 \\u00e4" in done.stdout


def process(words, **options):
    command = [sys.executable, "-m", "surface_consistency", *words]
    home = Path(surface_consistency.__file__).parents[1]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(command, cwd=home, check=False, **streams)


@pytest.mark.filterwarnings("ignore:1 of 7 answers have no score")
def test_truncated_log_is_a_warning(runner, tmp_path, capsys):
    """The error output consists of errors, warnings and progress."""
    assert run(runner, tmp_path / "run", "--limit", "2") == 0
    log = tmp_path / "run" / "generations.jsonl"
    log.write_bytes(log.read_bytes()[:-20])
    capsys.readouterr()

    assert main(["score", str(tmp_path / "run"), "--setting", "resamples=5"]) == 3

    lines = capsys.readouterr().err.splitlines()
    printed = [line for line in lines if "the last line was cut off" in line]
    assert printed
    assert all(line.startswith(f"warning: {log}:7: ") for line in printed)


def test_full_disk_of_the_output_gives_an_error():
    with Path("/dev/full").open("wb") as full:
        done = process(["--version"], stdout=full)

    assert done.returncode == 2
    assert b"output cannot be written (No space left on device)" in done.stderr


@pytest.mark.parametrize("words", [["--out", ""], ["--out="]])
@pytest.mark.parametrize("command", [["report", "run"], ["run", "redirectqa"], ["demo"]])
def test_empty_out_is_rejected(command, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    assert main([*command, *words]) == 2

    message = "error: --out is empty; pass a folder, such as '.' for the current one\n"
    assert capsys.readouterr().err == message
    assert list(tmp_path.iterdir()) == []


def test_files_of_an_earlier_report_are_removed(runner, tmp_path, capsys):
    """Changed and added files remain; the other files are listed with their digests."""
    one, page = tmp_path / "one", tmp_path / "page"
    report = ["report", str(one), "--out", str(page)]
    assert run(runner, one, "--limit", "4", "--label", "one", "--no-page") == 0
    assert not (one / "report.html").exists()
    assert main(report) == 0
    earlier, mine = page / "tables" / "earlier.csv", page / "tables" / "mine.csv"
    sources = page / "tables" / "SOURCES.txt"
    named = sources.read_text(encoding="utf-8")
    for path, text in ((earlier, "earlier"), (mine, "changed")):
        path.write_text(text)
        named += f"{hashlib.sha256(b'earlier').hexdigest()}  tables/{path.name}\n"
    sources.write_text(named, encoding="utf-8")

    assert main(report) == 0

    assert not earlier.exists()
    assert mine.read_text() == "changed"
    lines = re.findall(r"(?m)^(\w{64})  (.*)$", sources.read_text(encoding="utf-8"))
    written = [path.relative_to(page).as_posix() for path in page.rglob("*") if path.is_file()]
    assert {name for _, name in lines} == {*written} - {"tables/SOURCES.txt", "tables/mine.csv"}
    for digest, name in lines:
        assert hashlib.sha256((page / name).read_bytes()).hexdigest() == digest
    capsys.readouterr()
    # The page, whose numbers may be outdated, is removed if no page is written.
    assert main([*report, "--no-page"]) == 0
    assert [path.name for path in page.iterdir()] == ["tables"]
    assert "report:" not in capsys.readouterr().out
    assert main(["score", str(one), "--no-page", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"] is None
