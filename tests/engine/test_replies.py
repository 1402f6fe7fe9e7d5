"""Reasoning, filtered replies and refusals from the run to the page."""

import json

import pandas as pd
import pytest

from surface_consistency.data.slaq import load_slaq
from surface_consistency.engine.report import report_runs
from surface_consistency.engine.run import run_study
from surface_consistency.engine.score import import_predictions, score_run
from surface_consistency.errors import DataError, RunError, UnscoredWarning
from surface_consistency.models import FakeRunner
from surface_consistency.runs.folder import RunFolder
from surface_consistency.runs.log import read_generations
from surface_consistency.schemas import Generation
from surface_consistency.studies.datasets import FactDataset, score_predictions
from surface_consistency.studies.redirectqa.settings import RedirectQASettings
from surface_consistency.studies.redirectqa.study import RedirectQAStudy
from surface_consistency.studies.slaq.settings import SlaqScoring, SlaqSettings
from surface_consistency.studies.slaq.study import SlaqStudy

STUDY = RedirectQAStudy()
SETTINGS = RedirectQASettings(shots=0, repeat=0)


class Replies(FakeRunner):
    """Returns `reply(prompt)` for each prompt: a text, or fields of a generation."""

    def generate(self, prompts, params=None):
        for prompt in prompts:
            self.asked.append(prompt.id)
            generated = self._handler(prompt)
            fields = generated if isinstance(generated, dict) else {"text": generated}
            yield Generation(prompt_id=prompt.id, **fields)


def run_redirectqa(data, reply, out, settings=SETTINGS):
    """Run RedirectQA and return the folder."""
    return run_study(STUDY, data, Replies(reply), out, model="m", settings=settings, progress=False)


def import_run(data, predictions, out, **settings):
    """Import predictions of RedirectQA and return the folder."""
    options = {"settings": RedirectQASettings(**settings)} if settings else {}
    return import_predictions(STUDY, data, predictions, out, model="m", origin="test", **options)[0]


def is_redirect(prompt):
    return "Smith" in prompt.text or "y?" in prompt.text


def test_the_reasoning_of_a_long_slaq_answer_is_not_scored(tmp_path):
    """An accepted name that occurs only in the reasoning is not an answer."""
    study, data = SlaqStudy(), load_slaq("sample")
    settings = SlaqSettings(limit=3, repeat=0)
    accepted = (
        study.plan(data, settings)
        .items.groupby("prompt_id")["references"]
        .agg(lambda lists: ", ".join(answers[0] for answers in lists))
    )
    runner = FakeRunner(
        lambda prompt: f"<think>Could it be {accepted[prompt.id]}? No.</think> I do not know."
    )

    folder = run_study(
        study, data, runner, tmp_path / "run", model="m", settings=settings, progress=False
    )
    frame = score_run(folder, study=study, scoring=SlaqScoring(all_facts=True))

    assert len(frame) == 75
    assert not frame["first_correct"].any()
    assert not frame["second_correct"].any()
    for form in ("short", "long"):
        [generated] = {(one.text, one.reasoning[:8]) for one in read_generations(folder.log(form))}
        assert generated == ("I do not know.", "Could it")


def test_the_first_line_of_an_answer_is_read_after_the_reasoning(data, tmp_path):
    right = {question.question: question.triple.answers[0] for question in data.questions}

    def reply(prompt):
        question = prompt.text.removeprefix("Q: ").removesuffix(" A:")
        return f"<think>\nIt was nobody.\n</think>\n\n{right[question]}\nQ: more"

    folder = run_redirectqa(data, reply, tmp_path)
    frame = score_run(folder)

    assert frame["first_correct"].all()
    assert frame["second_correct"].all()
    assert set(frame["first_prediction"]) <= set(right.values())


def test_stored_reasoning_is_not_scored(data, tmp_path):
    predictions = {
        question.id: f"<think>\n{question.triple.answers[0]}?\nNo.</think>I do not know."
        for question in data.questions
    }

    folder = import_run(data, predictions, tmp_path)

    made = FactDataset(
        name="redirectqa", content=data, source=data.source, prompts=pd.DataFrame(), rows=()
    )
    for frame in (score_run(folder), score_predictions(made, predictions, model="m")):
        assert frame["first_correct"].eq(False).all()
        assert set(frame["first_prediction"]) == {"I do not know."}
    n = len(predictions)
    assert folder.read_manifest().replies == {"stop": n, "reasoning: <think>": n}
    logged = json.loads(folder.log().read_text().splitlines()[0])
    assert logged["reasoning"].endswith("?\nNo.")


