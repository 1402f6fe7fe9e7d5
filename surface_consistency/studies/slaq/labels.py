"""Agreement of SLAQ's scores with human labels, and the bundled labelled answers."""

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
    label_agreement,
    warn_uncorrected,
)
from surface_consistency.errors import DataError
from surface_consistency.metrics.positions.topic_layout import topic_arrays


def load_labelled_answers() -> pd.DataFrame:
    """Load human-labelled answers of a model to the bundled sample, for the evaluation of judges.

    The model is SmolLM2-135M-Instruct; the README in the same folder documents how the answers were
    generated and labelled.

    Returns:
        One row per fact of an answer, the facts of an answer in adjacent rows: prompt_id; form,
        "short" or "long"; topic; item; question; reference; is_entity; slot, the number of the
        question in the long query, from 1, missing for a short answer; answer, the whole answer;
        correct, the human label of whether it states the fact; note, the reason of labels that are
        not obvious, otherwise "".

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
    """Compare the labels of a run with human labels, and correct its scores for judge errors.

    Args:
        targets: The scored answers, with text.
        verdicts: Labels by the judge of the run, in the rows of `targets`.
        outcomes: The outcomes frame.
        labels: Human labels of some of its answers, as from `read_labels`.
        resamples: Number of resamples of the intervals.
        seed: Seed of the resampling.

    Returns:
        "judge_agreement", one row per form and kind of label ("correct", and in free form
        "is_recalled"): judge, form, verdict; n_labelled; n (those that the judge also labelled);
        true_positives, false_negatives, false_positives, true_negatives, with the human label as
        the truth; accuracy, kappa, sensitivity and specificity with intervals. "corrected", one row
        per condition, "long" or "free": F_S, F_L, their difference, alignment and signed alignment
        corrected for the judge's errors, with intervals; `observed_<score>`, the uncorrected
        scores; is_cut, n_topics, n_missing. Either may be empty.

    Raises:
        DataError: If a label is of an answer that the run does not contain, or `labels` contains
            only missing labels.

    Warns:
        SurfaceConsistencyWarning: If a condition cannot be corrected, because the labelled answers
            of a form are all correct or all incorrect, or the judge is not better than chance.

    Notes:
        Labels should be a random sample, as drawn by `write_labelling_sheet`. Facts of one topic
        are not fully independent, but the intervals of agreement assume independence. Answers
        without a label of the judge are counted and excluded.

    References:
        SLAQ, arXiv 2510.11218, appendix A.2, which reports the accuracy of its judge on labelled
        answers but does not correct the scores.
    """
    given = labels[labels["correct"].notna()]
    if given.empty:
        raise DataError("no answer is labelled; write 1 or 0 into the column correct")
    check_labels(labels, targets)
    check_labelled_answers(labels, targets)
    of_judge = pd.concat(
        [
            targets[["prompt_id", "item", "form"]].reset_index(drop=True),
            verdicts[["judged_by", "correct", "is_recalled"]].reset_index(drop=True),
        ],
        axis=1,
    ).rename(columns={"item": "question_id"})
    both = given.merge(of_judge, on=["prompt_id", "question_id"], suffixes=("_human", "_judge"))
    rows: list[dict[str, object]] = []
    for form in ("short", "long", "free"):
        part = both[both["form"] == form]
        for verdict in ("correct", "is_recalled") if form == "free" else ("correct",):
            sides = (part[f"{verdict}_{who}"] for who in ("human", "judge"))
            agreement = label_agreement(*sides, resamples=resamples, seed=seed)
            if agreement is not None:
                head = {"judge": part["judged_by"].iloc[0], "form": form, "verdict": verdict}
                rows.append(head | agreement)
    corrected = _corrected(outcomes, rows, resamples, seed)
    return {"judge_agreement": pd.DataFrame(rows), "corrected": pd.DataFrame(corrected)}


def _corrected(
    outcomes: pd.DataFrame, rows: Sequence[Mapping[str, object]], resamples: int, seed: int
) -> list[dict[str, object]]:
    """Correct each condition for which the judge's errors in both forms are known."""
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
        # A free answer is one permutation, with the positions in the source as slots.
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
