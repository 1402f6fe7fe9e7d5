"""Agreement of the two answers of a pair, and checks of the answers."""

import dataclasses
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from surface_consistency.data.redirectqa import load_redirectqa
from surface_consistency.engine.design import Report
from surface_consistency.engine.judging.judges import RuleJudge
from surface_consistency.engine.paired.answers import answer_agreement, same_answers
from surface_consistency.engine.paired.checks import check_answers, doubts_of
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import score_run
from surface_consistency.engine.settings import ReportSettings, RuleScoring
from surface_consistency.errors import MissingDependencyError, SurfaceConsistencyWarning
from surface_consistency.models import FakeRunner
from surface_consistency.runs.folder import RunFolder, Scoring
from surface_consistency.runs.loader import load_runs
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.tables.numbers import sentence_text
from surface_consistency.tables.sentences import paragraph
from surface_consistency.text import normalize
from tests.made_runs import make_manifest, make_outcomes, memory_run


def run(verdicts, answers, *, judged_by="popqa on first_line", folder="nowhere", **changes):
    """Make a run in memory, of a manifest with changes."""
    outcomes, columns = make_outcomes(verdicts), ["first_prediction", "second_prediction"]
    outcomes[columns] = pd.DataFrame(answers, dtype=object)
    manifest, folder = make_manifest("m", **changes), RunFolder(Path(folder))
    scoring = Scoring(judged_by=judged_by, settings={"rule": judged_by.split(" ")[0]})
    return memory_run(outcomes, manifest=manifest, folder=folder, scoring=scoring)


def report_of(*runs):
    settings = ReportSettings(resamples=200)
    report = Report(runs=runs, design=RedirectQAStudy.design, settings=settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SurfaceConsistencyWarning)
        tables = RedirectQAStudy.report.compute(report)
    return RedirectQAStudy.report.page(report, tables), tables


def text_of(parts):
    """The text of a sentence with ordinary spaces."""
    return sentence_text(parts).replace("\u00a0", " ")


def checks_of(page):
    return {check.title: text_of(check.text) for check in page.checks}


def test_same_answers_compares_normalized_words_or_applies_a_rule():
    first = ["Paris.", "Paris, France", "Rome", "U.S.", None, " "]
    second = ["PARIS", "Paris", "Oslo", "us", "x", " "]

    assert same_answers(first, second) == [True, False, False, False, None, None]
    assert same_answers(first, second, rule="popqa") == [True, True, False, False, None, None]
    assert same_answers(second, first, rule="boundary") == [True, True, False, False, None, None]
    with pytest.raises(ValueError, match="equal lengths, got 1 and 2"):
        same_answers(["a"], ["a", "b"])


def test_answer_agreement_agrees_with_a_naive_loop():
    rng = np.random.default_rng(0)
    texts = np.array(["Paris", "paris.", "Rome", "in Rome", "", None], dtype=object)
    verdicts, n = np.array([True, False, None]), 400
    cells = {"model": rng.choice(["a", "b"], n), "item": rng.integers(0, 40, n)}
    for side in ("first", "second"):
        cells[f"{side}_correct"] = rng.choice(verdicts, n, p=[0.4, 0.5, 0.1])
        cells[f"{side}_prediction"] = rng.choice(texts, n)
    frame = pd.DataFrame(cells)

    table = answer_agreement(frame, rule="boundary")

    for row in table.to_dict("records"):
        kept = []
        for one in frame[frame["model"] == row["model"]].to_dict("records"):
            verdicts = (one["first_correct"], one["second_correct"])
            given = (one["first_prediction"], one["second_prediction"])
            is_both = row["among"] == "all" or verdicts == (False, False)
            is_said = all(isinstance(text, str) and text for text in given)
            if None not in verdicts and is_said and is_both:
                words = [f" {normalize(text)} " for text in given]
                kept.append((words[0] == words[1], words[0] in words[1] or words[1] in words[0]))
        assert row["n"] == len(kept)
        assert row["same_answer"] == pytest.approx(np.mean([same for same, _ in kept]))
        assert row["same_by_rule"] == pytest.approx(np.mean([same for _, same in kept]))
        assert row["same_answer_low"] <= row["same_answer"] <= row["same_answer_high"]
    assert table["among"].tolist() == ["all", "both wrong"] * 2


def test_finding_reports_accuracy_instead_of_flips_if_accuracy_is_near_zero():
    """The consistency of a model that is never correct is not informative."""
    page, _ = report_of(run([(False, False)] * 50 + [(True, False)], [("a", "b")] * 51))

    sentence = text_of(page.finding.sentence)
    assert sentence.startswith("The accuracy of m under “title” is 2.0 % (95 % CI ")
    assert "The accuracy of m under “redirect” is 0.0 % (95 % CI " in sentence
    assert "consistency is not informative" in sentence
    assert "flip" not in sentence
    page, _ = report_of(run([(True, False)] * 20 + [(True, True)] * 20, [("a", "b")] * 40))
    assert text_of(page.finding.sentence).startswith(
        "The flip rate of m between “title” and “redirect” is 50.0 % (95 % CI "
    )


def test_empty_answers_are_reported_with_the_remedy():
    verdicts = [(True, True)] * 20 + [(False, False)] * 20

    page, _ = report_of(run(verdicts, [("a", "b")] * 20 + [("", "b")] * 20))

    assert "--setting region=first_text_line" in checks_of(page)["Empty answers"]
    assert "20 of 80" in checks_of(page)["Empty answers"]


