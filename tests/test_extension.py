"""A study, a rule, a runner and an analysis of another package, installed into an environment.

`tests/extension/shouting` is a separate package. Its study is run, killed, resumed, scored
by another rule, reported and compared without changes in this package.
"""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

import pandas as pd
import pytest

# It requires a later `packaging` than the minimum of the library.
pytest.importorskip("hatchling")

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "tests" / "extension" / "shouting"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Interpreter of a new environment with the package and the packages installed here."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    here = sysconfig.get_path("purelib")
    (site / "here.pth").write_text(f"{ROOT}\n{here}\n")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    install += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(site)]
    subprocess.run([*install, str(PACKAGE)], check=True, capture_output=True)
    return home / "bin" / "python"


def command(python, *words, env=None):
    """Run a command line in the new environment."""
    return subprocess.run(
        [python, "-m", "surface_consistency", *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", **(env or {})},
        check=False,
    )


def run(python, out, *more, env=None):
    """Run the study."""
    words = ("run", "shouting", "--source", "sample", "--runner", "deaf", "--out", out, *more)
    return command(python, *words, env=env)


def test_study_with_fewer_than_80_lines_is_listed_with_its_options(python):
    assert len((PACKAGE / "shouting.py").read_text().splitlines()) < 80

    listed = command(python, "run", "--help")
    helped = command(python, "run", "shouting", "--help")

    assert re.search(r"shouting\s+The same question, quiet and shouted", listed.stdout)
    assert re.search(r"--polite.*Whether every question begins", helped.stdout)


def test_run_is_killed_resumed_scored_again_and_compared(python, tmp_path):
    log, out = tmp_path / "asked.txt", tmp_path / "a"
    words = [python, "-m", "surface_consistency", "run", "shouting", "--source", "sample"]
    words += ["--runner", "deaf", "--runner-option", "wait=0.5", "--out", out, "--label", "a"]
    process = subprocess.Popen(
        [*map(str, words)],
        env={**os.environ, "DEAF_LOG": str(log)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(_lines(log)) < 3:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    n_before = len(_lines(out / "generations.jsonl"))

    resumed = run(python, out, "--label", "a", env={"DEAF_LOG": str(log)})
    other = run(python, tmp_path / "b", "--label", "b", "--runner-option", "deafness=3")
    again = command(python, "score", out, "--rule", "vowels", "--json")
    both = command(python, "report", out, tmp_path / "b", "--out", tmp_path / "both", "--json")

    assert n_before >= 2
    assert resumed.returncode == other.returncode == 0, resumed.stderr + other.stderr
    assert len(_lines(out / "generations.jsonl")) == 16
    assert len(_lines(log)) <= 16 + 16 + 1 - n_before + n_before
    overall = json.loads(again.stdout)["tables"]["overall"][0]
    assert (overall["n"], overall["n_clusters"], overall["first_only"]) == (12, 4, 5)
    assert overall["flip_rate_low"] < overall["flip_rate"] <= overall["flip_rate_high"]
    floor = pd.read_csv(out / "tables" / "noise_floor.csv")
    assert list(floor["n_repeated"]) == [16]
    tables = json.loads(both.stdout)["tables"]
    assert [row["model"] for row in tables["overall"]] == ["a", "b"]
    contrast = next(row for row in tables["contrasts"] if row["rate"] == "flip_rate")
    assert contrast["difference"] == pytest.approx(5 / 12 - 1 / 12)
    assert (tmp_path / "both" / "report.html").is_file()


def test_analysis_adds_its_table_to_the_page(python, tmp_path):
    run(python, tmp_path / "a", "--label", "a")

    added = command(
        python, "analyse", "loudness", tmp_path / "a", "--out", tmp_path / "page", "--json"
    )

    assert json.loads(added.stdout)["tables"]["loudness"] == [{"model": "a", "marks": 12}]
    assert "Loudness" in (tmp_path / "page" / "report.html").read_text()


def _lines(path):
    """Return the lines of a file; an empty list if it does not exist."""
    return path.read_text().splitlines() if path.is_file() else []
