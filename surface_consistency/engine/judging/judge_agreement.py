"""How a judge agrees with people and with the rule, and the scores without the judge's errors."""

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import (
    SurfaceConsistencyWarning,
    UndefinedMetricWarning,
    UnscoredWarning,
)
from surface_consistency.metrics import (
    Intervals,
    JudgeError,
    corrected_alignment,
    judge_agreement,
)

_SCORES: Final = {
    "first_accuracy": "short_accuracy",
    "second_accuracy": "long_accuracy",
    "accuracy_difference": "accuracy_difference",
    "consistency": "alignment",
    "signed_alignment": "signed_alignment",
}


def hold_against(
    truth: pd.Series, judged: pd.Series, *, n_resamples: int = 10_000, seed: int = 0
) -> dict[str, object] | None:
    """Compare two verdicts on the same answers.

    Args:
        truth: Verdicts that count as true, missing where there is none.
        judged: Verdicts of the judge, in the same order.
        n_resamples: Resamples of the intervals.
        seed: Seed of the resampling.

    Returns:
        The columns of `metrics.judge_agreement` but n_missing, after n_labelled, the number of
        answers; None if no answer has both verdicts.
    """
    both = [column.astype("boolean").reset_index(drop=True) for column in (truth, judged)]
    if not (both[0].notna() & both[1].notna()).any():
        return None
    with warnings.catch_warnings():
        # What is missing or undefined stands in the table.
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        row = judge_agreement(
            *(column.astype(object).where(column.notna(), None).tolist() for column in both),
            missing="drop",
            intervals=Intervals(n_resamples=n_resamples, rng=seed),
        )
    del row["n_missing"]
    return {"n_labelled": len(truth)} | row


def agreement_by_kind(kinds: pd.Series, verdicts: pd.DataFrame, truth: pd.Series) -> pd.DataFrame:
    """Hold the verdicts of a judge against others on the same answers, for each kind of answer.

    Args:
        kinds: The kind of each answer, such as its condition; the name is that of the column.
        verdicts: What the judge said, row by row: judged_by and is_correct.
        truth: The other verdicts, of people or of a rule, row by row; missing where there is none.

    Returns:
        One row a kind and one of "all": judge, the kind, and the columns of `hold_against`, in
        which the other verdicts count as true; kinds without both verdicts are left out. Equal
        answers of several prompts are not independent; the intervals take them for it.
    """
    rows = []
    for kind in (*kinds.dropna().unique(), "all"):
        part = ((kinds == kind) | (kind == "all")).to_numpy(bool)
        agreement = hold_against(truth.loc[part], verdicts["is_correct"].loc[part])
        if agreement is not None:
            head = {"judge": verdicts["judged_by"].iloc[0], str(kinds.name): kind}
            rows.append(head | agreement)
    return pd.DataFrame(rows)


def corrected_table(
    outcomes: pd.DataFrame,
    agreement: pd.DataFrame,
    *,
    kind: str,
    cluster: str,
    facet: str | None,
) -> pd.DataFrame:
    """Take a judge's errors out of the scores of both conditions.

    Args:
        outcomes: The outcomes frame of a run.
        agreement: The judge against people, of `agreement_by_kind`.
        kind: Its column of kinds, which are the names of the conditions.
        cluster: Column of what intervals take as a whole; each counts as much as any other.
        facet: Column whose values are never pooled; None for none.

    Returns:
        One row a facet: first_condition and second_condition, n_clusters, n_missing, and the
        columns of `corrected_scores`.

    Warns:
        SurfaceConsistencyWarning: If a row cannot be corrected, because no right or no wrong answer
            of a condition is labelled, or the judge is no better than chance on it.
    """
    by_kind = {} if agreement.empty else agreement.set_index(kind).to_dict("index")
    rows = []
    for value, pairs in [("all", outcomes)] if facet is None else outcomes.groupby(facet):
        names = [str(pairs[f"{side}_condition"].iloc[0]) for side in ("first", "second")]
        try:
            errors = [error_of_counts(by_kind.get(name), name) for name in names]
        except ValueError as error:
            warn_uncorrected(names[1], error)
            continue
        first, second = _by_cluster(pairs, cluster)
        head = {} if facet is None else {facet: value}
        scores = corrected_scores(first, second, errors)
        rows.append(
            head
            | {"first_condition": names[0], "second_condition": names[1]}
            | {"n_clusters": scores.pop("n_topics")}
            | scores
        )
    return pd.DataFrame(rows)


def error_of_counts(row: Mapping[Any, Any] | None, kind: str) -> JudgeError:
    """Read a judge's errors on a kind of answers off its row of agreement.

    Args:
        row: The counts, as of `agreement_columns`; None where no answer has both verdicts.
        kind: The kind, for messages.

    Returns:
        The errors.

    Raises:
        ValueError: If no right or no wrong answer is labelled, or the judge is no better than
            chance.
    """
    if row is None:
        raise ValueError(f"no {kind} answer has both a label and a verdict; label some")
    names = ("true_positives", "false_negatives", "false_positives", "true_negatives")
    try:
        error = JudgeError(**{name: int(row[name]) for name in names})
    except ValueError as reason:
        raise ValueError(f"of the {kind} answers {reason}; label more of them") from reason
    if error.sensitivity + error.specificity <= 1.0:
        raise ValueError(
            f"on {kind} answers the judge is no better than chance (sensitivity "
            f"{error.sensitivity:.2f}, specificity {error.specificity:.2f})"
        )
    return error


def corrected_scores(
    first: npt.NDArray[np.float64],
    second: npt.NDArray[np.float64],
    errors: list[JudgeError],
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, object]:
    """Correct the scores of a pair of conditions, and set what the judge has beside them.

    Args:
        first: Verdicts under the first condition, as the short ones of `corrected_alignment`.
        second: Verdicts under the second, as its long ones.
        errors: The judge's errors under both.
        n_resamples: Draws of the intervals.
        seed: Seed of the draws.

    Returns:
        n_topics, n_missing, then by name of score `observed_<score>`, the score and its bounds; and
        is_cut.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnscoredWarning)
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        corrected = corrected_alignment(
            first,
            second,
            short_error=errors[0],
            long_error=errors[1],
            missing="drop",
            intervals=Intervals(n_resamples=n_resamples, rng=seed),
        )
    row = {name: corrected[name] for name in ("n_topics", "n_missing")}
    for column, name in _SCORES.items():
        row[f"observed_{column}"] = corrected[f"observed_{name}"]
        row |= {f"{column}{end}": corrected[f"{name}{end}"] for end in ("", "_low", "_high")}
    return row | {"is_cut": corrected["is_cut"]}


def warn_uncorrected(condition: str, error: ValueError) -> None:
    """Say which condition cannot be corrected, and why.

    Args:
        condition: Its name.
        error: What stands in the way.
    """
    warnings.warn(
        f"the scores of the condition {condition!r} are not corrected: {error}",
        SurfaceConsistencyWarning,
        stacklevel=5,
    )


def _by_cluster(pairs: pd.DataFrame, cluster: str) -> Iterator[npt.NDArray[np.float64]]:
    """Lay the verdicts on pairs out, `(n_clusters, n_pairs)`, NaN where there is none."""
    codes, _ = pd.factorize(pairs[cluster])
    places = pairs.groupby(codes).cumcount().to_numpy()
    for side in ("first", "second"):
        verdicts = np.full((codes.max() + 1, places.max() + 1), np.nan)
        verdicts[codes, places] = (
            pairs[f"{side}_correct"].astype("Float64").to_numpy(float, na_value=np.nan)
        )
        yield verdicts
