"""Surface instances: accuracies, log frequencies, and the subsets of an analysis."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.errors import UnscoredWarning
from surface_consistency.metrics import _groups, _inputs
from surface_consistency.reading import shown


def number_column(
    frame: pd.DataFrame, column: str, *, least: float = 0.0, most: float = 1.0
) -> _inputs.Floats:
    """Return a column of numbers within bounds, NaN if missing."""
    values = _inputs.numeric_vector(frame[column].array, column)
    outside = (values < least) | (values > most)
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(f"{column}[{row}] must be in [{least:g}, {most:g}]; got {values[row]:g}")
    return values


def distinct_names(names: list[str], option: str) -> list[str]:
    """Return column names; raise an error if there are none or one is repeated."""
    if not names:
        raise ValueError(f"{option} must name at least one column")
    if len(set(names)) != len(names):
        raise ValueError(f"{option} contains a column twice: {names}")
    return names


def surface_accuracy(
    frame: pd.DataFrame,
    *,
    instance: str | Sequence[str] = ("item", "surface"),
    score: str = "correct",
    template: str = "template",
    keep: Sequence[str] = (),
    missing: _inputs.MissingPolicy = "drop",
) -> pd.DataFrame:
    """Return the mean correctness label of each surface instance over its question realizations.

    Args:
        frame: One row per question realization, with the columns named below.
        instance: Columns that together identify a surface instance; include the column of the model
            if the frame has several models.
        score: Column of correctness labels: True or False, 1 or 0, None or NaN.
        template: Column that identifies the realizations of an instance.
        keep: Further columns to keep, such as frequencies; each must be constant within an
            instance.
        missing: "drop" excludes instances without a label under one of the templates of the frame
            and reports their number in an `UnscoredWarning`; "raise" raises an error.

    Returns:
        One row per instance, in order of first appearance: the columns `instance` and `keep`,
        accuracy (in [0, 1]; higher is better) and n_templates.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        TypeError: If `frame` is not a DataFrame or a label is not a number.
        ValueError: If the frame is empty, a label is outside [0, 1] or (under "raise") missing, an
            instance column is empty, an instance has a template twice, or a kept column varies
            within an instance.

    Notes:
        With two templates the accuracy is 0, 0.5 or 1. The accuracy of an instance with a label
        under only one template has another scale, so the instance is excluded.

    References:
        Section 4.2 of arXiv 2604.21882.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame(
        ...     {"item": [1, 1, 1, 1], "surface": ["NYT", "NYT", "The Times", "The Times"],
        ...      "template": ["original", "paraphrase"] * 2, "correct": [1, 0, 1, 1]})
        >>> surface_accuracy(frame)["accuracy"].tolist()
        [0.5, 1.0]
    """
    _inputs.check_missing(missing)
    names = distinct_names(_groups.column_names(instance), "instance")
    constant = [column for column in _groups.column_names(keep) if column not in names]
    clashes = sorted({"accuracy", "n_templates"} & {*names, *constant})
    if clashes:
        raise ValueError(
            f"column {shown(clashes[0])} has the name of a column of the result; rename it"
        )
    _groups.check_frame(
        frame,
        [*names, score, template, *constant],
        options="instance, score, template or keep",
        row="question realization",
    )
    _check_keys(frame, names, template)
    scored = frame[[*names, *constant]].assign(accuracy=number_column(frame, score))
    groups = scored.groupby(names, sort=False, dropna=False, observed=True)
    for column in constant:
        distinct = groups[column].nunique(dropna=False)
        varying = distinct[distinct > 1]
        if len(varying):
            raise ValueError(
                f"column {shown(column)} has {int(varying.iloc[0])} values within the instance "
                f"{shown(varying.index[0])} of {names}: keep only columns that are constant within "
                "an instance"
            )
    rows = groups.agg(
        **{column: (column, "first") for column in constant},
        accuracy=("accuracy", "mean"),
        n_templates=("accuracy", "count"),
    ).reset_index()
    complete = rows["n_templates"] == frame[template].nunique()
    n_lacking = int((~complete).sum())
    if n_lacking:
        message = f"{n_lacking} of {len(rows)} surface instances lack a label under a template"
        if missing == "raise":
            raise ValueError(f"{message}; score them, or pass missing='drop' to exclude them")
        warnings.warn(f"{message} and are excluded", UnscoredWarning, stacklevel=2)
    return rows[complete].reset_index(drop=True)


def _check_keys(frame: pd.DataFrame, names: list[str], template: str) -> None:
    """Raise an error if a realization has no complete name or occurs twice."""
    keys = [*names, template]
    for column in keys:
        absent = frame[column].isna()
        if absent.any():
            raise ValueError(
                f"column {shown(column)} is missing in row {int(absent.to_numpy().argmax())}"
            )
    repeated = frame.duplicated(keys)
    if repeated.any():
        first = frame.loc[repeated.to_numpy(), keys].iloc[0].to_dict()
        raise ValueError(
            f"{int(repeated.sum())} rows repeat an instance and template, such as {first}: drop "
            "the duplicates, or add a column that distinguishes them to instance (the model?)"
        )


FirstFrequency = Literal["entity", "others"]
"""Frequency compared with that of the surface: all mentions, or those under other surfaces."""

FrequencyTransform = Literal["log", "log1p"]
"""Transform of frequencies: logarithm, undefined for zeros, or logarithm of 1 + frequency."""

SUBSETS = ("overall", "canonical", "redirect", "redirect_high_frequency")
"""The subsets of a frequency analysis, in the order of its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrequencyRows:
    """Surface instances as arrays, one entry per row of the frame, with options of the result."""

    keys: list[str]
    """Columns of the groups."""
    models: list[str]
    """Columns of accuracies."""
    columns: list[str]
    """Columns of the result."""
    groups: dict[_groups.GroupKey, npt.NDArray[np.intp]]
    """Positions of the rows of each group."""
    threshold: float
    """Threshold; the surface frequency of rows of "redirect_high_frequency" is above it."""
    entity: _inputs.Floats
    """Entity frequencies; NaN if missing."""
    surface: _inputs.Floats
    """Surface frequencies; NaN if missing."""
    canonical: _inputs.Flags
    """Whether the surface is the canonical one."""
    accuracies: _inputs.Floats
    """Accuracies, shape `(n_rows, n_models)`; NaN if missing."""
    clusters: _inputs.Integers
    """Cluster codes."""
    others: _inputs.Floats
    """Frequencies under other surfaces, NaN if missing; empty unless requested."""
    controls: tuple[_inputs.Floats, ...] = ()
    """Further frequencies that are controlled for; NaN if missing."""

    def predictors(self, first: FirstFrequency) -> list[_inputs.Floats]:
        """Return the first frequency, that of the surface, and the controls."""
        return [self.entity if first == "entity" else self.others, self.surface, *self.controls]

    def cells(
        self, *, keep_zeros: bool = False
    ) -> Iterator[tuple[dict[str, Any], "_SubsetRows", int]]:
        """Yield labels, usable rows and the index of the model, by group, model and subset."""
        for key, positions in self.groups.items():
            for column, model in enumerate(self.models):
                for subset in SUBSETS:
                    # A column of groups may also be called "model".
                    labels = {"model": model} | dict(zip(self.keys, key, strict=True))
                    chosen = take_subset(self, positions, subset, keep_zeros=keep_zeros)
                    yield labels | {"subset": subset}, chosen, column


