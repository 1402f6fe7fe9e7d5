"""The study as the engine runs it: settings, judges, labels, what is refused."""

import csv
import re
from pathlib import Path

import pandas as pd
import pytest

from surface_consistency.data.slaq import load_slaq_sample
from surface_consistency.engine.score import import_predictions, score_run
from surface_consistency.errors import DataError, RunError, SurfaceConsistencyWarning
from surface_consistency.models import FakeRunner
from surface_consistency.plugins import importable
from surface_consistency.studies.slaq.settings import (
    SlaqScoring,
    SlaqSettings,
    SlaqSource,
    SlaqToyModel,
)
from surface_consistency.studies.slaq.study import SlaqStudy

pytestmark = pytest.mark.filterwarnings(
    "ignore::surface_consistency.errors.SurfaceConsistencyWarning"
)
RUNNER = """
import re

from surface_consistency.models import FakeRunner


def judging(model=None):
    def reply(prompt):
        n = len(re.findall("Reference: ", prompt.messages[1].content))
        return "1" if n == 1 else str([1, 0] * 2 + [1])

    return FakeRunner(reply)


def thinking(model=None):
    right = judging()
    return FakeRunner(
        lambda prompt: f"<think>[0] or 0?</think>{next(iter(right.generate([prompt]))).text}"
    )


def silly(model=None):
    return FakeRunner(lambda prompt: "As a language model, I think it is fine.")
"""


@pytest.fixture
def runners(tmp_path, monkeypatch):
    """Make `slaq_runners` importable."""
    (tmp_path / "slaq_runners.py").write_text(RUNNER)
    monkeypatch.syspath_prepend(str(tmp_path))
    with importable(*(f"slaq_runners:{name}" for name in ("judging", "thinking", "silly"))):
        yield "slaq_runners"


@pytest.fixture
def folder(tmp_path, ask):
    """Three topics, asked."""
    data = load_slaq_sample()
    answer = "Christiaan Huygens found it in 1655."
    return ask(data, FakeRunner(lambda prompt: answer), tmp_path / "run", limit=3, repeat=4)


def test_all_settings_are_in_the_manifest(folder):
    manifest = folder.read_manifest()

    assert set(manifest.settings) == set(SlaqSettings.model_fields)
    assert "{question}" in manifest.settings["long_instruction"]
    assert list(manifest.decoding) == ["short", "long"]
    assert manifest.decoding["long"]["max_new_tokens"] == 512
    assert manifest.data.n_questions == 15


def test_plain_text_stops_at_the_newline_when_short():
    settings = SlaqSettings(completion=True, short_tokens=9)

    assert settings.params("short").stop == ("\n",)
    assert settings.params("short").max_new_tokens == 9
    assert settings.params("long").stop == ()
    assert SlaqSettings().params("short").stop == ()


