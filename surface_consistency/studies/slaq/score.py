"""SLAQ, scored: generations to judgements to the outcomes frame."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from surface_consistency.errors import DataError, UnjudgedWarning
from surface_consistency.runs.files import write_text
from surface_consistency.runs.log import read_generations
from surface_consistency.schemas import Prompt, read_jsonl, write_jsonl
from surface_consistency.schemas.slaq import Judgement, SlaqPrompt, SlaqTopic
from surface_consistency.studies.slaq.folder import SlaqFolder
from surface_consistency.studies.slaq.human_judge import HumanJudge
from surface_consistency.studies.slaq.judge import Judge, JudgeTask
from surface_consistency.studies.slaq.judge_quality import judge_quality
from surface_consistency.studies.slaq.labels import read_labels
from surface_consistency.studies.slaq.noise_floor import noise_floor
from surface_consistency.studies.slaq.outcomes import slaq_frame, write_slaq_outcomes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_slaq_tasks", "score_slaq", "slaq_tasks"]

_CHECKS: Final = ("noise_floor", "judge_agreement", "corrected")


def score_slaq(folder: SlaqFolder, judge: Judge) -> "pd.DataFrame":
    """Judge a run's answers, those to repeated prompts too, and write the outcomes.

    Where the folder holds `labels.csv`, the judge is held against it: `checks/judge_agreement.csv`
    and `checks/corrected.csv`, see `judge_quality`.

    Args:
        folder: A run that `ask_slaq` finished, or stopped in.
        judge: Who judges.

    Returns:
        The outcomes frame: one row for each fact in each order of its long query, columns of
        `SlaqOutcome`.

    Raises:
        SourceNotFoundError: If a file of the run is not there.
        DataError: If the run holds no answer, the judge decided nothing or did not judge what it
            was given, or the labels are of another run; earlier verdicts are kept then.
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
    _refuse_no_verdict(judgements, judge)
    model = folder.read_manifest().model
    frame = slaq_frame(topics, details, judgements, answers, model=model)
    if frame.empty:
        raise DataError(f"{folder.path} has no fact that was asked both alone and in a long query")
    again = _answers(folder, details, repeat=True)
    repeated = _judge(judge, slaq_tasks(topics, details, again)) if again else None
    # Checks of an earlier judge must not stand beside the verdicts of this one.
    for name in _CHECKS:
        (folder.checks / f"{name}.csv").unlink(missing_ok=True)
    write_jsonl(folder.judgements, judgements)
    write_slaq_outcomes(folder.outcomes, frame)
    _warn_unjudged(judgements)
    _write_checks(folder, details, judgements, repeated)
    return frame


def read_slaq_tasks(folder: SlaqFolder) -> list[JudgeTask]:
    """Gather what a judge, or a person with a sheet, is given of a run.

    Args:
        folder: A run that `ask_slaq` finished, or stopped in.

    Returns:
        As `slaq_tasks`, for the first answers.

    Raises:
        SourceNotFoundError: If a file of the run is not there.
    """
    details = list(read_jsonl(folder.details, SlaqPrompt))
    answers = _answers(folder, details, repeat=False)
    return slaq_tasks(read_jsonl(folder.topics, SlaqTopic), details, answers)


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


def _write_checks(
    folder: SlaqFolder,
    details: Sequence[SlaqPrompt],
    judgements: Sequence[Judgement],
    repeated: Sequence[Judgement] | None,
) -> None:
    """Write noise floor and quality of the judge, as far as there is anything to tell."""
    tables: dict[str, pd.DataFrame] = {}
    if repeated is not None:
        write_jsonl(folder.repeat_judgements, repeated)
        tables["noise_floor"] = noise_floor(judgements, repeated, details)
    is_human = any(judgement.judge == HumanJudge.name for judgement in judgements[:1])
    if folder.labels.is_file() and not is_human:
        quality = judge_quality(folder, read_labels(folder.labels))
        tables |= {"judge_agreement": quality.agreement, "corrected": quality.corrected}
    for name, table in tables.items():
        if not table.empty:
            path = folder.checks / f"{name}.csv"
            write_text(path, table.to_csv(index=False, lineterminator="\n"))


def _refuse_no_verdict(judgements: Sequence[Judgement], judge: Judge) -> None:
    """Refuse to put nothing in the place of earlier verdicts."""
    if any(judgement.is_correct is not None for judgement in judgements):
        return
    first = next((judgement.reason for judgement in judgements if judgement.reason), "no reason")
    raise DataError(
        f"judge {judge.name!r} decided none of {len(judgements)} facts, the first because {first}; "
        "mend that and score again: what was judged before is kept"
    )


def _warn_unjudged(judgements: Sequence[Judgement]) -> None:
    """Say how many facts have no verdict, and why."""
    reasons: dict[str, int] = {}
    for judgement in judgements:
        if judgement.reason is not None:
            reason = judgement.reason.split(":")[0]
            reasons[reason] = reasons.get(reason, 0) + 1
    if reasons:
        counted = ", ".join(f"{count} because {why}" for why, count in sorted(reasons.items()))
        first = next(judgement.reason for judgement in judgements if judgement.reason is not None)
        warnings.warn(
            f"{sum(reasons.values())} of {len(judgements)} judgements are missing and left out: "
            f"{counted}; the first: {first}",
            UnjudgedWarning,
            stacklevel=3,
        )
