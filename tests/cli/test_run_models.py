"""`run` with several models, and in several shards."""

import shlex

import pandas as pd
import pytest

from surface_consistency.cli.main import main
from surface_consistency.engine.model_settings import ModelsSettings

RUNNER = """
from pathlib import Path

from surface_consistency.errors import RunnerError
from surface_consistency.models import Runner
from surface_consistency.schemas import Generation


class Named(Runner):
    name = "named"

    def __init__(self, model=None):
        with Path("loaded.txt").open("a") as file:
            file.write(f"{model}\\n")
        if model == "bad":
            raise RunnerError("bad has no weights; name another model")
        if model == "odd":
            raise ZeroDivisionError("odd")
        self.model = model

    def fingerprint(self):
        return {"runner": "named", "model": self.model}

    def generate(self, prompts, params):
        for place, prompt in enumerate(prompts):
            if self.model == "mute" and place == 0:
                yield Generation(prompt_id=prompt.id, text=None, finish_reason="error", error="no")
            else:
                yield Generation(prompt_id=prompt.id, text=f"{self.model} {len(prompt.text)}")
"""
RUN = ["run", "redirectqa", "--source", "sample", "--limit", "4", "--repeat", "2", "--shots", "1"]
RUN += ["--runner", "models_runner:Named", "--setting", "resamples=9"]


@pytest.fixture
def home(tmp_path, monkeypatch):
    (tmp_path / "models_runner.py").write_text(RUNNER)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded(home):
    """Models in the order in which they were loaded; the record is removed."""
    file = home / "loaded.txt"
    names = file.read_text().split() if file.exists() else []
    file.unlink(missing_ok=True)
    return names


pytestmark = pytest.mark.filterwarnings("ignore::surface_consistency.errors.UnscoredWarning")


def test_models_run_one_after_the_other_and_finished_ones_are_not_loaded_again(home, capsys):
    command = [*RUN, "--model", "a", "--model", "b/d", "--out", "runs"]
    assert main(command) == 0
    assert loaded(home) == ["a", "b/d"]
    assert "model a in runs/a" in capsys.readouterr().out
    assert (home / "runs" / "report.html").is_file()
    answers = (home / "runs" / "a" / "generations.jsonl").read_bytes()

    assert main([*RUN, "--model", "a", "b/d", "c", "--out", "runs", "--json"]) == 0

    assert loaded(home) == ["c"]
    assert (home / "runs" / "a" / "generations.jsonl").read_bytes() == answers
    made = {path.parent.name for path in (home / "runs").glob("*/manifest.json")}
    assert made == {"a", "b-d", "c"}
    overall = pd.read_csv(home / "runs" / "tables" / "overall.csv")
    assert set(overall["model"]) == {"a", "b/d", "c"}
    assert main([*command, "--limit", "5"]) == 2
    assert loaded(home) == ["a", "b/d"]


def test_failure_does_not_stop_other_models(home, capsys):
    assert main([*RUN, "--model", "bad", "a", "odd", "--out", "runs"]) == 2

    assert loaded(home) == ["bad", "a", "odd"]
    printed = capsys.readouterr()
    assert "report: runs/report.html" in printed.out
    assert "error: runs/bad: bad has no weights; name another model" in printed.err
    assert (
        "error: runs/odd: runner 'models_runner:Named' cannot be created: ZeroDivisionError: odd"
        in printed.err
    )
    assert pd.read_csv(home / "runs" / "tables" / "overall.csv")["model"].tolist() == ["a"]


