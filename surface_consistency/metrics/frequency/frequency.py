"""Correlation of accuracy with the frequency of an entity and with that of its surface form."""

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics import _inputs
from surface_consistency.metrics._groups import column_names, group_name, group_seed, root_seed
from surface_consistency.metrics.correlation._correlations import (
    CorrelationMethod,
    check_correlation_method,
    cluster_inference,
    correlation_interval,
    data_correlations,
    partial_of_correlations,
)
from surface_consistency.metrics.correlation.dependent_correlations import (
    steiger_test,
    zou_interval,
)
from surface_consistency.metrics.frequency import frequency_rows
from surface_consistency.metrics.uncertainty.intervals import DEFAULT_INTERVALS, Intervals

_DIFFERENCE = 4
"""Index of the difference among the statistics; all others are correlations."""


def _names(first: str, controls: Sequence[str]) -> list[str]:
    """Return the names of the statistics of the first frequency, the surface and the controls.

    They are in the order of `_stacked`.
    """
    own = [first, "surface", f"{first}_given_surface", f"surface_given_{first}"]
    given = [f"{control}_given_frequencies" for control in controls]
    return [*own, f"{first}_minus_surface", *controls, *given]


def _control_counts(n_controls: int) -> list[int]:
    """Return the number of controls of each statistic, in the order of `_stacked`."""
    constant = n_controls + 1
    return [0, 0, constant, constant, 0, *[0] * n_controls, *[constant] * n_controls]


def _stacked(within: _inputs.Floats, across: _inputs.Floats) -> _inputs.Floats:
    """Stack the statistics before the axis of models, after any axis of resamples."""
    partial = partial_of_correlations(within, across)
    plain, controls = across[..., :2, :], across[..., 2:, :]
    difference = across[..., :1, :] - across[..., 1:2, :]
    parts = [plain, partial[..., :2, :], difference, controls, partial[..., 2:, :]]
    return np.concatenate(parts, axis=-2)


