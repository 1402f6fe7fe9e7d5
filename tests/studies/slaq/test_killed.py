"""A run that is killed while answering and while judging resumes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import zlib
from collections import Counter

import pandas as pd
import pytest

from tests.models.server.fake_server import FakeServer, reply as response

CONCURRENCY = 4
N_TOPICS = 8
N_PERMUTATIONS = 5


def reply(text):
    """Reply to prompts of the judge and of the study."""
    references = re.findall(r"Reference: (.*)", text)
    if not references:
        return f"Rome, or perhaps {zlib.crc32(text.encode())}"
    return "1" if len(references) == 1 else str([1] * len(references))


STUDY = f"""
import sys
from pathlib import Path
from surface_consistency.data.slaq import load_slaq
from surface_consistency.models.registry import load_runner
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.studies.slaq.study import SlaqScoring, SlaqSettings, SlaqStudy

study, few = SlaqStudy(), {{"concurrency": {CONCURRENCY}}}
folder = run_study(
    study,
    load_slaq("sample"),
    load_runner("openai", model="m", options=few),
    Path(sys.argv[1]),
    model="m",
    settings=SlaqSettings(limit={N_TOPICS}, permutations={N_PERMUTATIONS}, repeat=0),
    progress=False,
)
option = {{"concurrency": "{CONCURRENCY}"}}
scoring = SlaqScoring(judge="llm", judge_model="j", judge_option=option)
score_run(folder, study=study, scoring=scoring)
"""


def start(server, out):
    """Start the study in a separate process."""
    return subprocess.Popen(
        [sys.executable, "-c", STUDY, str(out)],
        env=os.environ | {"OPENAI_BASE_URL": server.url, "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_at(process, out, n_kept):
    """Kill the process once its logs contain `n` answers."""
    deadline = time.monotonic() + 60
    while len(logged(out)) < n_kept:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline, f"only {len(logged(out))} answers in a minute"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def finish(process):
    """Wait for the end of the study."""
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors


def logged(out):
    """Return the prompt keys in the logs, one per line."""
    keys = []
    for path in (*out.glob("generations-*.jsonl"), *out.glob("judges/*/judge-generations.jsonl")):
        lines = path.read_bytes().split(b"\n")[:-1]
        keys += [json.loads(line)["prompt_key"] for line in lines]
    return keys


@pytest.fixture
def server():
    def script(number, body):
        return 200, {}, response(reply(body["messages"][-1]["content"]), chat=True)

    with FakeServer(script, latency=0.02) as started:
        yield started


@pytest.mark.enable_socket
def test_killed_runs_do_not_send_logged_prompts_again(server, tmp_path):
    n_asked = N_TOPICS * (5 + N_PERMUTATIONS)
    out = tmp_path / "run"

    kill_at(start(server, out), out, n_asked // 3)
    kept_while_running = len(logged(out))
    kill_at(start(server, out), out, n_asked + n_asked // 3)
    kept_while_judging = len(logged(out))
    finish(start(server, out))

    assert 0 < kept_while_running < n_asked < kept_while_judging < 2 * n_asked
    keys = logged(out)
    # Each prompt has one line: logged prompts were not sent and logged again.
    assert len(keys) == len(set(keys)) == 2 * n_asked
    # Only prompts in flight, or answered less than 0.25 s before the kill, were sent again.
    asked = [body["messages"][-1]["content"] for body in server.bodies]
    again = sum(count - 1 for count in Counter(asked).values())
    unkept = 2 * (CONCURRENCY + 0.25 / 0.02 * CONCURRENCY)
    assert again == len(asked) - 2 * n_asked <= unkept
    frame = pd.read_parquet(out / "outcomes.parquet")
    assert len(frame) == N_TOPICS * 5 * N_PERMUTATIONS
    assert frame[["first_correct", "second_correct"]].notna().all(axis=None)

    finish(start(server, out))
    assert len(server.bodies) == len(asked)
