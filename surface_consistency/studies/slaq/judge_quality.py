"""How good the judge of a run was, by human labels, and the scores without its errors."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from surface_consistency.errors import (
    DataError,
    SurfaceConsistencyWarning,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.metrics import (
    JudgeAgreementResult,
    JudgeError,
    corrected_alignment,
    judge_agreement,
    topic_alignment,
    topic_arrays,
)
from surface_consistency.schemas import read_jsonl
from surface_consistency.schemas.slaq import Judgement, SlaqForm, SlaqPrompt
from surface_consistency.studies.slaq.folder import SlaqFolder
from surface_consistency.studies.slaq.labels import Label, check_labels

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

__all__ = ["JudgeQuality", "judge_quality"]

_SCORES: Final = (
    "short_accuracy",
    "long_accuracy",
    "accuracy_difference",
    "alignment",
    "signed_alignment",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeQuality:
    """Result of `judge_quality`."""

    agreement: "pd.DataFrame"
    """One row a form and kind of verdict ("is_correct", and in free form "is_recalled"): judge,
    form, verdict; n_labelled; n (with a verdict of the judge too); true_positives,
    false_negatives, false_positives, true_negatives, the human's word being the truth; accuracy,
    kappa, sensitivity and specificity with intervals."""

    corrected: "pd.DataFrame"
    """One row a condition, "long" or "free": F_S, F_L, their difference, alignment and signed
    alignment without the judge's errors, with intervals; `observed_<score>`, as the judge has it;
    is_cut, n_topics, n_missing."""


def judge_quality(
    folder: SlaqFolder,
    labels: Mapping[tuple[str, str], Label],
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> JudgeQuality:
    """Hold a run's verdicts against human labels, and take the judge's errors out of its scores.

    Args:
        folder: A scored run.
        labels: Labels of some of its answers, as from `read_labels`.
        n_resamples: Resamples of the intervals.
        seed: Seed of the resampling.

    Returns:
        Agreement by form, and the corrected scores.

    Raises:
        SourceNotFoundError: If the run is not scored.
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
    import pandas as pd

    forms = {d.prompt_id: d.form for d in read_jsonl(folder.details, SlaqPrompt)}
    judgements = {(j.prompt_id, j.question_id): j for j in read_jsonl(folder.judgements, Judgement)}
    given = {key: label for key, label in labels.items() if label.is_correct is not None}
    if not given:
        raise DataError("no answer is labelled; write 1 or 0 into the column is_correct")
    check_labels(labels, judgements)
    tables: dict[tuple[SlaqForm, str], JudgeAgreementResult] = {}
    rows = []
    for form in ("short", "long", "free"):
        keys = [key for key in given if forms[key[0]] == form]
        for verdict in ("is_correct", "is_recalled") if form == "free" else ("is_correct",):
            found = _agreement(keys, given, judgements, verdict, n_resamples, seed)
            if found is not None:
                tables[form, verdict] = found
                judge = judgements[keys[0]].judge
                rows.append({"judge": judge, "form": form, "verdict": verdict} | _row(found))
    corrected = _corrected(folder, tables, n_resamples, seed)
    return JudgeQuality(agreement=pd.DataFrame(rows), corrected=pd.DataFrame(corrected))


def _agreement(
    keys: list[tuple[str, str]],
    given: Mapping[tuple[str, str], Label],
    judgements: Mapping[tuple[str, str], Judgement],
    verdict: str,
    n_resamples: int,
    seed: int,
) -> JudgeAgreementResult | None:
    """Compare the labels of one form with the verdicts; None where there are not both."""
    human = [getattr(given[key], verdict) for key in keys]
    judge = [getattr(judgements[key], verdict) for key in keys]
    if not any(h is not None and j is not None for h, j in zip(human, judge, strict=True)):
        return None
    with warnings.catch_warnings():
        # What is missing or undefined stands in the table.
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return judge_agreement(human, judge, missing="drop", n_resamples=n_resamples, rng=seed)


def _row(found: JudgeAgreementResult) -> dict[str, object]:
    """Lay an agreement out as columns."""
    table = found.table
    row: dict[str, object] = {
        "n_labelled": table.n + found.n_missing,
        "n": table.n,
        "true_positives": table.both,
        "false_negatives": table.first_only,
        "false_positives": table.second_only,
        "true_negatives": table.neither,
    }
    for name in ("accuracy", "kappa", "sensitivity", "specificity"):
        interval = getattr(found, f"{name}_interval")
        row |= {name: getattr(found, name), f"{name}_low": interval.low}
        row[f"{name}_high"] = interval.high
    return row


def _corrected(
    folder: SlaqFolder,
    tables: Mapping[tuple[SlaqForm, str], JudgeAgreementResult],
    n_resamples: int,
    seed: int,
) -> list[dict[str, object]]:
    """Correct each condition whose errors are known on both sides."""
    import pandas as pd

    frame = pd.read_parquet(folder.outcomes)
    rows = []
    for condition in ("long", "free"):
        pairs = frame[frame["second_condition"] == condition]
        if pairs.empty:
            continue
        try:
            errors = [_error(tables, form) for form in ("short", condition)]
        except ValueError as error:
            warnings.warn(
                f"the scores of the condition {condition!r} are not corrected: {error}",
                SurfaceConsistencyWarning,
                stacklevel=4,
            )
            continue
        short, long = _arrays(pairs)
        rows.append(_corrected_row(condition, short, long, errors, n_resamples, seed))
    return rows


def _error(
    tables: Mapping[tuple[SlaqForm, str], JudgeAgreementResult], form: SlaqForm
) -> JudgeError:
    """Return the judge's errors on a form."""
    found = tables.get((form, "is_correct"))
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


def _arrays(
    pairs: "pd.DataFrame",
) -> "tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]":
    """Lay verdicts out by topic, permutation and question; a free answer is one permutation."""
    slots = pairs.assign(
        permutation=pairs["permutation"].fillna(0),
        slot=pairs["slot"].fillna(pairs["question_index"]),
    )
    arrays = topic_arrays(slots, question="question_index")
    return arrays.short, arrays.long


def _corrected_row(
    condition: str,
    short: "npt.NDArray[np.float64]",
    long: "npt.NDArray[np.float64]",
    errors: list[JudgeError],
    n_resamples: int,
    seed: int,
) -> dict[str, object]:
    """Correct one condition, and set what the judge has beside it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        found = corrected_alignment(
            short,
            long,
            short_error=errors[0],
            long_error=errors[1],
            missing="drop",
            n_resamples=n_resamples,
            rng=seed,
        )
        seen = topic_alignment(short, long, missing="drop")
    observed = {
        "short_accuracy": seen.short_accuracy,
        "long_accuracy": seen.long_accuracy,
        "accuracy_difference": seen.long_accuracy - seen.short_accuracy,
        "alignment": seen.alignment,
        "signed_alignment": seen.signed_alignment,
    }
    row: dict[str, object] = {
        "condition": condition,
        "n_topics": found.n_topics,
        "n_missing": found.n_missing,
    }
    for name in _SCORES:
        interval = getattr(found, f"{name}_interval")
        row[f"observed_{name}"] = float(np.nanmean(observed[name]))
        row |= {name: getattr(found, name), f"{name}_low": interval.low}
        row[f"{name}_high"] = interval.high
    return row | {"is_cut": found.is_cut}