def test_replies_without_an_answer_are_counted_but_not_incorrect(data, tmp_path):
    """Each kind has a separate reason, count and check on the page."""
    kinds = {
        "Ann Lee Smith": "<think>I wonder whether",
        "Cat Dow Smith": {"text": None, "finish_reason": "content_filter", "error": "filtered: x"},
        "Fay Gray Smith": {"text": None, "finish_reason": "refusal", "error": "refused: no"},
    }

    def reply(prompt):
        return next(
            (generated for name, generated in kinds.items() if name in prompt.text), "Bo Lee"
        )

    folder = run_redirectqa(data, reply, tmp_path)
    with pytest.warns(UnscoredWarning, match="1 filtered, 1 refused, 1 the reasoning was never"):
        frame = score_run(folder)

    assert frame["second_correct"].isna().sum() == 3
    assert frame["first_correct"].notna().all()
    counts = {"content_filter": 1, "refusal": 1, "stop": 9, "reasoning: <think>": 1}
    assert folder.read_manifest().replies == counts | {"unclosed_reasoning": 1}
    report_runs([folder.path], folder.path, study=STUDY)
    page = (folder.path / "report.html").read_text()
    for title in ("Reasoning without an end", "Filtered replies", "Refusals"):
        assert title in page
    assert "1 of 12 replies end within the reasoning" in page


def test_a_finished_run_does_not_send_filtered_prompts_again(data, tmp_path):
    """If all replies are filtered, the error does not advise to run again."""
    generated = {"text": None, "finish_reason": "content_filter", "error": "withheld"}
    runner = Replies(lambda prompt: generated if is_redirect(prompt) else "Bo Lee")
    for _ in range(2):
        run_study(STUDY, data, runner, tmp_path, model="m", settings=SETTINGS, progress=False)

    assert len(runner.asked) == 12
    assert len((tmp_path / "generations.jsonl").read_text().splitlines()) == 12
    folder = run_redirectqa(data, lambda prompt: generated, tmp_path / "all")
    message = r"no answer, only errors such as 'withheld'\. All prompts have replies"
    with pytest.raises(RunError, match=message):
        score_run(folder)


def test_custom_reasoning_tags_apply_to_runs_and_to_stored_predictions(data, tmp_path):
    text = "{musing} Robert Lee? {done} I do not know."
    tags = {"reasoning_tags": ("{musing}", "{done}")}
    predictions = {question.id: text for question in data.questions}

    chosen = SETTINGS.model_copy(update=tags)
    ran = run_redirectqa(data, lambda prompt: text, tmp_path / "run", chosen)
    stored = import_run(data, predictions, tmp_path / "stored", **tags)

    for folder in (ran, stored):
        assert {answer.text for answer in read_generations(folder.log())} == {"I do not know."}
    assert ran.read_manifest().decoding["answers"]["reasoning_tags"] == ["{musing}", "{done}"]
    with pytest.raises(RunError, match="reasoning_tags"):
        import_run(data, predictions, tmp_path / "stored")
    with pytest.raises(ValueError, match="reasoning_tags must contain pairs"):
        RedirectQASettings(reasoning_tags=("<musing>",))


def test_ambiguous_stored_reasoning_is_rejected_without_reasoning_opened(data, tmp_path):
    """If prompts open the reasoning, a reply without a tag is unfinished reasoning."""
    questions = [question.id for question in data.questions]
    predictions = dict.fromkeys(questions, "hm</think> Bo Lee") | {questions[1]: "I wonder"}

    with pytest.raises(DataError, match=r"1 contain no tag: give `reasoning_opened` if"):
        import_run(data, predictions, tmp_path / "unsaid")
    opened, closed = (
        import_run(
            data, predictions, tmp_path / str(generated), reasoning_opened=generated
        ).read_manifest()
        for generated in (True, False)
    )
    assert opened.replies["unclosed_reasoning"] == 1
    assert closed.replies == {"stop": len(predictions)}


def test_limit_of_reasoning_tokens_is_passed_to_the_runner(data, tmp_path):
    seen = []

    class Watching(Replies):
        def generate(self, prompts, params=None):
            seen.append(params)
            yield from super().generate(prompts, params)

    settings = SETTINGS.model_copy(update={"max_reasoning_tokens": 300})
    runner = Watching(lambda prompt: "Bo Lee")
    run_study(STUDY, data, runner, tmp_path, model="m", settings=settings, progress=False)

    assert {(params.max_new_tokens, params.max_reasoning_tokens) for params in seen} == {(15, 300)}
    assert RunFolder.open(tmp_path).read_manifest().settings["max_reasoning_tokens"] == 300