def test_exit_code_is_that_of_the_worst_model(home):
    """A single model writes into the folder."""
    assert main([*RUN, "--model", "a", "mute", "--out", "three", "--json"]) == 3
    assert main([*RUN, "--model", "a", "mute", "bad", "--out", "two", "--json"]) == 2
    assert main([*RUN, "--model", "bad", "odd", "--out", "none", "--json"]) == 2
    assert not (home / "none" / "report.html").exists()
    assert main([*RUN, "--model", "a", "--out", "run", "--json"]) == 0
    assert (home / "run" / "manifest.json").is_file()
    assert not (home / "run" / "asked.json").exists()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"model": ("a/b@main",)}, [("a/b", "main", "a/b@main")]),
        ({"model": ("a@1", "a@2"), "int8": True}, [("a", "1", "a@1"), ("a", "2", "a@2")]),
        ({"model": ("a@1",), "label": "A"}, [("a", "1", "A")]),
        ({"model": ("a",), "model_revision": "x"}, [("a", "x", "a")]),
        ({"model": ("@cf/m",)}, [("@cf/m", None, "@cf/m")]),
        ({"model": ("m@2024",), "runner": "openai"}, [("m@2024", None, "m@2024")]),
        ({}, [(None, None, "None")]),
    ],
)
def test_model_name_contains_its_revision(given, expected):
    made = ModelsSettings(**given).each()
    assert [(one.model, one.model_revision, one.name(None)) for one in made] == expected
    assert all(one.int8 == given.get("int8", False) for one in made)


def test_path_with_an_at_sign_has_no_revision(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model@1").mkdir()
    [one] = ModelsSettings(model=("model@1",)).each()
    assert (one.model, one.model_revision) == ("model@1", None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "a", "b", "--label", "x"], "--label names one model; omit it with seve"),
        (["--model", "a", "b", "--model-revision", "x"], "--model-revision is for one model; with"),
        (["--model", "a/b", "a-b"], "--model a-b: two models have the same folder"),
        (["--shards", "0"], "--shards must be 1 or more, got 0"),
        (["--shards", "2", "--shard", "3"], "--shard must be from 1 to --shards, 2; got 3"),
        (["--shard", "0"], "--shard must be from 1 to --shards, 1; got 0"),
        (["--model", "toy_model", "--shards", "2"], "--shards requires a trained model"),
    ],
)
def test_invalid_options_raise_before_loading(home, capsys, words, message):
    assert main([*RUN, *words, "--out", "runs"]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")
    assert loaded(home) == []


def test_printed_commands_for_a_scheduler_give_the_same_run(home, capsys):
    unsharded = [*RUN, "--model", "a", "--model", "b"]
    assert main([*unsharded, "--out", "unsharded", "--json"]) == 0
    capsys.readouterr()
    assert main([*unsharded, "--out", "parts", "--shards", "2", "--print-commands"]) == 0
    commands = [shlex.split(line)[1:] for line in capsys.readouterr().out.splitlines()]
    loaded(home)

    ends = [" ".join(words[words.index("--out") :]) for words in commands]
    runs = [f"--out parts/{name} --shards 2 --shard {n}" for name in "ab" for n in (1, 2)]
    assert ends == [*runs, "--out parts --shards 2"]
    for words in commands[:-1]:
        assert main(words) == 0
    assert loaded(home) == ["a", "a", "b", "b"]
    assert main([*commands[-1], "--json"]) == 0
    assert loaded(home) == []
    for table in ("overall", "by_type"):
        files = [home / name / "tables" / f"{table}.csv" for name in ("unsharded", "parts")]
        one, other = map(pd.read_csv, files)
        pd.testing.assert_frame_equal(one, other)
    capsys.readouterr()
    # Without shards, the last command writes the report.
    assert main([*RUN, "--model", "a", "b", "--out", "runs", "--print-commands"]) == 0
    first, second, report = capsys.readouterr().out.splitlines()
    assert first.endswith("--model a --out runs/a")
    assert second.endswith("--model b --out runs/b")
    assert report.startswith("surface-consistency report runs/a runs/b --out runs")


def test_printed_commands_name_contacted_servers_but_not_keys(home, capsys, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    words = [*RUN, "--runner", "openai", "--model", "a", "b", "--out", "runs", "--print-commands"]
    words += ["--runner-option", "base_url=http://one:8000/v1", "--runner-option"]
    words += ["api_key_env=MY_KEY", "--judge-model", "j", "--judge-option", "api_key_env=OTHER"]

    assert main(words) == 0

    printed = capsys.readouterr()
    key = "with the key in the environment variable"
    assert printed.err.splitlines() == [
        f"contacts: the server at http://one:8000/v1, {key} MY_KEY (set)",
        f"contacts: the server at an address that is not set, {key} OTHER (not set)",
    ]
    assert "sk-very-secret" not in printed.out