@dataclass(frozen=True, slots=True, kw_only=True)
class _SubsetRows:
    """Rows of a subset after the filters, and the numbers of dropped rows."""

    positions: npt.NDArray[np.intp]
    """Rows with two usable frequencies."""
    n_zero: int
    """Rows with a frequency of zero, excluded unless zeros are kept."""
    n_below: int
    """Rows whose surface frequency is above zero and at most the threshold."""
    n_missing: int
    """Rows with a missing frequency."""


def read_rows(
    frame: pd.DataFrame,
    result: Sequence[str],
    *,
    accuracy: str | Sequence[str],
    entity_frequency: str,
    surface_frequency: str,
    is_canonical: str,
    by: str | Sequence[str],
    cluster: str | None,
    high_frequency_above: float,
    missing: _inputs.MissingPolicy,
    others_frequency: str | None = None,
    controls: Sequence[str] = (),
) -> FrequencyRows:
    """Read and check the columns of a frame, for a result with these columns, "model" first."""
    _inputs.check_missing(missing)
    if not high_frequency_above >= 0.0:
        raise ValueError(
            f"high_frequency_above must be at least 0; got {shown(high_frequency_above)}"
        )
    models = distinct_names(_groups.column_names(accuracy), "accuracy")
    taken = list(result[1:]) if isinstance(accuracy, str) else list(result)
    keys = _groups.grouping_columns(by, taken)
    others = [] if others_frequency is None else [others_frequency]
    named = [*keys, *models, entity_frequency, surface_frequency, is_canonical, *controls]
    named += [*others, *filter(None, (cluster,))]
    _groups.check_frame(frame, named, options=_COLUMN_OPTIONS, row="surface instance")
    columns = {
        name: number_column(frame, name, most=np.inf)
        for name in (entity_frequency, surface_frequency, *others, *controls)
    }
    columns |= {name: number_column(frame, name) for name in models}
    for name, column in columns.items():
        _inputs.check_complete(np.isnan(column), name, missing)
    canonical = _inputs.verdict_codes(frame[is_canonical].array, is_canonical)
    if (canonical == _inputs.MISSING).any():
        row = int(np.argmax(canonical == _inputs.MISSING))
        raise ValueError(f"{is_canonical}[{row}] is missing: fill in True or False")
    shared = [name for name in named if name not in models]
    _groups.warn_repeated_rows(frame, models, shared, stacklevel=3)
    groups = _groups.group_positions(frame, keys)
    return FrequencyRows(
        keys=keys,
        models=models,
        columns=[*keys, *taken],
        groups=groups,
        threshold=high_frequency_above,
        entity=columns[entity_frequency],
        surface=columns[surface_frequency],
        canonical=canonical == 1,
        accuracies=np.column_stack([columns[name] for name in models]),
        clusters=_groups.cluster_codes(frame, cluster),
        others=columns[others_frequency] if others_frequency is not None else np.empty(0),
        controls=tuple(columns[name] for name in controls),
    )


