"""What labels of people say of the judge of SLAQ, and labels of answers that come along."""

import json
from collections.abc import Mapping, Sequence

import pandas as pd

from surface_consistency.data.slaq import load_slaq
from surface_consistency.data.sources import SAMPLES
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


def load_labelled_answers() -> pd.DataFrame:
    """Load the labelled answers of a real model to the bundled sample, which measure judges.

    They are SmolLM2-135M-Instruct's; the README beside the file says how they were made and
    labelled.

    Returns:
        One row per fact of an answer, the facts of an answer side by side: prompt_id; form, "short"
        or "long"; topic; item; question; reference; is_entity; slot, the number of the question
        in the long query, from 1, missing for a short answer; answer, the whole answer; correct,
        whether it states the fact, by reading; note, the reason if that needed thought, else "".

    Examples:
        >>> answers = load_labelled_answers()
        >>> len(answers), int(answers["correct"].sum())
        (480, 46)
    """
    path = SAMPLES / "slaq_answers" / "answers.jsonl"
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    labels = pd.json_normalize(list(lines), "labels", ["prompt_id", "form", "answer"])
    facts = load_slaq("sample").rows[["item", "topic", "question", "answer", "is_entity"]]
    facts = facts.rename(columns={"item": "question_id", "answer": "reference"})
    joined = labels.merge(facts, on="question_id", how="left", validate="many_to_one")
    joined = joined.rename(columns={"question_id": "item"}).astype({"slot": "Int64"})
    joined["note"] = joined["note"].fillna("")
    return joined[
        [
            *("prompt_id", "form", "topic", "item", "question", "reference", "is_entity"),
            *("slot", "answer", "correct", "note"),
        ]
    ]


def judge_checks(
    targets: pd.DataFrame,
    verdicts: pd.DataFrame,
    outcomes: pd.DataFrame,
    labels: pd.DataFrame,
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, pd.DataFrame]:
    """Hold a run's verdicts against human labels, and take the judge's errors out of its scores.

    Args:
        targets: What was judged, with text.
        verdicts: What the judge said, row by row that of `targets`.
        outcomes: The outcomes frame.
        labels: Labels of some of its answers, as from `read_labels`.
        resamples: Resamples of the intervals.
        seed: Seed of the resampling.

    Returns:
        "judge_agreement", one row a form and kind of verdict ("correct", and in free form
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
    given = labels[labels["correct"].notna()]
    if given.empty:
        raise DataError("no answer is labelled; write 1 or 0 into the column correct")
    check_labels(labels, targets)
    check_labelled_answers(labels, targets)
    judged = pd.concat(
        [
            targets[["prompt_id", "item", "form"]].reset_index(drop=True),
            verdicts[["judged_by", "correct", "is_recalled"]].reset_index(drop=True),
        ],
        axis=1,
    ).rename(columns={"item": "question_id"})
    both = given.merge(judged, on=["prompt_id", "question_id"], suffixes=("_human", "_judge"))
    rows: list[dict[str, object]] = []
    for form in ("short", "long", "free"):
        part = both[both["form"] == form]
        for verdict in ("correct", "is_recalled") if form == "free" else ("correct",):
            sides = (part[f"{verdict}_{who}"] for who in ("human", "judge"))
            agreement = hold_against(*sides, resamples=resamples, seed=seed)
            if agreement is not None:
                head = {"judge": part["judged_by"].iloc[0], "form": form, "verdict": verdict}
                rows.append(head | agreement)
    corrected = _corrected(outcomes, rows, resamples, seed)
    return {"judge_agreement": pd.DataFrame(rows), "corrected": pd.DataFrame(corrected)}


def _corrected(
    outcomes: pd.DataFrame, rows: Sequence[Mapping[str, object]], resamples: int, seed: int
) -> list[dict[str, object]]:
    """Correct each condition whose errors are known on both sides."""
    errors_of = {row["form"]: row for row in rows if row["verdict"] == "correct"}
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
            arrays["short"], arrays["long"], errors, resamples=resamples, seed=seed
        )
        corrected.append({"condition": condition} | scores)
    return corrected
