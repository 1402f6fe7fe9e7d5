"""The matcher, LLM judges and human labels."""

from pathlib import Path

import pandas as pd
import pytest

from surface_consistency.engine.judging.judges import HumanJudge, LLMJudge, judge_targets
from surface_consistency.errors import ColumnNotFoundError, DataError, RunError, SourceNotFoundError
from surface_consistency.models import FakeRunner
from surface_consistency.schemas import Generation, Verdict
from surface_consistency.studies.slaq.judges import MatcherJudge, SlaqLLMJudge, matcher_agreement
from surface_consistency.studies.slaq.labels import load_labelled_answers
from surface_consistency.studies.slaq.settings import SlaqScoring

LONG = "Rome fought Carthage, and Hannibal Barca led; it began in 264 BCE."


def llm(runner, folder, **options):
    return SlaqLLMJudge(runner, folder, model="j", progress=False, **options)


def verdicts(judgements):
    return [judgement.correct for judgement in judgements]


def recalled(judgements):
    return [judgement.is_recalled for judgement in judgements]


def test_llm_judge_scores_all_facts_of_an_answer_in_one_request(task, judged, tmp_path):
    """Rows of an answer need not be adjacent."""
    runner = FakeRunner(
        {
            "judge/s": "1",
            "judge/l": "[1, 1, 0, 0, 1]",
            "judge/f": '["right","wrong","absent","absent","right"]',
        }
    )
    forms = {"s": "short", "l": "long", "f": "free"}
    tasks = pd.concat([task(form, LONG, name) for name, form in forms.items()], ignore_index=True)
    mixed = tasks.iloc[[6, 1, 7, 2, 0, 8, 3, 9, 4, 10, 5]]

    found = dict(zip(mixed.index, judged(llm(runner, tmp_path), mixed), strict=True))
    found = [found[place] for place in range(11)]

    assert verdicts(found[:6]) == [True, True, True, False, False, True]
    assert verdicts(found[6:]) == [True, False, False, False, True]
    assert recalled(found) == [None] * 6 + [True, True, False, False, True]
    assert {j.raw for j in found[1:6]} == {"[1, 1, 0, 0, 1]"}
    assert sorted(runner.asked) == ["judge/f", "judge/l", "judge/s"]


BAD = ["The answer covers four facts.", "[1, 1, 1, 1]", "[1, 1, 1, 1, 1, 1]", "1 1 1 1 1"]


@pytest.mark.parametrize("bad", [*BAD, "", "五つとも正しいです。", "<html></html>"])
def test_an_invalid_reply_is_requested_once_more(task, judged, tmp_path, bad):
    """Two invalid replies give a missing label, not an incorrect answer."""
    runner = FakeRunner(lambda prompt: bad if len(prompt.messages) == 2 else "[1, 0, 1, 0, 1]")

    found = judged(llm(runner, tmp_path), task("long", LONG))
    [lost] = judged(llm(FakeRunner(lambda prompt: bad), tmp_path / "x"), task("short", "Rome"))

    assert verdicts(found) == [True, False, True, False, True]
    assert {j.attempts for j in found} == {2}
    assert runner.asked == ["judge/p", "judge/p/2"]
    assert (lost.correct, lost.raw, lost.attempts) == (None, bad, 2)
    assert "expected 1 or 0" in lost.reason


def test_missing_answers_have_no_label_and_empty_ones_are_incorrect(task, judged, tmp_path):
    class Broken(FakeRunner):
        def generate(self, prompts, params=None):
            for one in prompts:
                yield Generation(prompt_id=one.id, text=None, finish_reason="error", error="quota")

    [unasked] = judged(llm(Broken({}), tmp_path / "x"), task("short", "Rome"))
    assert (unasked.correct, "request to the judge failed: quota" in unasked.reason) == (None, True)
    runner = FakeRunner({})
    tasks = [task("short", None, "a"), task("long", " \n", "b"), task("free", "", "c")]

    found = judged(llm(runner, tmp_path), *tasks)

    assert verdicts(found) == [None] + [False] * 10
    assert found[-1].is_recalled is False
    assert runner.asked == []


