"""What the labels of people say of SLAQ's judge, and its scores without the judge's errors."""

import warnings
from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from surface_consistency.engine.judging.labels import (
    agreement_columns,
    check_labelled_answers,
    check_labels,
    hold_against,
    with_intervals,
)
from surface_consistency.errors import (
    DataError,
    SurfaceConsistencyWarning,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.metrics import (
    Intervals,
    JudgeAgreementResult,
    JudgeError,
    corrected_alignment,
    topic_alignment,
    topic_arrays,
)

__all__ = ["judge_checks"]

_SCORES: Final = {
    "first_accuracy": "short_accuracy",
    "second_accuracy": "long_accuracy",
    "accuracy_difference": "accuracy_difference",
    "consistency": "alignment",
    "signed_alignment": "signed_alignment",
}


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
    tables: dict[str, JudgeAgreementResult] = {}
    rows = []
    for form in ("short", "long", "free"):
        part = both[both["form"] == form]
        for verdict in ("is_correct", "is_recalled") if form == "free" else ("is_correct",):
            sides = (part[f"{verdict}_{who}"] for who in ("human", "judge"))
            found = hold_against(*sides, n_resamples=n_resamples, seed=seed)
            if found is not None:
                if verdict == "is_correct":
                    tables[form] = found
                head = {"judge": part["judged_by"].iloc[0], "form": form, "verdict": verdict}
                rows.append(head | agreement_columns(found))
    corrected = _corrected(outcomes, tables, n_resamples, seed)
    return {"judge_agreement": pd.DataFrame(rows), "corrected": pd.DataFrame(corrected)}


def _corrected(
    outcomes: pd.DataFrame,
    tables: Mapping[str, JudgeAgreementResult],
    n_resamples: int,
    seed: int,
) -> list[dict[str, object]]:
    """Correct each condition whose errors are known on both sides."""
    rows = []
    for condition in ("long", "free"):
        pairs = outcomes[outcomes["second_condition"] == condition]
        if pairs.empty:
            continue
        try:
            errors = [_error(tables.get(form), form) for form in ("short", condition)]
        except ValueError as error:
            warnings.warn(
                f"the scores of the condition {condition!r} are not corrected: {error}",
                SurfaceConsistencyWarning,
                stacklevel=4,
            )
            continue
        rows.append({"condition": condition} | _corrected_row(pairs, errors, n_resamples, seed))
    return rows


def _error(found: JudgeAgreementResult | None, form: str) -> JudgeError:
    """Return the judge's errors on a form."""
    if found is None:
        raise ValueError(f"no {form} answer has both a label and a verdict; label some")
    try:
        error = JudgeError.of_table(found.table)
    except ValueError as reason:
        raise ValueError(f"of the {form} answers {reason}; label more of them") from reason
    if error.sensitivity + error.specificity <= 1.0:
        raise ValueError(
            f"on {form} answers the judge is no better than chance (sensitivity "
            f"{error.sensitivity:.2f}, specificity {error.specificity:.2f})"
        )
    return error


def _corrected_row(
    pairs: pd.DataFrame, errors: list[JudgeError], n_resamples: int, seed: int
) -> dict[str, object]:
    """Correct one condition, and set what the judge has beside it."""
    # A free answer is one permutation, whose slots are the places in the source.
    slots = pairs.assign(
        permutation=pairs["permutation"].fillna(0),
        slot=pairs["slot"].fillna(pairs["question_index"]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        arrays = topic_arrays(slots, question="question_index")
        found = corrected_alignment(
            arrays.short,
            arrays.long,
            short_error=errors[0],
            long_error=errors[1],
            missing="drop",
            intervals=Intervals(n_resamples=n_resamples, rng=seed),
        )
        seen = topic_alignment(arrays.short, arrays.long, missing="drop")
    row: dict[str, object] = {"n_topics": found.n_topics, "n_missing": found.n_missing}
    for column, name in _SCORES.items():
        observed = (
            seen.long_accuracy - seen.short_accuracy
            if name == "accuracy_difference"
            else getattr(seen, name)
        )
        row[f"observed_{column}"] = float(np.nanmean(observed))
        row |= with_intervals(found, {column: name})
    return row | {"is_cut": found.is_cut}
