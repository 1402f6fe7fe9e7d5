"""Scoring by rules, LLM judges and human labels, and their agreement."""

import pandas as pd
import pytest

from surface_consistency.engine import RuleScoring, run_study, score_run, settings
from surface_consistency.engine.judging.judges import OverrulingJudge, RuleJudge
from surface_consistency.engine.report import build_page
from surface_consistency.errors import (
    ColumnNotFoundError,
    DataError,
    RunError,
    SurfaceConsistencyWarning,
)
from surface_consistency.models import FakeRunner
from surface_consistency.runs.loader import load_runs
from surface_consistency.schemas import Verdict
from surface_consistency.studies.linking.settings import LinkingScoring, LinkingSettings
from surface_consistency.studies.linking.study import LinkingStudy
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy

ANSWERS = {
    "Ann Lee": "Robert E. Lee",
    "Cat Dow": "Eli",
    "Fay Gray": "chess\nQ: and",
    "Hal Ives": "boxing",
}
CORRECT = {"Robert E. Lee", "Eli", "chess"}
"""Answers that a human accepts; the rule rejects "Robert E. Lee" and "Eli"."""


def answer(prompt):
    """Return the answer for a name, or an empty text for a misspelled name."""
    name = next(name for name in ANSWERS if name in prompt.text.rpartition("Q: ")[2])
    return "" if f"{name}y" in prompt.text else ANSWERS[name]


class JudgeRunner(FakeRunner):
    """A judge that accepts the answers in `CORRECT`."""

    def __init__(self):
        super().__init__(self.verdict)

    @staticmethod
    def verdict(prompt):
        shown = prompt.messages[-1].content
        return str(int(any(f"Answer: {right}" in shown or right in shown for right in CORRECT)))


@pytest.fixture
def llm(monkeypatch):
    """The runner that every LLM judge loads."""
    model = JudgeRunner()
    monkeypatch.setattr(settings, "load_runner", lambda name, **options: model)
    return model


@pytest.fixture
def run(data, tmp_path):
    """A run of RedirectQA without a stop string."""
    settings = RedirectQASettings(shots=0, repeat=4, stop=False)
    study, out = RedirectQAStudy(), tmp_path / "run"
    return run_study(study, data, FakeRunner(answer), out, model="m", settings=settings)


def label_sheet(sheet, is_right=lambda row: row["answer"] in CORRECT):
    rows = pd.read_csv(sheet, keep_default_na=False)
    rows["correct"] = [int(is_right(row)) for row in rows.to_dict("records")]
    rows.to_csv(sheet, index=False)
    return sheet


def check(folder, name):
    return pd.read_csv(folder.checks / f"{name}.csv")


def test_llm_judge_scores_redirectqa_and_is_compared_with_the_rule(run, llm):
    """A second scoring sends no prompt again."""
    by_rule = score_run(run)
    assert not (run.checks / "judge_against_rule.csv").exists()

    by_model = score_run(run, scoring=RuleScoring(judge_model="jay"))

    assert by_rule["first_correct"].mean() < by_model["first_correct"].mean()
    verdicts = pd.read_parquet(run.verdicts)
    assert set(verdicts["judged_by"]) == {"llm:jay"}
    # The judge receives the region that the rule reads: the first line.
    assert "chess" in set(verdicts["prediction"])
    table = check(run, "judge_against_rule").set_index("condition")
    assert list(table.index) == ["canonical", "redirect", "all"]
    assert table.loc["all", "n"] == len(verdicts)
    assert table.loc["canonical", ["false_positives", "false_negatives"]].tolist() == [2, 0]
    assert "judge_against_rule" in build_page([run.path])[1]
    n_asked = len(llm.asked)
    score_run(run, scoring=RuleScoring(judge_model="jay"))
    assert len(llm.asked) == n_asked > 0
    with pytest.raises(RunError, match=r"its own folder: .*`judge_label`"):
        score_run(run, scoring=RuleScoring(judge_model="jay", judge_max_new_tokens=8))


