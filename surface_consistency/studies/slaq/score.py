"""SLAQ, scored: generations to judgements to the outcomes frame."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from surface_consistency.data.features import to_parquet
from surface_consistency.errors import DataError, UnjudgedWarning
from surface_consistency.inference.run_log import read_generations
from surface_consistency.schemas import Prompt, read_jsonl, write_jsonl
from surface_consistency.schemas.jsonl import write_text
from surface_consistency.schemas.slaq import Judgement, SlaqOutcome, SlaqPrompt, SlaqTopic
from surface_consistency.studies.slaq.folder import SlaqFolder
from surface_consistency.studies.slaq.judge import Judge, JudgeTask

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["score_slaq", "slaq_outcomes", "slaq_tasks"]

_N_FACTS = 5


def score_slaq(folder: SlaqFolder, judge: Judge) -> "pd.DataFrame":
    """Judge a run's answers, those to repeated prompts too, and write the outcomes.

    Args:
        folder: A run that `ask_slaq` finished, or stopped in.
        judge: Who judges.

    Returns:
        The outcomes frame: one row for each fact in each order of its long query, columns of
        `SlaqOutcome`.

    Raises:
        SourceNotFoundError: If a file of the run is not there.
        DataError: If the run holds no answer, or a judge did not judge what it was given.
    """
    topics = list(read_jsonl(folder.topics, SlaqTopic))
    details = list(read_jsonl(folder.details, SlaqPrompt))
    answers = _answers(folder, details, repeat=False)
    if not any(text is not None for text in answers.values()):
        raise DataError(
            f"{folder.path} holds no answer to judge; run the study to its end, or see the errors "
            "in its generations-*.jsonl"
        )
    judgements = _judge(judge, slaq_tasks(topics, details, answers))
    write_jsonl(folder.judgements, judgements)
    _warn_unjudged(judgements)
    model = folder.read_manifest().model
    outcomes = list(slaq_outcomes(topics, details, judgements, answers, model=model))
    if not outcomes:
        raise DataError(f"{folder.path} has no fact that was asked both alone and in a long query")
    to_parquet(folder.outcomes, outcomes, SlaqOutcome)
    _score_repeat(folder, judge, topics, details, judgements)
    return _frame(outcomes)


def slaq_tasks(
    topics: Iterable[SlaqTopic],
    details: Iterable[SlaqPrompt],
    answers: Mapping[str, str | None],
) -> list[JudgeTask]:
    """Gather what a judge is given: each answer with its facts.

    Args:
        topics: The topics.
        details: What each prompt asked for.
        answers: Text by prompt id; prompts without an entry are left out.

    Returns:
        One task a prompt; the facts of a long answer stand in the order of the source, whatever
        order the query had.
    """
    by_topic = {topic.id: topic for topic in topics}
    tasks = []
    for detail in details:
        if detail.prompt_id not in answers:
            continue
        questions = by_topic[detail.topic_id].questions
        if detail.form == "short":
            questions = tuple(q for q in questions if q.id == detail.question_id)
        tasks.append(
            JudgeTask(
                prompt_id=detail.prompt_id,
                form=detail.form,
                questions=questions,
                answer=answers[detail.prompt_id],
            )
        )
    return tasks


def slaq_outcomes(
    topics: Iterable[SlaqTopic],
    details: Iterable[SlaqPrompt],
    judgements: Iterable[Judgement],
    answers: Mapping[str, str | None],
    *,
    model: str,
) -> Iterator[SlaqOutcome]:
    """Pair the verdict on each fact alone with its verdict in each long answer.

    Args:
        topics: The topics.
        details: What each prompt asked for.
        judgements: What the judge said.
        answers: Text by prompt id, to show.
        model: Label of the model.

    Yields:
        One outcome for each fact in each long prompt, and in the free one; "short" first, and
        "long" or "free" second. A verdict that is missing is None.
    """
    by_topic = {topic.id: topic for topic in topics}
    said = {(j.prompt_id, j.question_id): j for j in judgements}
    prompts = list(details)
    alone = {d.question_id: d.prompt_id for d in prompts if d.form == "short"}
    for detail in prompts:
        if detail.form == "short":
            continue
        topic = by_topic[detail.topic_id]
        for question in topic.questions:
            name = alone.get(question.id)
            if name is None:
                continue
            first = said.get((name, question.id))
            second = said.get((detail.prompt_id, question.id))
            yield SlaqOutcome(
                study="slaq",
                model=model,
                pair_id=f"{detail.prompt_id}/{question.index}",
                fact_id=question.id,
                first_condition="short",
                second_condition=detail.form,
                first_correct=first.is_correct if first else None,
                second_correct=second.is_correct if second else None,
                topic_id=topic.id,
                category=topic.category,
                popularity=topic.popularity,
                is_entity=question.is_entity,
                question_index=question.index,
                permutation=detail.permutation,
                slot=detail.slot_of(question.index) if detail.order else None,
                n_slots=len(detail.order) or None,
                order_id=detail.order_id,
                is_recalled=second.is_recalled if second else None,
                first_prediction=answers.get(name),
                second_prediction=answers.get(detail.prompt_id),
            )


def _answers(
    folder: SlaqFolder, details: Sequence[SlaqPrompt], *, repeat: bool
) -> dict[str, str | None]:
    """Find the answer to each prompt; those that the logs do not hold are left out."""
    keys = {prompt.id: prompt.key for prompt in read_jsonl(folder.prompts, Prompt)}
    found: dict[str, str | None] = {}
    for form in dict.fromkeys(detail.form for detail in details):
        log = folder.log(form, repeat=repeat)
        if not log.is_file():
            continue
        by_key = {answer.prompt_key: answer.text for answer in read_generations(log)}
        for detail in details:
            if detail.form == form and keys[detail.prompt_id] in by_key:
                found[detail.prompt_id] = by_key[keys[detail.prompt_id]]
    return found


def _judge(judge: Judge, tasks: Sequence[JudgeTask]) -> list[Judgement]:
    """Let the judge work, and hold it to its task."""
    judgements = list(judge.judge(tasks))
    wanted = [(task.prompt_id, question.id) for task in tasks for question in task.questions]
    if [(j.prompt_id, j.question_id) for j in judgements] != wanted:
        raise DataError(
            f"judge {judge.name!r} was given {len(wanted)} facts and returned {len(judgements)} "
            "judgements, or in another order; it must judge each fact of each answer, in order"
        )
    return judgements


def _score_repeat(
    folder: SlaqFolder,
    judge: Judge,
    topics: Sequence[SlaqTopic],
    details: Sequence[SlaqPrompt],
    judgements: Sequence[Judgement],
) -> None:
    """Judge the prompts that were asked again, and write how many verdicts flipped."""
    answers = _answers(folder, details, repeat=True)
    if not answers:
        return
    again = _judge(judge, slaq_tasks(topics, details, answers))
    write_jsonl(folder.repeat_judgements, again)
    table = _noise_floor(judgements, again, {d.prompt_id: d for d in details})
    write_text(folder.checks / "noise_floor.csv", table.to_csv(index=False, lineterminator="\n"))


def _noise_floor(
    judgements: Sequence[Judgement],
    again: Sequence[Judgement],
    details: Mapping[str, SlaqPrompt],
) -> "pd.DataFrame":
    """Compare the verdicts on two answers to the same prompts, by form."""
    import pandas as pd

    from surface_consistency.metrics import wilson_interval

    first = {(j.prompt_id, j.question_id): j.is_correct for j in judgements}
    flips: dict[str, list[bool]] = {}
    for judgement in again:
        before = first.get((judgement.prompt_id, judgement.question_id))
        if before is not None and judgement.is_correct is not None:
            form = details[judgement.prompt_id].form
            flips.setdefault(form, []).append(before != judgement.is_correct)
    rows = []
    for asked, flipped in flips.items():
        interval = wilson_interval(sum(flipped), len(flipped))
        rows.append(
            {
                "form": asked,
                "n_repeated": len(flipped),
                "n_verdict_flips": sum(flipped),
                "flip_rate": float(np.mean(flipped)),
                "flip_rate_low": interval.low,
                "flip_rate_high": interval.high,
            }
        )
    columns = ["form", "n_repeated", "n_verdict_flips"]
    columns += ["flip_rate", "flip_rate_low", "flip_rate_high"]
    return pd.DataFrame(rows, columns=columns)


def _frame(outcomes: Sequence[SlaqOutcome]) -> "pd.DataFrame":
    """Gather outcomes into the frame that metrics and the report read."""
    import pandas as pd

    columns = list(SlaqOutcome.model_fields)
    rows = [tuple(getattr(item, name) for name in columns) for item in outcomes]
    verdicts = ("first_correct", "second_correct", "is_recalled")
    return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(verdicts, "boolean"))


def _warn_unjudged(judgements: Sequence[Judgement]) -> None:
    """Say how many facts have no verdict, and why."""
    reasons: dict[str, int] = {}
    for judgement in judgements:
        if judgement.reason is not None:
            reason = judgement.reason.split(":")[0]
            reasons[reason] = reasons.get(reason, 0) + 1
    if reasons:
        counted = ", ".join(f"{count} because {why}" for why, count in sorted(reasons.items()))
        warnings.warn(
            f"{sum(reasons.values())} of {len(judgements)} facts could not be judged and are left "
            f"out: {counted}",
            UnjudgedWarning,
            stacklevel=3,
        )