def test_llm_judge_resumes_without_sending_prompts_again(task, judged, tmp_path):
    first = FakeRunner(lambda prompt: "1", name="fake")
    judged(llm(first, tmp_path), task("short", "Rome", "a"))
    second = FakeRunner(lambda prompt: "0", name="fake")

    found = judged(llm(second, tmp_path), task("short", "Rome", "a"), task("short", "Ostia", "b"))

    assert verdicts(found) == [True, False]
    assert second.asked == ["judge/b"]
    with pytest.raises(RunError, match="name"):
        judged(llm(FakeRunner(lambda prompt: "1", name="other"), tmp_path), task("short", "Rome"))


def test_matcher_scores_only_facts_with_named_entities_by_default(task, judged):
    found = judged(MatcherJudge(), task("long", LONG), task("free", "Rome.", "f"))

    assert verdicts(found) == [True] * 4 + [None] + [True] + [False] * 3 + [None]
    assert found[4].reason == "the reference is no named entity"
    assert recalled(found[5:]) == [True, None, None, None, None]
    every = judged(MatcherJudge(entities_only=False), task("long", "because of trade"))
    assert verdicts(every) == [False] * 4 + [True]
    assert verdicts(judged(MatcherJudge(), task("long", None))) == [None] * 5
    # A leading article of the reference is ignored.
    epic = task("short", "A part of the epic Mahabharata.").assign(references=[["The Mahabharata"]])
    assert verdicts(judged(MatcherJudge(), epic)) == [True]


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        # The matcher finds names in other languages, but not translations.
        ("Hannibal Barca a mené Carthage contre Rome depuis 264 BCE.", [1, 1, 1, 1]),
        ("ハンニバル・バルカ", [0, 0, 0, 0]),
        ("I'm sorry, but I can't help with that.", [0, 0, 0, 0]),
        ("<p><b>Rome</b> and <i>Carthage</i></p>", [1, 1, 0, 0]),
        ("", [0, 0, 0, 0]),
        ("Romeo and Juliet", [0, 0, 0, 0]),
    ],
)
def test_matcher_on_other_languages_refusals_markup_and_empty_answers(task, judged, answer, right):
    found = judged(MatcherJudge(), task("long", answer))

    assert verdicts(found) == [*map(bool, right), None]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rule": "vibes"}, "rule"),
        ({"part": "half"}, "`part` must be 'answering' or 'whole', got 'half'"),
    ],
)
def test_matcher_rejects_unknown_rules_and_parts(given, message):
    with pytest.raises(ValueError, match=message):
        MatcherJudge(**given)


def test_human_labels_are_read_and_missing_ones_have_a_reason(task, judged, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(
        "\ufeffprompt_id,question_id,correct,is_recalled\n"
        "p,punic/1,1,yes\np,punic/2,False,0\np,punic/3,,\n",
        encoding="utf-8",
    )

    found = judged(HumanJudge(path), task("free", LONG))

    assert verdicts(found) == [True, False, None, None, None]
    assert recalled(found) == [True, False, None, None, None]
    assert found[3].reason == "no label in labels.csv"
    unasked = judged(HumanJudge(path), task("free", None))
    assert verdicts(unasked) == [None] * 5
    assert {one.reason for one in unasked} == {"there is no answer to judge"}


HEADER = b"prompt_id,question_id,correct"


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (None, SourceNotFoundError, "file .* not found"),
        (b"prompt_id,correct\n", ColumnNotFoundError, "no column question_id"),
        (b"", ColumnNotFoundError, "this one has none"),
        (HEADER + b"\np,q,1\np,q,0\n", DataError, r":3: question 'q' of prompt 'p' was labelled"),
        (HEADER + b"\np,q,maybe\n", DataError, r":2: 'maybe' is not a label"),
        (HEADER + b"\n\xfc,q,1\n", DataError, "not UTF-8"),
        (HEADER + b"\np," + b"q" * 2**24 + b",1\n", DataError, "more than 16,777,216 bytes"),
        (
            HEADER + b",is_recalled\np,q,1,0\n",
            DataError,
            r":2: a fact that is not recalled cannot be correct",
        ),
    ],
)
def test_invalid_label_files_are_rejected(tmp_path, content, error, message):
    path = tmp_path / "labels.csv"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(error, match=message):
        HumanJudge(path)


