"""What labels of people say of the judge of SLAQ, and labels of answers that come along."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from surface_consistency.data.slaq import SLAQ_SAMPLE_PATH, load_slaq_sample
from surface_consistency.data.slaq_records import SlaqQuestion
from surface_consistency.engine.judging.labels import (
    check_labelled_answers,
    check_labels,
    corrected_scores,
    error_of_counts,
    hold_against,
    warn_uncorrected,
)
from surface_consistency.errors import DataError
from surface_consistency.metrics.positions.topic_layout import topic_arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledAnswer:
    """What a model said on one fact of the bundled sample, and whether it is right by reading."""

    prompt_id: str
    """The prompt that it answers."""

    form: Literal["short", "long"]
    """Whether the fact was asked alone or as one of five."""

    question: SlaqQuestion
    """The question with its reference."""

    topic: str
    """Name of the topic."""

    slot: int | None
    """Number of the question in the long query, from 1; None of a short answer."""

    answer: str
    """The whole answer."""

    is_correct: bool
    """Whether it states the fact, by reading."""

    note: str
    """Why, where that needed thought; else empty."""


def load_labelled_answers() -> tuple[LabelledAnswer, ...]:
    """Load the labelled answers of a real model to the bundled sample, which measure judges.

    They are SmolLM2-135M-Instruct's; the README beside the file says how they were made and
    labelled.

    Returns:
        One item a fact of an answer, the facts of an answer side by side.

    Examples:
        >>> answers = load_labelled_answers()
        >>> len(answers), sum(answer.is_correct for answer in answers)
        (480, 46)
    """
    sample = load_slaq_sample()
    questions = {question.id: question for question in sample.questions}
    topics = {topic.id: topic.topic for topic in sample.topics}
    path = SLAQ_SAMPLE_PATH.parent / "slaq_answers" / "answers.jsonl"
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return tuple(
        LabelledAnswer(
            prompt_id=row["prompt_id"],
            form=row["form"],
            question=questions[label["question_id"]],
            topic=topics[row["topic_id"]],
            slot=label["slot"],
            answer=row["answer"],
            is_correct=label["is_correct"],
            note=label.get("note", ""),
        )
        for row in rows
        for label in row["labels"]
    )


def judge_checks(
    targets: pd.DataFrame,
    verdicts: pd.DataFrame,
    outcomes: pd.DataFrame,
    labels: pd.DataFrame,
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, pd.DataFrame]:
    """Hold a run's verdicts against human labels, and take the judge's errors out of its scores.

    Args:
        targets: What was judged, with text.
        verdicts: What the judge said, row by row that of `targets`.
        outcomes: The outcomes frame.
        labels: Labels of some of its answers, as from `read_labels`.
        n_resamples: Resamples of the intervals.
        seed: Seed of the resampling.

    Returns:
        "judge_agreement", one row a form and kind of verdict ("is_correct", and in free form
        "is_recalled"): judge, form, verdict; n_labelled; n (with a verdict of the judge too);
        true_positives, false_negatives, false_positives, true_negatives, the human's word being the
        truth; accuracy, kappa, sensitivity and specificity with intervals. "corrected", one row a
        condition, "long" or "free": F_S, F_L, their difference, alignment and signed alignment
        without the judge's errors, with intervals; `observed_<score>`, as the judge has it; is_cut,
        n_topics, n_missing. Either may be empty.

    Raises:
        DataError: If a label is of an answer that the run does not hold, or nothing is labelled.

    Warns:
        SurfaceConsistencyWarning: If a condition cannot be corrected, because no right or no wrong
            answer of a form is labelled, or the judge is no better than chance.

    Notes:
        Labels should be a random sample, as `write_labelling_sheet` draws one. Facts of one topic
        are not quite independent; the intervals of agreement take them for it. What the judge left
        unjudged is counted and left out.

    References:
        SLAQ, arXiv 2510.11218, appendix A.2, which reports the accuracy of its judge on labelled
        answers but leaves the scores as they are.
    """
    given = labels[labels["is_correct"].notna()]
    if given.empty:
        raise DataError("no answer is labelled; write 1 or 0 into the column is_correct")
    check_labels(labels, targets)
    check_labelled_answers(labels, targets)
    judged = pd.concat(
        [
            targets[["prompt_id", "fact_id", "form"]].reset_index(drop=True),
            verdicts[["judged_by", "is_correct", "is_recalled"]].reset_index(drop=True),
        ],
        axis=1,
    ).rename(columns={"fact_id": "question_id"})
    both = given.merge(judged, on=["prompt_id", "question_id"], suffixes=("_human", "_judge"))
    rows: list[dict[str, object]] = []
    for form in ("short", "long", "free"):
        part = both[both["form"] == form]
        for verdict in ("is_correct", "is_recalled") if form == "free" else ("is_correct",):
            sides = (part[f"{verdict}_{who}"] for who in ("human", "judge"))
            agreement = hold_against(*sides, n_resamples=n_resamples, seed=seed)
            if agreement is not None:
                head = {"judge": part["judged_by"].iloc[0], "form": form, "verdict": verdict}
                rows.append(head | agreement)
    corrected = _corrected(outcomes, rows, n_resamples, seed)
    return {"judge_agreement": pd.DataFrame(rows), "corrected": pd.DataFrame(corrected)}


def _corrected(
    outcomes: pd.DataFrame, rows: Sequence[Mapping[str, object]], n_resamples: int, seed: int
) -> list[dict[str, object]]:
    """Correct each condition whose errors are known on both sides."""
    errors_of = {row["form"]: row for row in rows if row["verdict"] == "is_correct"}
    corrected = []
    for condition in ("long", "free"):
        pairs = outcomes[outcomes["second_condition"] == condition]
        if pairs.empty:
            continue
        try:
            errors = [error_of_counts(errors_of.get(form), form) for form in ("short", condition)]
        except ValueError as error:
            warn_uncorrected(condition, error)
            continue
        # A free answer is one permutation, whose slots are the places in the source.
        slots = pairs.assign(
            permutation=pairs["permutation"].fillna(0),
            slot=pairs["slot"].fillna(pairs["question_index"]),
        )
        arrays = topic_arrays(slots, question="question_index")
        scores = corrected_scores(
            arrays.short, arrays.long, errors, n_resamples=n_resamples, seed=seed
        )
        corrected.append({"condition": condition} | scores)
    return corrected