@pytest.mark.parametrize(
    ("record", "given", "message"),
    [
        (SlaqScoring, {"judge": "human"}, "`judge=human` needs `labels`"),
        (SlaqScoring, {"judge": "llm"}, "`judge=llm` needs `judge_model`"),
        (SlaqScoring, {"judge": "oracle"}, "judge"),
        (SlaqScoring, {"judge_prompts": "paper"}, "`judge` is matcher; name a model by"),
        (SlaqScoring, {"judge_option": ["colour"]}, "judge_option"),
        (SlaqScoring, {"judge_max_new_tokens": 0}, "judge_max_new_tokens"),
        (SlaqSettings, {"permutations": 0}, "permutations"),
        (SlaqSettings, {"repeat": -1}, "repeat"),
        (SlaqSettings, {"limit": 0}, "limit"),
        (SlaqSettings, {"short_tokens": 0}, "short_tokens"),
        (SlaqSettings, {"wording": "mine"}, "wording"),
        (SlaqSettings, {"long_instruction": "Answer."}, "the long instruction needs {question}"),
    ],
)
def test_wrong_settings_are_refused_by_their_field(record, given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        record.model_validate(given, strict=False)


def test_columns_belong_to_data_of_ones_own(tmp_path):
    with pytest.raises(ValueError, match="`column` belongs to data of your own"):
        SlaqStudy().load(SlaqSource(source="sample", column={"Topic": "t"}))
    with pytest.raises(DataError, match="nowhere"):
        SlaqStudy().load(SlaqSource(source=str(tmp_path / "nowhere.csv")))
    assert len(SlaqStudy().load(SlaqSource(source="sample")).topics) == 24


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ({"judge": "human", "labels": Path("no.csv")}, "no file no.csv"),
        ({"labels": Path("no.csv")}, "no file no.csv"),
        ({"judge": "llm", "judge_model": "x"}, "OPENAI_BASE_URL"),
        ({"judge": "llm", "judge_runner": "nobody"}, "no runner 'nobody'"),
        ({"judge_rule": "vibes"}, "vibes"),
    ],
)
def test_a_judge_that_cannot_be_made_is_refused(
    folder, score, monkeypatch, tmp_path, scoring, message
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    with pytest.raises(Exception, match=message):
        score(folder, **scoring)
    assert not folder.verdicts.exists()


def test_a_model_judges_and_another_that_decides_nothing_replaces_nothing(folder, runners):
    """Each judge has a log of its own, so that neither is asked twice nor mixed up."""

    def judge(**options):
        scoring = SlaqScoring(judge="llm", **options)
        return score_run(folder, study=SlaqStudy(), scoring=scoring)

    frame = judge(judge_runner=f"{runners}:judging", judge_label="org/Judge 7B!")
    kept = {path: path.read_bytes() for path in (folder.verdicts, folder.outcomes, folder.scoring)}

    with pytest.raises(DataError, match="decided none of 90 facts"):
        judge(judge_runner=f"{runners}:silly", judge_label="second")
    with pytest.raises(RunError, match=re.escape("another label (`judge_label`)")):
        judge(
            judge_runner=f"{runners}:judging", judge_label="org/Judge 7B!", judge_max_new_tokens=9
        )

    assert (frame["first_correct"].mean(), frame["second_correct"].mean()) == (1.0, 0.6)
    assert {path: path.read_bytes() for path in kept} == kept
    assert len(list(folder.path.glob("judges/*/judge-generations.jsonl"))) == 2
    names = sorted(home.name for home in (folder.path / "judges").iterdir())
    assert re.fullmatch(r"org-Judge-7B-[0-9a-f]{8}", names[0])
    assert set(pd.read_parquet(folder.verdicts)["judged_by"]) == {"llm:org/Judge 7B!"}


def test_what_a_judge_thinks_is_not_its_verdict(folder, runners):
    scoring = SlaqScoring(
        judge="llm", judge_runner=f"{runners}:thinking", judge_max_reasoning_tokens=99
    )

    frame = score_run(folder, study=SlaqStudy(), scoring=scoring)

    assert (frame["first_correct"].mean(), frame["second_correct"].mean()) == (1.0, 0.6)
    [manifest] = folder.path.glob("judges/*/judge-manifest.json")
    assert '"max_reasoning_tokens": 99' in manifest.read_text()


def test_labels_go_from_the_sheet_to_the_checks(folder, runners, tmp_path):
    llm = {"judge": "llm", "judge_runner": f"{runners}:judging"}

    def judge(**more):
        score_run(folder, study=SlaqStudy(), scoring=SlaqScoring(**llm | more))

    judge(labelling_sheet=tmp_path / "sheet.csv", labelling_sample=15)
    with (tmp_path / "sheet.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 30
    for number, row in enumerate(rows):
        # The judge takes all short answers for right, and these labels all but every third.
        row["is_correct"] = str(int(number % 3 > 0))
    pd.DataFrame(rows).to_csv(tmp_path / "labels.csv", index=False)

    with pytest.warns(SurfaceConsistencyWarning, match="the judge is no better than chance"):
        judge(labels=tmp_path / "labels.csv")

    agreement = pd.read_csv(folder.checks / "judge_agreement.csv")
    assert list(agreement["form"]) == ["short", "long"]
    assert (agreement["sensitivity"][0], agreement["specificity"][0]) == (1.0, 0.0)
    assert folder.labels.is_file()
    judge(judge="human", labels=folder.labels)
    assert not (folder.checks / "judge_agreement.csv").exists()


def test_rebuilt_queries_and_a_limit_beyond_the_data_are_told(caplog):
    caplog.set_level("INFO", logger="surface_consistency")
    with pytest.warns(SurfaceConsistencyWarning, match="24 of 24 topics was built from its short"):
        SlaqStudy().plan(load_slaq_sample(), SlaqSettings(wording="questions", limit=40))
    SlaqStudy().plan(load_slaq_sample(), SlaqSettings(limit=2))

    told = [r.getMessage() for r in caplog.records if r.name.startswith("surface_consistency")]
    assert told == ["`limit` 40: all 24 topics are asked, there are no more"]


def test_predictions_made_elsewhere_are_scored(tmp_path):
    """Answers go by prompt id; a short question names the short prompt alone."""
    data = load_slaq_sample().select(limit=2)
    plan = SlaqStudy().plan(data, SlaqSettings())
    alone = plan.items[plan.items["form"] == "short"]
    answers = dict(zip(alone["question"], alone["answers"].str[0], strict=True))
    answers |= dict.fromkeys(plan.items.loc[plan.items["form"] == "long", "prompt_id"], "no")

    folder = import_predictions(
        SlaqStudy(), data, answers, tmp_path / "run", model="m", origin="mine"
    )
    frame = score_run(folder, study=SlaqStudy(), scoring=SlaqScoring(all_facts=True))

    assert frame["first_correct"].all()
    assert not frame["second_correct"].any()
    assert set(frame["second_prediction"]) == {"no"}


def test_the_toy_model_is_trained_on_what_it_will_be_asked(tmp_path):
    pytest.importorskip("torch")
    runner = SlaqStudy.toy_model.train(
        load_slaq_sample(),
        SlaqSettings(limit=1, long_tokens=4, short_tokens=4),
        SlaqToyModel(toy_model_steps=1),
        tmp_path / "toy_model",
        options={},
    )

    assert (tmp_path / "toy_model" / "model.safetensors").is_file()
    assert runner.fingerprint()["dtype"] == "float32"