def test_outputs_that_begin_with_a_newline_give_a_warning():
    """Blank outputs give no warning."""
    targets = pd.DataFrame({"text": ["\nParis"] * 9 + ["Paris"], "references": [["Paris"]] * 10})

    with pytest.warns(SurfaceConsistencyWarning, match="9 of 10 outputs begin with a blank line"):
        lines = RuleJudge().judge(targets)
    found = RuleJudge(region="first_text_line").judge(targets)

    assert lines["correct"].sum() == 1
    assert found["correct"].all()
    assert set(found["prediction"]) == {"Paris"}
    blank = pd.DataFrame({"text": ["\n", ""], "references": [["Paris"]] * 2})
    assert not RuleJudge().judge(blank)["correct"].any()


UNSPACED = ("Scripts without spaces", "--rule segmented")
PARTICLES = ("Words with particles", "서울은 is incorrect for 서울")


@pytest.mark.parametrize(
    ("judged_by", "answer", "expected"),
    [
        ("popqa on first_line", "それは東京都です", [UNSPACED]),
        ("boundary on whole", "กรุงเทพ", [UNSPACED]),
        ("popqa on first_line", "서울은", []),
        ("popqa on first_line", "It is Tokyo", []),
        ("segmented on first_line", "それは東京都です", []),
        ("llm:judge", "それは東京都です", []),
        ("token_f1 on first_line", "東京都", [UNSPACED]),
        ("boundary on first_line", "서울은", [PARTICLES]),
        ("segmented on first_line", "בירושלים", [PARTICLES]),
        ("boundary on first_line", "in Seoul", []),
    ],
)
def test_answers_in_scripts_unsupported_by_the_rule_are_reported(judged_by, answer, expected):
    made = run([(True, False)] * 10, [(answer, "x")] * 10, judged_by=judged_by)

    found = {check.title: text_of(check.text) for check in check_answers(made)}

    known = {UNSPACED[0], PARTICLES[0]}
    assert known & found.keys() == {title for title, _ in expected}
    for title, remedy in expected:
        assert remedy in found[title]
        assert "10 of 20 scored answers" in found[title]


@pytest.mark.parametrize(
    ("template", "prompt", "read", "answer", "is_reported"),
    [
        ("2aca2058", '{"text": "Q: x"}', "generate", "a", True),
        (None, '{"text": "Q: x"}', "generate", "a", False),
        ("2aca2058", '{"text": null, "messages": []}', "generate", "a", False),
        ("2aca2058", '["text"]', "generate", "a", False),
        ("2aca2058", None, "generate", "a", False),
        ("2aca2058", '{"text": "Q: x"}', "multiple-choice", "a", False),
        ("2aca2058", '{"text": "Q: x"}', "generate", None, False),
    ],
)
def test_a_chat_template_that_was_not_used_is_reported(
    tmp_path, template, prompt, read, answer, is_reported
):
    """Only scored text that a model generated needs the chat template."""
    if prompt is not None:
        (tmp_path / "prompts.jsonl").write_text(prompt + "\n")
    runner = {"runner": "transformers", "chat_template": template}
    changes = {"runner": runner, "settings": {"read": read}}
    made = run([(True, True)], [(answer, answer)], folder=tmp_path, **changes)

    titles = {check.title for check in check_answers(made)}

    assert ("Chat template not used" in titles) is is_reported


def test_a_rule_without_its_library_is_rejected_before_any_prompt(monkeypatch):
    def absent(self, texts):
        raise MissingDependencyError("the rule `segmented`", "icu4py", "lexical")

    monkeypatch.setattr("surface_consistency.matching.segmented.SegmentedRule.keys", absent)

    with pytest.raises(MissingDependencyError, match=r"surface-consistency\[lexical\]"):
        RuleScoring(rule="segmented")


def test_page_of_runs_without_answers_has_no_table_of_answers():
    made = run([(True, True)] * 4, [("a", "a")] * 4)
    bare = dataclasses.replace(
        made, outcomes=made.outcomes.assign(first_prediction=None, second_prediction=None)
    )

    page, tables = report_of(bare)

    assert "same_answer" not in tables
    assert "identical answers" not in text_of(page.finding.summary)


def test_an_answer_of_several_pairs_counts_once(tmp_path):
    """Several redirects are compared with one title, whose answer is empty."""
    data = load_redirectqa("sample")
    titles = set(data.pairs["canonical_surface"])
    runner = FakeRunner(
        lambda prompt: "" if any(f" {one}" in prompt.text for one in titles) else "x"
    )
    settings = RedirectQASettings(shots=0, repeat=0, limit=12)
    folder = run_study(RedirectQAStudy(), data, runner, tmp_path, model="m", settings=settings)
    score_run(folder)
    (made,) = load_runs([folder.path], outcome=RedirectQAStudy.records.outcome)
    targets = folder.read_plan()[0]
    n_empty = int(folder.read_answers([""])["text"].eq("").sum())
    assert len(made.outcomes) > made.outcomes["first_surface"].nunique()

    found = {check.title: text_of(check.text) for check in check_answers(made)}

    assert (
        f"m: {n_empty} of {len(targets)} answers in the pairs are empty" in found["Empty answers"]
    )
    doubts = text_of(paragraph(doubts_of([made])))
    assert f"{n_empty} of {len(targets)} answers of m are empty" in doubts


@pytest.mark.parametrize(
    ("runner", "is_reported"),
    [("fake", True), ("stored", False), ("stored-scores", False), ("verdicts", False)],
)
def test_remedy_to_repeat_prompts_is_only_reported_for_runs_of_a_runner(runner, is_reported):
    made = run([(True, False)] * 10, [("a", "b")] * 10, runner={"runner": runner})

    text = checks_of(report_of(made)[0])["No noise floor"]

    assert ("`repeat` runs some prompts twice" in text) == is_reported
    assert text.endswith(".")
