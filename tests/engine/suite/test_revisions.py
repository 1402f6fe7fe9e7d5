"""A study over checkpoints: the course of what was planted, and twins that are not asked twice."""

import json
from pathlib import Path

import pandas as pd
import pytest

from surface_consistency import FakeRunner
from surface_consistency.cli.main import main
from surface_consistency.data.redirectqa import load_sample
from surface_consistency.models.snapshots import find_snapshot

WEIGHTS = {"step1": "nothing", "step2": "titles", "step3": "titles", "step10": "all"}


class Learner(FakeRunner):
    """Knows what the weights of its checkpoint say."""

    loaded: list[str] = []  # noqa: RUF012 - what was loaded, for the test

    def __init__(self, model, *, revision=None, **options):
        weights = find_snapshot(Path(model), revision).path / "model.safetensors"
        self.knows, self.revision = weights.read_text(), revision
        self.loaded.append(revision)
        answers = {q.question: (q.triple.answers[0], q.surface) for q in load_sample().questions}

        def handler(prompt):
            question = prompt.text.rpartition("Q: ")[2].removesuffix(" A:")
            answer, surface = answers[question]
            knows = self.knows == "all" or (self.knows == "titles" and surface.is_canonical)
            return f" {answer}" if knows else " dunno"

        super().__init__(handler)

    def fingerprint(self):
        return {"runner": "learner", "revision": self.revision}


@pytest.fixture
def checkpoints(tmp_path):
    for name, weights in WEIGHTS.items():
        folder = tmp_path / "model" / name
        folder.mkdir(parents=True)
        for file, text in (("config.json", "{}"), ("tokenizer.json", "{}")):
            (folder / file).write_text(text)
        (folder / "model.safetensors").write_text(weights)
    Learner.loaded.clear()
    return tmp_path / "model"


@pytest.fixture
def words(checkpoints, tmp_path):
    return [
        *("run", "redirectqa", "--source", "sample", "--limit", "3", "--repeat", "0"),
        *("--shots", "0", "--answers", "0", "--no-agreement", "--out", str(tmp_path / "out")),
        *("--runner", f"{__name__}:Learner", "--model", str(checkpoints)),
    ]


def test_the_course_is_what_was_planted(words, tmp_path, capsys):
    """Titles are learned at step 2, redirects at step 10; step 3 holds the weights of step 2."""
    assert main([*words, "--revisions", "step10,step1", "step2,step3"]) == 0

    printed = capsys.readouterr().out
    assert "revision step3 has the very weights of step2: it is not asked again" in printed
    assert Learner.loaded == ["step10", "step1", "step2"]
    table = pd.read_csv(tmp_path / "out" / "tables" / "revisions.csv").set_index("revision")
    assert list(table.index) == ["step1", "step2", "step3", "step10"]
    assert list(table["first_accuracy"].dropna()) == [0, 1, 1]
    assert list(table["second_accuracy"].dropna()) == [0, 0, 1]
    assert table.loc["step3", "same_weights_as"] == "step2"
    assert table.loc["step2", ["n_forgotten", "n_learned"]].tolist() == [0, 3]
    overall = pd.read_csv(tmp_path / "out" / "tables" / "overall.csv")
    assert {"model@step1", "model@step2", "model@step10"} == set(overall["model"])
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "From revision to revision" in page
    told = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert told["revisions"][3] == {
        "revision": "step3",
        "commit": None,
        "same_weights_as": "step2",
    }
    # A second start asks nothing, and a run of one revision does not go into the folder.
    log = tmp_path / "out" / "step1" / "generations.jsonl"
    before = log.read_bytes()
    assert main([*words, "--revisions", "step1,step2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["tables"]["revisions"]) == 2
    assert log.read_bytes() == before
    assert main([*words, "--model-revision", "step1"]) == 2
    assert "holds a sweep" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--revisions", "step1,step7"], "holds no checkpoint 'step7'; there are step1, step10"),
        (["--revisions", "step1", "--model-revision", "x"], "--revisions names what to ask"),
        (["--revisions", "step1,step1"], "--revisions names 'step1' twice"),
        (["--int8", "--int4"], "--int8 and --int4 exclude each other"),
    ],
)
def test_mistakes_are_told_before_anything_is_loaded(words, more, message, capsys):
    """With the flag, and what is there."""
    assert main([*words, *more]) == 2

    assert message in capsys.readouterr().err
    assert not Learner.loaded
