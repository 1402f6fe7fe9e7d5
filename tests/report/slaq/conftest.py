"""Scored SLAQ runs of a scripted model."""

import zlib

import pytest

from surface_consistency.data.slaq import load_slaq_sample
from surface_consistency.inference import FakeRunner
from surface_consistency.schemas.slaq import Judgement
from surface_consistency.studies.slaq.ask import SlaqSettings, ask_slaq
from surface_consistency.studies.slaq.score import score_slaq


class Coin:
    """Judges by a digest of prompt and fact, so that verdicts vary and are always the same."""

    def __init__(self, *, share=0.6, unjudged=(), name="coin"):
        self.name = name
        self._share = share
        self._unjudged = unjudged

    def judge(self, tasks):
        for task in tasks:
            for question in task.questions:
                digest = zlib.crc32(f"{task.prompt_id}|{question.id}".encode())
                is_correct = (
                    None if task.form in self._unjudged else digest % 100 < 100 * self._share
                )
                yield Judgement(
                    prompt_id=task.prompt_id,
                    question_id=question.id,
                    judge=self.name,
                    is_correct=is_correct,
                    is_recalled=is_correct or digest % 2 == 0
                    if task.form == "free" and is_correct is not None
                    else None,
                    reason="the judge's reply cannot be read: prose"
                    if is_correct is None
                    else None,
                )


@pytest.fixture
def make_slaq_run(tmp_path):
    """Asks and judges: `make_slaq_run(name, model=..., judge=..., answer=..., **settings)`."""

    def make(name, *, model="m", judge=None, answer="an answer", limit=6, **settings):
        given = {"n_permutations": 5, "repeat": 10} | settings
        folder = ask_slaq(
            load_slaq_sample().select(limit=limit),
            FakeRunner(lambda prompt: answer),
            tmp_path / name,
            model=model,
            settings=SlaqSettings(**given),
            progress=False,
        )
        score_slaq(folder, judge or Coin())
        return folder

    return make


@pytest.fixture
def coin():
    """Builds judges: `coin(share=..., unjudged=forms)`."""
    return Coin
