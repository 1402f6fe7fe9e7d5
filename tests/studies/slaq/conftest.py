"""Targets for scoring, and runs of models with given answers."""

import zlib

import pandas as pd
import pytest

from surface_consistency.data.slaq import load_slaq
from surface_consistency.engine.judging.judges import judge_targets
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.models import FakeRunner
from surface_consistency.studies.slaq.records import SlaqVerdict
from surface_consistency.studies.slaq.settings import SlaqScoring, SlaqSettings
from surface_consistency.studies.slaq.study import SlaqStudy
from tests.made_data import own_caches, row, write_csv  # noqa: F401 - fixtures

REFERENCES = ("Rome", "Carthage", "Hannibal Barca.", "264 BCE", "because of trade")


@pytest.fixture
def task():
    """Build the targets of one answer; the last of five facts is not a named entity."""

    def build(form, answer, prompt_id="p"):
        n = 1 if form == "short" else 5
        return pd.DataFrame(
            {
                "target_id": [f"{prompt_id}/{k}" for k in range(1, n + 1)],
                "prompt_id": prompt_id,
                "references": [[reference] for reference in REFERENCES[:n]],
                "item": [f"punic/{k}" for k in range(1, n + 1)],
                "form": form,
                "topic": "The Punic Wars",
                "slot": pd.array([*range(1, 6)] if form == "long" else [None] * n, dtype="Int64"),
                "question": [f"Question {k}?" for k in range(1, n + 1)],
                "is_entity": [k < 5 for k in range(1, n + 1)],
                "text": pd.Series([answer] * n, dtype=object),
            }
        )

    return build


@pytest.fixture
def judged():
    """Score with a judge: `judged(judge, *tasks)` returns labels, or None if missing."""

    def work(judge, *tasks):
        frame = judge_targets(judge, pd.concat(tasks, ignore_index=True), SlaqVerdict)
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        return [SlaqVerdict.model_validate(verdict) for verdict in rows]

    return work


class JudgedBy(SlaqStudy):
    """SLAQ with a judge that the test provides."""

    def __init__(self, judge):
        self._judge = judge

    def judge(self, scoring, folder):
        super().judge(scoring, folder)
        return self._judge


@pytest.fixture(scope="session")
def ask():
    """Run a model: `ask(data, runner, out, model="m", **settings)`."""

    def run(data, runner, out, *, model="m", **settings):
        options = {"model": model, "settings": SlaqSettings(**settings), "progress": False}
        return run_study(SlaqStudy(), data, runner, out, **options)

    return run


@pytest.fixture(scope="session")
def score():
    """Score a run: `score(folder, judge=None, **scoring)`; a judge can be a name."""

    def run(folder, judge=None, **scoring):
        if isinstance(judge, str):
            scoring["judge"], judge = judge, None
        study = SlaqStudy() if judge is None else JudgedBy(judge)
        return score_run(folder, study=study, scoring=SlaqScoring(**scoring))

    return run


class Coin:
    """Scores by a digest of prompt and fact, so that labels vary and are reproducible."""

    def __init__(self, *, share=0.6, unjudged=(), name="coin"):
        self.name = name
        self._share = share
        self._unjudged = unjudged

    def judge(self, targets):
        keys = targets["prompt_id"] + "|" + targets["item"]
        digests, form = keys.map(lambda key: zlib.crc32(key.encode())), targets["form"]
        is_left = form.isin(self._unjudged)
        right = (digests % 100 < 100 * self._share).astype("boolean").mask(is_left)
        recalled = (right | (digests % 2 == 0)).where((form == "free") & ~is_left)
        reason = pd.Series("the judge's reply cannot be read: prose", form.index).where(is_left)
        made = {"prediction": targets["text"], "correct": right, "is_recalled": recalled}
        return pd.DataFrame(made).assign(reason=reason.astype(object).where(is_left, None))


@pytest.fixture(scope="session")
def coin():
    """Build judges: `coin(share=..., unjudged=forms)`."""
    return Coin


@pytest.fixture
def make_slaq_run(tmp_path, ask, score):
    """Run and score: `make_slaq_run(name, model=..., judge=..., answer=..., **settings)`."""

    def make(name, *, model="m", judge=None, answer="an answer", limit=6, **settings):
        data, runner = load_slaq("sample").select(limit=limit), FakeRunner(lambda prompt: answer)
        folder = ask(data, runner, tmp_path / name, model=model, **{"repeat": 10} | settings)
        score(folder, judge or Coin())
        return folder

    return make