_COLUMN_OPTIONS = (
    "accuracy, entity_frequency, surface_frequency, others_frequency, controls, is_canonical, by "
    "or cluster"
)


def take_subset(
    rows: FrequencyRows,
    positions: npt.NDArray[np.intp],
    subset: str,
    *,
    first: FirstFrequency = "entity",
    keep_zeros: bool = False,
) -> _SubsetRows:
    """Return the usable rows of a subset of some rows."""
    if subset != "overall":
        positions = positions[rows.canonical[positions] == (subset == "canonical")]
    frequencies = np.stack([values[positions] for values in rows.predictors(first)])
    absent = np.isnan(frequencies).any(axis=0)
    zero = ~absent & (frequencies == 0.0).any(axis=0)
    below = np.zeros(positions.size, dtype=np.bool_)
    if subset == "redirect_high_frequency":
        below = ~absent & (keep_zeros | ~zero) & (frequencies[1] <= rows.threshold)
    zero &= ~below
    left_out = absent | below | (zero & (not keep_zeros))
    return _SubsetRows(
        positions=positions[~left_out],
        n_zero=int(np.count_nonzero(zero)),
        n_below=int(np.count_nonzero(below)),
        n_missing=int(np.count_nonzero(absent)),
    )


def warn_missing(rows: FrequencyRows, n_rows: int, *, stacklevel: int) -> None:
    """Warn of the number of rows without a frequency or an accuracy, if there are any."""
    lacking = np.isnan(rows.predictors("entity")).any(axis=0)
    lacking |= np.isnan(rows.accuracies).any(axis=1)
    if rows.others.size:
        lacking |= np.isnan(rows.others)
    if lacking.any():
        warnings.warn(
            f"{int(lacking.sum())} of {n_rows} surface instances lack a frequency or an accuracy "
            "and are excluded if it is needed",
            UnscoredWarning,
            stacklevel=stacklevel + 1,
        )