def test_llm_judge_returns_verdicts_of_any_study(task, tmp_path):
    """Without free texts the judge does not need the verdict record of SLAQ."""
    runner = FakeRunner({"judge/s": "1", "judge/l": "[1, 0, 0, 0, 1]"})
    judge = LLMJudge(runner, tmp_path, model="j", progress=False)
    targets = pd.concat([task("short", "Rome", "s"), task("long", LONG, "l")], ignore_index=True)

    found = judge_targets(judge, targets, Verdict)

    assert list(found) == list(Verdict.model_fields)
    assert found["correct"].tolist() == [True, True, False, False, False, True]
    assert set(found["judged_by"]) == {"llm:j"}


def test_matcher_scores_the_part_that_answers_unless_part_is_whole(task, judged):
    """The name is in a sentence on another question, which the whole text contains."""
    questions = ["Who won?", "Who lost the war?", "Who crossed the Alps?", "When?", "Why?"]
    answer = "Rome lost the war. Hannibal Barca crossed the Alps. Carthage won."
    target = task("long", answer).assign(question=questions)

    found = judged(MatcherJudge(), target)
    whole = judged(MatcherJudge(part="whole"), target)

    assert verdicts(found) == [False, False, True, False, None]
    assert verdicts(whole) == [True, True, True, False, None]
    assert {one.prediction for one in found} == {answer}
    assert found[0].judged_by == "matcher:boundary"
    assert whole[0].judged_by == "matcher:boundary on whole"


def test_labelled_answers_are_complete():
    """Of 120 short and 72 long answers, each fact is labelled once."""
    labelled = load_labelled_answers()

    assert len(labelled.drop_duplicates(["prompt_id", "item"])) == len(labelled) == 480
    assert labelled["prompt_id"].nunique() == 192
    assert labelled["form"].value_counts().to_dict() == {"long": 360, "short": 120}
    assert labelled["answer"].str.strip().all()
    assert set(labelled.loc[labelled["form"] == "long", "slot"]) == {1, 2, 3, 4, 5}
    assert labelled["is_entity"].notna().all()


def test_judge_model_sets_the_judge_to_llm_unless_judge_is_given():
    assert SlaqScoring(judge_model="m").judge == "llm"
    assert SlaqScoring(judge_model="m", judge="matcher").judge == "matcher"
    assert SlaqScoring().judge == "matcher"


@pytest.mark.parametrize("part", ["whole", "answering"])
@pytest.mark.parametrize("form", ["short", "long"])
def test_error_rates_of_the_matcher_in_the_guide_are_current(part, form):
    """The table of the guide equals `matcher_agreement`."""
    found = matcher_agreement(part=part, form=form)
    bounds = f"[{100 * found['accuracy_low']:.1f}, {100 * found['accuracy_high']:.1f}]"
    hits = found["true_positives"]
    cells = (
        part,
        form,
        found["n"],
        f"{100 * found['accuracy']:.1f} {bounds}",
        f"{found['kappa']:.2f}",
        f"{hits} of {hits + found['false_positives']}",
        f"{hits} of {hits + found['false_negatives']}",
    )

    guide = Path(__file__).parents[3] / "docs" / "guides" / "slaq.md"

    assert f"| {' | '.join(map(str, cells))} |" in guide.read_text(encoding="utf-8")
    if form == "long":
        assert matcher_agreement(part=part, entities_only=True)["n"] == 324
