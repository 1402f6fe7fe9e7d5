"""The command line of SLAQ: run, score, report, labels."""

import json

import pandas as pd
import pytest

from surface_consistency.cli.main import main
from surface_consistency.engine.judging.prompts import pin_prompts
from surface_consistency.engine.score import score_run
from surface_consistency.plugins import importable
from surface_consistency.runs.folder import RunFolder
from surface_consistency.studies.slaq.settings import SlaqScoring

# The command line prints warnings, which are read from its output.
WARNINGS = "always::surface_consistency.errors.SurfaceConsistencyWarning"
pytestmark = pytest.mark.filterwarnings(WARNINGS)

RUNNER = '''
"""Runners for the command line."""
import json
import re

from surface_consistency.models import FakeRunner


def answering(model=None, answer="Rome, in 264 BCE"):
    return FakeRunner(lambda prompt: answer, name=answer)


def judging(model=None):
    def reply(prompt):
        n = len(re.findall("Reference: ", prompt.messages[1].content))
        if "absent" in prompt.messages[0].content:
            return json.dumps(["right", "wrong", "absent", "absent", "right"])
        return "1" if n == 1 else str([1, 0] * 2 + [1])

    return FakeRunner(reply, name="fake")


def by_paper(model=None):
    def reply(prompt):
        (turn,) = prompt.messages
        return "1" if turn.content.endswith("<END_PROMPT>") else "[1,0,1,0,1]"

    return FakeRunner(reply, name="fake")


def unscorable(model=None):
    return FakeRunner(lambda prompt: "As a language model, I think it is fine.")
'''


@pytest.fixture
def runners(tmp_path, monkeypatch):
    (tmp_path / "cli_slaq_runners.py").write_text(RUNNER)
    monkeypatch.syspath_prepend(str(tmp_path))
    with importable("cli_slaq_runners:judging"):
        yield "cli_slaq_runners"


def llm(name="judging", **settings):
    words = ["--judge", "llm", "--setting", f"judge_runner=cli_slaq_runners:{name}"]
    for setting, value in settings.items():
        words += ["--setting", f"{setting}={value}"]
    return words


@pytest.fixture
def run(runners, tmp_path):
    def call(*arguments, out="run"):
        command = ["run", "slaq", "--source", "sample", "--limit", "3", "--repeat", "4"]
        command += ["--runner", f"{runners}:answering", "--out", str(tmp_path / out)]
        return main([*command, *arguments])

    return call


def test_run_writes_tables_and_page(run, tmp_path, capsys):
    """With --json one object is printed, without NaN."""
    assert run("--free", "--label", "fake") == 0

    printed = capsys.readouterr()
    folder = tmp_path / "run"
    assert "F_S (correct in the short answer, %)" in printed.out
    assert f"report: {folder / 'report.html'}" in printed.out
    assert "have no score" in printed.err
    written = {path.stem for path in (folder / "tables").glob("*.csv")}
    expected = {"overall", "by_category", "by_popularity", "by_entity", "order_sensitivity"}
    assert written >= expected | {"recall", "noise_floor", "unjudged"}
    assert run("--setting", "all_facts=true", "--json", out="all") == 0
    printed = capsys.readouterr().out
    assert "NaN" not in printed
    assert json.loads(printed)["tables"]["overall"][0]["n"] == 3 * 5 * 5


def test_llm_judge_scores_and_another_scores_again(run, tmp_path, capsys):
    """Each judge has a separate log, so prompts are neither repeated nor mixed."""
    assert run(*llm(judge_label="first"), "--json") == 0
    folder = tmp_path / "run"
    kept = (folder / "verdicts.parquet").read_bytes()

    assert main(["score", str(folder), *llm("unscorable", judge_label="second"), "--json"]) == 2

    assert "scored none of 90 facts" in capsys.readouterr().err
    assert (folder / "verdicts.parquet").read_bytes() == kept
    assert len(list(folder.glob("judges/*/*generations*.jsonl"))) == 2
    again = llm(judge_label="first", judge_max_new_tokens=9)
    assert main(["score", str(folder), *again]) == 2
    assert "give it another label (--setting judge_label)" in capsys.readouterr().err