def _independent(
    estimates: _inputs.Floats, among: float, n: int, method: CorrelationMethod, confidence: float
) -> Iterator[tuple[float, float, float, float]]:
    """Yield bounds, p-value and the p-value of the paper for each statistic, for independent rows.

    `among` is the correlation of the two frequencies.
    """
    first, surface = estimates[:2].tolist()
    for k, n_constant in enumerate(_control_counts((len(estimates) - _DIFFERENCE - 1) // 2)):
        if k != _DIFFERENCE:
            bounds = correlation_interval(
                float(estimates[k]), df=n - 2 - n_constant, confidence=confidence, method=method
            )
            yield *bounds, bounds[-1]
        # Comparisons with NaN are False, so each size is compared separately.
        elif n < 4 or not all(size < 1.0 for size in (abs(first), abs(surface), among)):
            yield (math.nan,) * 4
        else:
            zou = zou_interval(first, surface, r_kh=among, n=n, confidence=confidence)
            yield *zou, steiger_test(first, surface, r_kh=among, n=n)[1]


_RESULT = (
    *("model", "subset", "statistic", "method"),
    *("estimate", "estimate_low", "estimate_high", "p_value"),
    *("p_value_independent", "n", "n_clusters", "n_zero", "n_below", "n_missing", "n_undefined"),
)


def frequency_analysis(
    frame: pd.DataFrame,
    *,
    accuracy: str | Sequence[str] = "accuracy",
    entity_frequency: str = "entity_frequency",
    surface_frequency: str = "surface_frequency",
    others_frequency: str | None = None,
    controls: str | Sequence[str] = (),
    is_canonical: str = "is_canonical",
    by: str | Sequence[str] = (),
    cluster: str | None = "item",
    method: CorrelationMethod = "pearson",
    transform: frequency_rows.FrequencyTransform = "log",
    high_frequency_above: float = 10.0,
    intervals: Intervals = DEFAULT_INTERVALS,
    missing: _inputs.MissingPolicy = "drop",
) -> pd.DataFrame:
    """Return correlations of accuracy with log entity and log surface frequency, plain and partial.

    Each subset gives five statistics per model: "entity" and "surface", the correlations of
    accuracy with each log frequency; "entity_given_surface" and "surface_given_entity", the partial
    correlations; and "entity_minus_surface", the difference of the first two. The frequency of the
    entity includes that of the surface; `others_frequency` excludes it, to test whether mentions of
    the entity under its other names correlate with accuracy.

    Args:
        frame: One row per surface instance, with the columns named below.
        accuracy: Column of accuracies in [0, 1], as from `surface_accuracy`; or several columns,
            one per model, which then share their resamples.
        entity_frequency: Column of the number of mentions of the entity under any surface.
        surface_frequency: Column of the number of mentions under this surface.
        others_frequency: Column of the number of mentions under any other surface, the difference
            of the two. Adds "others", "others_given_surface", "surface_given_others" and
            "others_minus_surface", on the rows where it is not zero; None omits them.
        controls: Columns of further frequencies, such as that of subject and object together. Every
            partial correlation also controls for them. Each adds two statistics: its correlation
            with accuracy, under its name, and "NAME_given_frequencies", given all others.
        is_canonical: Column with True for canonical surfaces and False for redirects.
        by: Columns of the groups, such as the model of a long frame.
        cluster: Column of the clusters, the fact or the subject; None assumes independent rows.
        method: "pearson", or "spearman" for ranks within the subset.
        transform: "log" of frequencies, which excludes zeros as the paper does, or "log1p", the
            logarithm of 1 + frequency, which keeps them.
        high_frequency_above: Threshold; rows of "redirect_high_frequency" have a surface frequency
            above it.
        intervals: Options of intervals and p-values if there is a `cluster`: "auto" is the
            jackknife t over clusters (for correlations, on the scale of Fisher's z), and
            "percentile" resamples each subset.
        missing: "drop" excludes rows without a frequency or, for that model, an accuracy, with a
            count in `n_missing` and an `UnscoredWarning`; "raise" raises an error.

    Returns:
        One row per group, model, subset ("overall", "canonical", "redirect",
        "redirect_high_frequency") and statistic, with the columns `by`; model (if `accuracy` has
        several columns); subset, statistic, method; estimate, estimate_low, estimate_high; p_value,
        p_value_independent; n, n_clusters; the numbers of rows with a zero frequency (n_zero),
        which "log" drops, and of rows dropped for a surface frequency up to the threshold (n_below)
        or a missing value (n_missing); and n_undefined, the number of resamples in which the
        statistic is undefined.

    Raises:
        ColumnNotFoundError: If a named column is not in the frame.
        TypeError: If `frame` is not a DataFrame, a value is not a number, or a count option is not
            an integer.
        ValueError: If the frame is empty, a frequency is negative, an accuracy is outside [0, 1], a
            value (under "raise") or a cluster id is missing, a column is named twice or like one of
            the result, or an option is out of range.

    Notes:
        Positive estimates mean that more frequent instances are more accurate. Rows with a zero
        frequency have no logarithm and are excluded, as in the paper. n + n_zero + n_below +
        n_missing is the size of the subset; under "log1p" n includes the n_zero rows. `p_value` is
        below 1 minus the confidence level exactly if the interval excludes 0. With `cluster` both
        come from the jackknife t over clusters, or under "percentile" from resamples. Without
        `cluster` they come from `correlation_interval`, and from Zou's interval for the difference.
        `p_value_independent` always assumes independent rows, as the paper does; it comes from t,
        and from Steiger's test for the difference. Ranks are recomputed for each of at most 1,000
        blocks of omitted clusters. Estimates are NaN, with one `UndefinedMetricWarning` that lists
        them, if an accuracy or a frequency is constant, the frequencies are collinear, or there are
        fewer than 3 rows (for partial correlations, one more per control). Bounds are also NaN if
        there is only one cluster. The numbers of a group depend only on its rows, the seed and its
        labels.

    References:
        Sections 4.1 to 4.3 and appendices B.3 and B.4 of arXiv 2604.21882 (tables 2, 5 and 6).

    Examples:
        >>> import pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> entity = rng.geometric(0.01, 600) + 20
        >>> frame = pd.DataFrame(
        ...     {"item": np.arange(600) // 2, "is_canonical": np.arange(600) % 2 == 0,
        ...      "entity_frequency": entity, "surface_frequency": rng.binomial(entity, 0.3),
        ...      "accuracy": rng.random(600) < entity / 400})
        >>> rows = frequency_analysis(frame).set_index(["subset", "statistic"])
        >>> rows.loc[("redirect", "entity"), ["n", "n_clusters"]].tolist()
        [300, 300]
    """
    check_correlation_method(method)
    _inputs.check_choice(transform, ("log", "log1p"), "transform")
    constants = column_names(controls)
    taken_names = {*_names("entity", ()), *_names("others", ())}
    for name in frequency_rows.distinct_names(constants, "controls") if constants else ():
        if name in taken_names:
            raise ValueError(f"controls: {name!r} is the name of a statistic; rename the column")
    options = _Options(
        transform=transform,
        controls=constants,
        clustered=(cluster is not None),
        method=method,
        intervals=intervals,
        seed=root_seed(intervals.seed),
    )
    data = frequency_rows.read_rows(
        frame,
        _RESULT,
        accuracy=accuracy,
        entity_frequency=entity_frequency,
        surface_frequency=surface_frequency,
        others_frequency=others_frequency,
        controls=constants,
        is_canonical=is_canonical,
        by=by,
        cluster=cluster,
        high_frequency_above=high_frequency_above,
        missing=missing,
    )
    firsts: list[frequency_rows.FirstFrequency] = (
        ["entity"] if others_frequency is None else ["entity", "others"]
    )
    rows: list[dict[str, Any]] = []
    for key, positions in data.groups.items():
        labels = dict(zip(data.keys, key, strict=True))
        statistics = [
            (column, {"model": data.models[column], **labels, **row})
            for subset in frequency_rows.SUBSETS
            for first in firsts
            for column, row in _subset(data, positions, subset, first, labels, options)
        ]
        rows += [row for _, row in sorted(statistics, key=operator.itemgetter(0))]
    frequency_rows.warn_missing(data, len(frame), stacklevel=2)
    _warn_undefined(rows, data.keys)
    return pd.DataFrame(rows, columns=data.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """The checked options of an analysis."""

    transform: frequency_rows.FrequencyTransform
    controls: list[str]
    clustered: bool
    method: CorrelationMethod
    intervals: Intervals
    seed: int


def _subset(
    data: frequency_rows.FrequencyRows,
    positions: npt.NDArray[np.intp],
    subset: str,
    first: frequency_rows.FirstFrequency,
    labels: dict[str, object],
    options: _Options,
) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the rows of the result for one subset, each with the column of its model."""
    keep_zeros = options.transform == "log1p"
    chosen = frequency_rows.take_subset(data, positions, subset, first=first, keep_zeros=keep_zeros)
    repeated = {"surface", *_names(first, options.controls)[_DIFFERENCE + 1 :]}
    names = [*labels, "subset"]
    seed = group_seed(options.seed, names, (*labels.values(), subset))
    for columns in _same_rows(np.isnan(data.accuracies[chosen.positions])):
        complete = chosen.positions[~np.isnan(data.accuracies[chosen.positions, columns[0]])]
        counts = {
            "n": complete.size,
            "n_clusters": np.unique(data.clusters[complete]).size,
            "n_zero": chosen.n_zero,
            "n_below": chosen.n_below,
            "n_missing": chosen.n_missing + chosen.positions.size - complete.size,
        }
        rng = np.random.default_rng(seed)
        for column, row in _statistics(data, complete, columns, first, rng, options):
            if first == "entity" or row["statistic"] not in repeated:
                yield column, {"subset": subset, "method": options.method, **counts, **row}


def _same_rows(lacking: _inputs.Flags) -> list[list[int]]:
    """Group the models with accuracies in the same rows, so that they share resamples."""
    groups: dict[bytes, list[int]] = {}
    for column, gaps in enumerate(lacking.T):
        groups.setdefault(gaps.tobytes(), []).append(column)
    return list(groups.values())


def _statistics(
    data: frequency_rows.FrequencyRows,
    complete: npt.NDArray[np.intp],
    columns: list[int],
    first: frequency_rows.FirstFrequency,
    rng: np.random.Generator,
    options: _Options,
) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the statistics of some models on the same rows, with the column of the model."""
    logarithm = np.log1p if options.transform == "log1p" else np.log
    x: list[_inputs.Floats] = [logarithm(values[complete]) for values in data.predictors(first)]
    y = [data.accuracies[complete, column] for column in columns]
    _, codes = np.unique(data.clusters[complete], return_inverse=True)
    names = _names(first, options.controls)
    n, confidence, method = complete.size, options.intervals.confidence, options.method
    among, estimates = math.nan, np.full((len(names), len(columns)), np.nan)
    if n > 2:
        within, across = data_correlations(x, y, method=method)
        among, estimates = float(within[0, 1]), _stacked(within, across)
        estimates[n < 3 + np.array(_control_counts(len(options.controls)))] = np.nan
    alone = [list(_independent(column, among, n, method, confidence)) for column in estimates.T]
    low, high, p_value, paper_p_value = np.array(alone).transpose(2, 1, 0)
    n_undefined = np.zeros(estimates.shape, dtype=np.int64)
    if options.clustered:
        low, high, p_value, n_undefined = cluster_inference(
            estimates,
            _stacked,
            x,
            y,
            codes,
            method=method,
            intervals=options.intervals,
            rng=rng,
            is_plain=np.arange(len(names)) == _DIFFERENCE,
        )
    values = {
        "estimate": estimates,
        "estimate_low": low,
        "estimate_high": high,
        "p_value": p_value,
        "p_value_independent": paper_p_value,
        "n_undefined": n_undefined,
    }
    for place, column in enumerate(columns):
        for k, name in enumerate(names):
            row = {key: value[k, place].item() for key, value in values.items()}
            yield column, {"statistic": name, **row}


def _warn_undefined(rows: list[dict[str, Any]], keys: list[str]) -> None:
    """Warn of undefined numbers (NaN), with their counts and first places."""
    where: dict[str, list[str]] = {}
    for row in rows:
        place = f"{row['model']}, {row['subset']} {group_name(keys, tuple(row[k] for k in keys))}"
        if math.isnan(row["estimate"]):
            where.setdefault(row["statistic"], []).append(place)
        elif math.isnan(row["estimate_low"]):
            where.setdefault(f"interval of {row['statistic']}", []).append(place)
    if where:
        parts = [f"{name} ({len(places)}, such as {places[0]})" for name, places in where.items()]
        _inputs.warn_undefined(f"undefined (NaN): {'; '.join(parts)}", stacklevel=3)
