"""Accuracy of a surface instance: the mean of its verdicts under the question templates."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from surface_consistency.errors import UnscoredWarning
from surface_consistency.metrics._shared.frames import check_frame, column_names
from surface_consistency.metrics._shared.vectors import check_missing
from surface_consistency.metrics._shared.verdicts import MissingPolicy
from surface_consistency.metrics.frequency._number_columns import distinct_names, number_column

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["surface_accuracy"]


def surface_accuracy(
    frame: "pd.DataFrame",
    *,
    instance: str | Sequence[str] = ("fact_id", "surface"),
    correct: str = "is_correct",
    template: str = "template",
    keep: Sequence[str] = (),
    missing: MissingPolicy = "drop",
) -> "pd.DataFrame":
    """Average the verdicts of each surface instance over its question realizations.

    Args:
        frame: One row a question realization, with the columns named below.
        instance: Columns that together name a surface instance; add the model's column where the
            frame holds several models.
        correct: Column of verdicts: True or False, 1 or 0, None or NaN.
        template: Column that tells the realizations of an instance apart.
        keep: Columns to carry along, such as frequencies; each must be equal throughout an
            instance.
        missing: "drop" leaves out instances that lack a verdict under any of the frame's templates
            and says how many in an `UnscoredWarning`; "raise" refuses them.

    Returns:
        One row an instance, in order of first appearance: the columns `instance` and `keep`,
        accuracy (in [0, 1]; higher is better) and n_templates.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame.
        TypeError: When `frame` is no DataFrame or a verdict no number.
        ValueError: When the frame is empty, a verdict is outside [0, 1] or (under "raise") missing,
            an instance is named incompletely or has a template twice, or a kept column varies
            within an instance.

    Notes:
        With two templates the accuracy is 0, 0.5 or 1. An instance that was asked under one
        template only has another scale than the rest, so it is left out, not averaged over less.

    References:
        Section 4.2 of arXiv 2604.21882.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"fact_id": [1, 1, 1, 1], "surface": ["NYT", "NYT", "The Times", "The Times"],
        ...      "template": ["original", "paraphrase"] * 2, "is_correct": [1, 0, 1, 1]})
        >>> surface_accuracy(frame)["accuracy"].tolist()
        [0.5, 1.0]
    """
    check_missing(missing)
    names = distinct_names(column_names(instance), "instance")
    kept = [column for column in column_names(keep) if column not in names]
    clashes = sorted({"accuracy", "n_templates"} & {*names, *kept})
    if clashes:
        raise ValueError(f"column {clashes[0]!r} has the name of a column of the result; rename it")
    check_frame(
        frame,
        [*names, correct, template, *kept],
        options="instance, correct, template or keep",
        row="question realization",
    )
    _check_keys(frame, names, template)
    scored = frame[[*names, *kept]].assign(accuracy=number_column(frame, correct))
    groups = scored.groupby(names, sort=False, dropna=False, observed=True)
    for column in kept:
        _check_constant(groups[column].nunique(dropna=False), names, column)
    rows = groups.agg(
        **{column: (column, "first") for column in kept},
        accuracy=("accuracy", "mean"),
        n_templates=("accuracy", "count"),
    ).reset_index()
    complete = rows["n_templates"] == frame[template].nunique()
    n_lacking = int((~complete).sum())
    if n_lacking:
        message = f"{n_lacking} of {len(rows)} surface instances lack a verdict under a template"
        if missing == "raise":
            raise ValueError(f"{message}; score them, or pass missing='drop' to leave them out")
        warnings.warn(f"{message} and were left out", UnscoredWarning, stacklevel=2)
    return rows[complete].reset_index(drop=True)


def _check_keys(frame: "pd.DataFrame", names: list[str], template: str) -> None:
    """Refuse a realization without a full name, and one that stands twice."""
    keys = [*names, template]
    for column in keys:
        absent = frame[column].isna()
        if absent.any():
            raise ValueError(
                f"column {column!r} is missing in row {int(absent.to_numpy().argmax())}"
            )
    repeated = frame.duplicated(keys)
    if repeated.any():
        first = frame.loc[repeated.to_numpy(), keys].iloc[0].to_dict()
        raise ValueError(
            f"{int(repeated.sum())} rows repeat an instance and template, such as {first}: drop "
            "the duplicates, or add to instance what tells them apart (the model?)"
        )


def _check_constant(distinct: "pd.Series[int]", names: list[str], column: str) -> None:
    """Refuse a kept column that has several values within an instance."""
    varying = distinct[distinct > 1]
    if len(varying):
        raise ValueError(
            f"column {column!r} has {int(varying.iloc[0])} values within the instance "
            f"{varying.index[0]!r} of {names}: keep only what is equal throughout an instance"
        )
