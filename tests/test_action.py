"""The GitHub Action: its steps run as in the workflow, with a replacement of `gh`."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ACTION = yaml.safe_load((Path(__file__).resolve().parents[1] / "action.yml").read_text("utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "name" in step}
BASH = shutil.which("bash")
GH = """#!{python}
import json, pathlib, sys
log = pathlib.Path({log!r})
calls = json.loads(log.read_text()) if log.exists() else []
body = next((word.partition("@")[2] for word in sys.argv if word.startswith("body=@")), None)
calls.append([*sys.argv[1:], pathlib.Path(body).read_text() if body else None])
log.write_text(json.dumps(calls))
if "--jq" in sys.argv and len(calls) > 2:
    print(17)
"""


@pytest.fixture
def run(tmp_path):
    """Run a step with its inputs; return exit code and the environment files."""
    home = tmp_path / "bin"
    home.mkdir()
    (home / "surface-consistency").symlink_to(Path(sys.executable).parent / "surface-consistency")
    (home / "gh").write_text(GH.format(python=sys.executable, log=str(tmp_path / "calls.json")))
    (home / "gh").chmod((home / "gh").stat().st_mode | stat.S_IXUSR)

    def step(name, **inputs):
        env = {
            **os.environ,
            "PATH": f"{home}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_REPOSITORY": "naist-nlp/surface-consistency",
            **inputs,
        }
        assert set(STEPS[name]["env"]) <= set(env)
        words = [BASH, "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[name]["run"]]
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
        return done.returncode, done.stderr

    return step


@pytest.fixture
def results(tmp_path):
    """Three models on 40 items, the second incorrect on 20 of them."""
    for name, n_correct in (("main", 40), ("branch", 20), ("same", 40)):
        rows = [f"q{item},{name},{int(item < n_correct)}" for item in range(40)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["item,model,correct", *rows]), "utf-8")
    return "main.csv branch.csv"


@pytest.mark.skipif(BASH is None, reason="the steps are scripts of bash")
def test_worse_model_fails_the_last_step_and_is_in_the_summary(run, results, tmp_path):
    assert run("Compare", FILES=results, ARGS="--margin 0.02", FAIL_IF="worse")[0] == 0

    assert (tmp_path / "output").read_text() == "exit-code=4\n"
    assert "branch" in (tmp_path / "summary.md").read_text()
    assert run("Result", CODE="4")[0] == 4


@pytest.mark.skipif(BASH is None, reason="the steps are scripts of bash")
def test_model_that_is_not_worse_passes_and_invalid_option_fails(run, results, tmp_path):
    assert run("Compare", FILES="main.csv\nsame.csv", ARGS="", FAIL_IF="worse")[0] == 0
    assert (tmp_path / "output").read_text() == "exit-code=0\n"

    code, errors = run("Compare", FILES=results, ARGS="--no-such-option", FAIL_IF="")
    assert code not in (0, 4)
    assert "no-such-option" in errors


@pytest.mark.skipif(BASH is None, reason="the steps are scripts of bash")
def test_comment_is_created_once_and_then_updated(run, results, tmp_path):
    run("Compare", FILES=results, ARGS="", FAIL_IF="")
    for _ in range(2):
        assert run("Comment", GH_TOKEN="t", NUMBER="5") == (0, "")

    listed, made, again, changed = json.loads((tmp_path / "calls.json").read_text())
    assert listed[:3] == again[:3] == ["api", "--paginate", listed[2]]
    assert listed[2] == "repos/naist-nlp/surface-consistency/issues/5/comments"
    assert "POST" in made
    assert "PATCH" in changed
    assert any(str(word).endswith("comments/17") for word in changed)
    assert made[-1].startswith("<!-- surface-consistency compare -->\n")


@pytest.mark.skipif(BASH is None, reason="the steps are scripts of bash")
def test_file_names_and_options_do_not_execute_commands(run, tmp_path):
    run("Compare", FILES="$(touch hacked) `touch hacked`", ARGS="; touch hacked", FAIL_IF="")

    assert not (tmp_path / "hacked").exists()
