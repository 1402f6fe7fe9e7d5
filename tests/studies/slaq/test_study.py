"""The study SLAQ in the engine: settings, judges, labels and errors."""

import re
from pathlib import Path

import pytest

from surface_consistency.data.slaq import load_slaq
from surface_consistency.engine.score import import_predictions, score_run
from surface_consistency.errors import DataError, SourceNotFoundError, SurfaceConsistencyWarning
from surface_consistency.models import FakeRunner
from surface_consistency.plugins import importable
from surface_consistency.studies.slaq.settings import SlaqScoring, SlaqSettings, SlaqSource
from surface_consistency.studies.slaq.study import SlaqStudy

pytestmark = pytest.mark.filterwarnings(
    "ignore::surface_consistency.errors.SurfaceConsistencyWarning"
)


@pytest.fixture
def folder(tmp_path, ask):
    """Run three topics."""
    data = load_slaq("sample")
    answer = "Christiaan Huygens found it in 1655."
    return ask(data, FakeRunner(lambda prompt: answer), tmp_path / "run", limit=3, repeat=4)


def test_short_answers_in_plain_text_stop_at_the_newline():
    settings = SlaqSettings(completion=True, short_tokens=9)

    assert settings.params("short").stop == ("\n",)
    assert settings.params("short").max_new_tokens == 9
    assert (settings.params("long").stop, settings.params("long").max_new_tokens) == ((), 512)
    assert SlaqSettings().params("short").stop == ()


@pytest.mark.parametrize(
    ("record", "given", "message"),
    [
        (SlaqScoring, {"judge_prompts": "paper"}, "`judge` is matcher; name a model by"),
        (SlaqSettings, {"repeat": -1}, "repeat"),
        (SlaqSettings, {"limit": 0}, "limit"),
        (SlaqSettings, {"wording": "mine"}, "wording"),
        (SlaqSettings, {"long_instruction": "Answer."}, "the long instruction needs {question}"),
    ],
)
def test_invalid_settings_raise_errors_that_name_the_field(record, given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        record.model_validate(given, strict=False)


def test_the_source_is_a_file_or_the_sample(tmp_path):
    with pytest.raises(DataError, match="nowhere"):
        SlaqStudy().load(SlaqSource(source=str(tmp_path / "nowhere.csv")))
    assert len(SlaqStudy().load(SlaqSource(source="sample")).topics) == 24


def test_missing_label_file_leaves_the_run_unchanged(folder, score):
    with pytest.raises(SourceNotFoundError, match=r"file no\.csv not found"):
        score(folder, labels=Path("no.csv"))
    assert not folder.verdicts.exists()


RUNNER = """
from surface_consistency.models import FakeRunner


def thinking(model=None):
    def reply(prompt):
        n = prompt.messages[1].content.count("Reference: ")
        return f"<think>[0] or 0?</think>{1 if n == 1 else [1, 0, 1, 0, 1]}"

    return FakeRunner(reply)
"""


def test_reasoning_of_an_llm_judge_is_not_its_label(folder, tmp_path, monkeypatch):
    (tmp_path / "slaq_runners.py").write_text(RUNNER)
    monkeypatch.syspath_prepend(str(tmp_path))
    judge = {"judge": "llm", "judge_runner": "slaq_runners:thinking"}

    with importable(judge["judge_runner"]):
        scoring = SlaqScoring(**judge, judge_max_reasoning_tokens=99)
        frame = score_run(folder, study=SlaqStudy(), scoring=scoring)

    assert (frame["first_correct"].mean(), frame["second_correct"].mean()) == (1.0, 0.6)
    [manifest] = folder.path.glob("judges/*/judge-manifest.json")
    assert '"max_reasoning_tokens": 99' in manifest.read_text()


def test_rebuilt_queries_and_a_limit_above_the_data_are_reported(caplog):
    caplog.set_level("INFO", logger="surface_consistency")
    with pytest.warns(SurfaceConsistencyWarning, match="24 of 24 topics, such as"):
        SlaqStudy().plan(load_slaq("sample"), SlaqSettings(wording="questions", limit=40))
    SlaqStudy().plan(load_slaq("sample"), SlaqSettings(limit=2))

    messages = [r.getMessage() for r in caplog.records if r.name.startswith("surface_consistency")]
    assert messages == ["`limit` 40: all 24 topics are used; the data contain no more"]


def test_predictions_from_elsewhere_are_scored(tmp_path):
    """Answers are matched by prompt id; a short question matches only the short prompt."""
    data = load_slaq("sample").select(limit=2)
    plan = SlaqStudy().plan(data, SlaqSettings())
    alone = plan.items[plan.items["form"] == "short"]
    answers = dict(zip(alone["question"], alone["references"].str[0], strict=True))
    answers |= dict.fromkeys(plan.items.loc[plan.items["form"] == "long", "prompt_id"], "no")

    folder, _ = import_predictions(
        SlaqStudy(), data, answers, tmp_path / "run", model="m", origin="mine"
    )
    frame = score_run(folder, study=SlaqStudy(), scoring=SlaqScoring(all_facts=True))

    assert frame["first_correct"].all()
    assert not frame["second_correct"].any()
    assert set(frame["second_prediction"]) == {"no"}