def test_prompts_of_the_paper_are_sent_scored_and_recorded(run, runners, tmp_path, capsys):
    """--prompts paper changes instructions and judge, and is in every record of the run."""
    by_paper = llm("by_paper", judge_label="j")
    assert run("--prompts", "paper", "--limit", "1", *by_paper, "--json") == 0
    row = json.loads(capsys.readouterr().out)["tables"]["overall"][0]
    folder = tmp_path / "run"
    scoring = json.loads((folder / "scoring.json").read_text())
    judge = {"judge": "llm", "judge_runner": f"{runners}:judging", "judge_label": "j"}
    score_run(RunFolder.open(folder), scoring=SlaqScoring(**judge, judge_prompts="own"))

    assert (row["first_accuracy"], row["second_accuracy"]) == (1.0, 0.6)
    settings = json.loads((folder / "manifest.json").read_text())["settings"]
    assert settings["prompts"] == pin_prompts("paper", "instructions")
    assert settings["short_instruction"].startswith("Answer the question with factual single")
    assert settings["prompts"] in (folder / "report.html").read_text(encoding="utf-8")
    prompts = [json.loads(line) for line in (folder / "prompts.jsonl").read_text().splitlines()]
    assert prompts[-1]["messages"][0]["content"].startswith("Answer to the question should answer")
    assert scoring["judged_by"] == f"llm:j, prompts {pin_prompts('paper', 'judge')}"
    assert scoring["settings"]["judge_prompts"] == pin_prompts("paper", "judge")
    logs = [json.loads(path.read_text()) for path in folder.glob("judges/*/*manifest.json")]
    digests = {"judge-prompts-v1", pin_prompts("paper", "judge")}
    assert {log["data"]["digest"] for log in logs} == digests


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["slaq", "--prompts", "paper", "--setting", "long_instruction=My {question}"],
            "--setting long_instruction would replace the instruction that --prompts paper sets",
        ),
        (["slaq", "--prompts", "papers"], "--prompts: prompts must be own or paper; got 'papers'"),
        (["slaq", "--judge-prompts", "paper@00"], "--judge-prompts: prompts paper@00 differ from"),
        (["redirectqa", "--prompts", "paper"], "redirectqa has no preset of prompts: the default"),
        (["verdicts", "--prompts", "paper"], "the folder contains correctness labels"),
    ],
)
def test_invalid_presets_raise(words, message, tmp_path, capsys):
    assert main(["run", *words, "--source", "sample", "--out", str(tmp_path / "x")]) == 2

    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_labels_from_the_sheet_correct_the_scores(run, tmp_path, capsys):
    sheet, labels, folder = (tmp_path / name for name in ("sheet.csv", "labels.csv", "run"))
    scoring = [*llm(), "--json"]
    assert run(*scoring, "--labelling-sheet", str(sheet), "--setting", "labelling_sample=15") == 0
    rows = pd.read_csv(sheet, dtype=str)
    assert len(rows) == 30
    # The judge labels all short answers correct, and these labels all except every third.
    rows.assign(correct=[int(n % 3 > 0) for n in range(30)]).to_csv(labels, index=False)
    capsys.readouterr()

    assert main(["score", str(folder), *scoring, "--labels", str(labels)]) == 0

    printed = capsys.readouterr()
    agreement = json.loads(printed.out)["tables"]["judge_agreement"]
    assert [row["form"] for row in agreement] == ["short", "long"]
    assert "the scorer is not better than chance" in printed.err
    assert "Agreement of the judge with human labels" in (folder / "report.html").read_text()
    people = ["--judge", "human", "--labels", str(folder / "labels.csv")]
    assert main(["score", str(folder), *people]) == 0
    assert not (folder / "checks" / "judge_agreement.csv").exists()


def test_labels_and_options_of_another_run_do_not_change_the_run(run, tmp_path, capsys):
    assert run("--json") == 0
    labels = tmp_path / "labels.csv"
    labels.write_text("prompt_id,question_id,correct\nelsewhere/1/short,elsewhere/1,1\n")
    score = ["score", str(tmp_path / "run")]

    for words, message in (
        (["--labels", str(labels)], "1 of 1 labels belong to answers that are not in this run"),
        (["--rule", "fuzzy"], "--rule is not a scoring option of slaq; use --judge-rule"),
        (
            ["--setting", "region=whole"],
            "--setting region is not a scoring option of slaq; use --judg",
        ),
        (
            ["--setting=region=whole"],
            "--setting region is not a scoring option of slaq; use --judg",
        ),
        (["--setting", "regoin=whole"], "--setting has no setting 'regoin'"),
    ):
        assert main([*score, *words]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "run" / "labels.csv").exists()
    assert run("--json", "--permutations", "10") == 2
    assert "permutations is 5 there and 10 now" in capsys.readouterr().err
    before = labels.read_text()
    assert run("--labelling-sheet", str(labels), "--json") == 2
    assert "may contain labels" in capsys.readouterr().err
    assert labels.read_text() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--judge", "human"], "--judge human needs --labels"),
        (["--judge", "human", "--labels", "no.csv"], "file no.csv not found"),
        (["--judge", "llm"], "--judge llm needs --judge-model"),
        (["--judge", "llm", "--judge-model", "x"], "OPENAI_BASE_URL"),
        (["--judge", "llm", "--setting", "judge_runner=nobody"], "runner 'nobody' not found"),
        (llm(judge_max_new_tokens=0), "--setting judge_max_new_tokens: input should be"),
        (["--judge-rule", "vibes"], "vibes"),
        (["--permutations", "0"], "--permutations: input should be greater than or equal to 1"),
        (["--short-tokens", "0"], "--short-tokens: input should be greater than or equal to 1"),
    ],
)
def test_invalid_command_is_one_line_and_code_2(
    run, tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    assert run(*arguments) == 2

    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert message in printed.err
    assert printed.out == ""


@pytest.mark.slow
def test_toy_model_runs_without_network(tmp_path, capsys):
    pytest.importorskip("torch")
    command = ["run", "slaq", "--source", "sample", "--limit", "2", "--model", "toy_model"]
    command += ["--long-tokens", "24", "--short-tokens", "8", "--repeat", "2"]
    command += ["--setting", "all_facts=true", "--toy-model-steps", "5"]

    assert main([*command, "--out", str(tmp_path / "run")]) == 0

    assert "training a small model on " in capsys.readouterr().err
    assert (tmp_path / "run" / "toy_model" / "model.safetensors").is_file()
    overall = pd.read_csv(tmp_path / "run" / "tables" / "overall.csv")
    assert overall["model"].tolist() == ["toy_model"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    assert "training" not in capsys.readouterr().err


def test_file_at_out_raises_before_training(tmp_path, capsys):
    out = tmp_path / "run"
    out.write_text("mine", "utf-8")
    words = ["run", "slaq", "--source", "sample", "--model", "toy_model", "--out", str(out)]

    assert main(words) == 2

    printed = capsys.readouterr()
    assert "is a file; give --out a folder" in printed.err
    assert "training" not in printed.out
    assert out.read_text("utf-8") == "mine"