def test_human_labels_replace_or_correct_the_scores_of_the_rule(run, tmp_path):
    sheet = tmp_path / "sheet.csv"
    score_run(run, scoring=RuleScoring(labelling_sheet=sheet, labelling_sample=100))
    columns = list(pd.read_csv(sheet))
    assert columns == [
        *("prompt_id", "question_id", "correct", "condition"),
        *("question", "reference", "answer"),
    ]
    label_sheet(sheet)

    score_run(run, scoring=RuleScoring(labels=sheet))

    agreement = check(run, "judge_agreement").set_index("condition")
    assert agreement.loc["canonical", "false_negatives"] == 2
    corrected = check(run, "corrected").set_index("template")
    row = corrected.loc["original"]
    assert (row["first_condition"], row["second_condition"]) == ("canonical", "redirect")
    assert row["observed_first_accuracy"] == 0.25
    # A corrected table with negative cells is cut to the nearest valid table.
    assert row["is_cut"]
    assert 0.25 < row["first_accuracy"] <= 0.75
    assert row["first_accuracy_low"] <= row["first_accuracy"] <= row["first_accuracy_high"]

    by_people = score_run(run, scoring=RuleScoring(judge="human", labels=sheet))

    assert by_people["first_correct"].mean() == 0.75
    assert (run.path / "labels.csv").is_file()
    assert load_runs([run.path], outcome=RedirectQAStudy.records.outcome)[0].judged_by == "human"
    assert not run.repeat_verdicts.exists()


def test_labels_of_another_run_are_rejected_and_earlier_scores_are_kept(run, llm, tmp_path):
    score_run(run)
    before = run.verdicts.read_bytes()
    first, labels = run.read_plan()[0].iloc[0], tmp_path / "labels.csv"
    columns, ids = "prompt_id,question_id,correct", f"{first['prompt_id']},{first['item']}"

    for content, label in (
        (f"{columns}\nnix,f1,1\n", "are not in this run, such as question 'f1'"),
        (
            f"{columns},answer\n{ids},1,an answer that was never given\n",
            "answers that differ from the scored ones",
        ),
    ):
        labels.write_text(content)
        for judge in ("rule", "llm", "human"):
            scoring = RuleScoring(judge=judge, labels=labels, judge_model="jay")
            with pytest.raises(DataError, match=label):
                score_run(run, scoring=scoring)
    assert run.verdicts.read_bytes() == before
    assert not run.labels.exists()
    # Few labels leave the scores uncorrected.
    labels.write_text(f"{columns}\n{ids},1\n")
    with pytest.warns(SurfaceConsistencyWarning, match="not corrected: canonical answers: "):
        score_run(run, scoring=RuleScoring(labels=labels))
    assert not (run.checks / "corrected.csv").exists()


def test_linking_is_scored_by_llm_judge_and_human_labels(data, llm, monkeypatch, tmp_path):
    monkeypatch.setattr(llm, "_handler", lambda prompt: "1")
    study, runner = LinkingStudy(), FakeRunner(lambda prompt: "Yes, they are.")
    asked = LinkingSettings(repeat=0, read="generate", neighbours="names")
    folder = run_study(study, data, runner, tmp_path / "run", model="m", settings=asked)
    by_rule = score_run(folder, study=study)
    sheet = tmp_path / "sheet.csv"
    scoring = LinkingScoring(judge_model="jay", labelling_sheet=sheet, labelling_sample=1_000)

    by_model = score_run(folder, study=study, scoring=scoring)

    assert by_model["first_correct"].all()
    assert not by_rule["first_correct"].all()
    against = check(folder, "judge_against_rule").set_index("condition")
    assert against.loc["all", "accuracy"] == pytest.approx(by_rule["first_correct"].mean())
    people = LinkingScoring(judge="human", labels=label_sheet(sheet, lambda row: True))
    by_people = score_run(folder, study=study, scoring=people)
    assert by_people["first_correct"].dropna().all()


def test_an_llm_judge_without_questions_is_rejected():
    judge = OverrulingJudge(RuleJudge("exact"), RuleJudge("popqa"), Verdict)
    targets = pd.DataFrame({"target_id": ["t"], "references": [["a"]], "text": ["a"]})
    with pytest.raises(ColumnNotFoundError, match="the column question, which"):
        judge.judge(targets)
