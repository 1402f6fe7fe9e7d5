"""Frequency and accuracy with the errors of the counts taken out, by two measurements of each."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from surface_consistency.metrics._groups import group_name
from surface_consistency.metrics._inputs import (
    Floats,
    MissingPolicy,
    check_choice,
    check_confidence_level,
    warn_undefined,
)
from surface_consistency.metrics.correlation._correlations import (
    data_correlations,
    moments_of_clusters,
    partial_of_correlations,
)
from surface_consistency.metrics.frequency.frequency_rows import (
    FrequencyRows,
    FrequencyTransform,
    read_rows,
    warn_missing,
)
from surface_consistency.metrics.uncertainty.cluster_bounds import jackknife

_STATISTICS = ("entity", "surface", "entity_given_surface", "surface_given_entity")
_RESULT = (
    *("model", "subset", "statistic", "estimate", "estimate_low", "estimate_high"),
    *("p_value", "plain", "reliability", "n", "n_clusters", "n_zero", "n_below"),
    "n_missing",
)
_TINY = 1e-10
"""Variance of accuracies, or share of that of frequencies, below which there is only rounding."""


def corrected_frequency_analysis(
    frame: pd.DataFrame,
    *,
    entity_frequency: tuple[str, str],
    surface_frequency: tuple[str, str],
    accuracy: str | Sequence[str] = "accuracy",
    is_canonical: str = "is_canonical",
    by: str | Sequence[str] = (),
    cluster: str | None = "fact_id",
    transform: FrequencyTransform = "log",
    high_frequency_above: float = 10.0,
    confidence_level: float = 0.95,
    missing: MissingPolicy = "drop",
) -> pd.DataFrame:
    """Correlate accuracy with frequencies that were measured twice, errors of measurement removed.

    Counted frequencies have errors, and a partial correlation holds constant what was counted, not
    what is true. So an entity's frequency, which sums over its surfaces and has the smaller error,
    goes with accuracy given the surface's even where the surface alone matters. With a second
    measurement whose errors are others, one stands in for the truth of the other. With C the
    covariances of the first with the second measurements, c1 and c2 those of either with accuracy
    of variance v, the slopes are b1 = C'^-1 c2 and b2 = C^-1 c1 (instrumental variables), b their
    mean, and the partial correlation of frequency i is
    b_i / sqrt(b_i^2 + (v - c1'b1) (C^-1)_ii).

    Args:
        frame: One row a surface instance, with the columns named below.
        entity_frequency: The columns of the two measurements of the entity's frequency.
        surface_frequency: The columns of those of the surface's, in the same order.
        accuracy: Column of accuracies in [0, 1], or several of them, one a model.
        is_canonical: Column that tells canonical surfaces (True) from redirects (False).
        by: Columns whose groups are analysed apart.
        cluster: Column of what is left out as a whole; None takes rows for independent.
        transform: As for `frequency_analysis`.
        high_frequency_above: Number that both measurements of the surface frequency exceed in the
            rows of "redirect_high_frequency".
        confidence_level: Nominal coverage of the intervals, in (0, 1).
        missing: As for `frequency_analysis`.

    Returns:
        One row for each group, model, subset and statistic ("entity", "surface",
        "entity_given_surface", "surface_given_entity"): the columns `by`; model (where `accuracy`
        names several); subset, statistic; estimate, estimate_low, estimate_high and p_value by
        the jackknife t over clusters; plain, the mean of what either measurement gives without
        correction; reliability, the correlation of the two measurements of the frequency that the
        statistic is of; and the counts of rows of `frequency_analysis`.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame.
        TypeError: When `frame` is no DataFrame or a value no number.
        ValueError: When the four columns are not distinct, or for what `frequency_analysis`
            refuses.

    Notes:
        What the errors must be: independent of accuracy, and those of the first measurement
        independent of those of the second; entity and surface of one measurement may share theirs.
        Two halves of a corpus under one linker differ in which documents they drew and have that
        linker's mistakes in common: they correct for sampling alone. Two ways of counting, such as
        linked and expected mentions, correct for what each of them gets wrong by itself; mentions
        that both misread stay in. Two measurements of one string count share everything and correct
        nothing. Estimates are NaN, with an `UndefinedMetricWarning`, below 4 rows, where an
        accuracy or a frequency is constant, where the measurements of a frequency do not go
        together, or where the corrected slopes explain more than there is. With two equal
        measurements the result is that of `frequency_analysis`. Where the two differ in reliability
        the size of an estimate is approximate; its zero is not.

    References:
        Spearman 1904 (attenuation); Fuller, Measurement Error Models, 1987, section 1.4.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> surface = rng.normal(5, 2, 4000)
        >>> entity = np.logaddexp(surface, rng.normal(5, 2, 4000))
        >>> right = surface > rng.normal(5, 2, 4000)
        >>> frame = pd.DataFrame({"is_canonical": surface > 5, "accuracy": right.astype(float)})
        >>> for k in "12":
        ...     frame[f"s{k}"] = np.exp(surface + rng.normal(0, 1, 4000))
        ...     frame[f"e{k}"] = np.exp(entity + rng.normal(0, 0.2, 4000))
        >>> rows = corrected_frequency_analysis(
        ...     frame, entity_frequency=("e1", "e2"),
        ...     surface_frequency=("s1", "s2"), cluster=None)
        >>> row = rows.set_index(["subset", "statistic"]).loc[("overall", "entity_given_surface")]
        >>> bool(row["plain"] > 0.1), bool(row["estimate_low"] < 0 < row["estimate_high"])
        (True, True)
    """
    check_confidence_level(confidence_level)
    check_choice(transform, ("log", "log1p"), "transform")
    measured = [*entity_frequency, *surface_frequency]
    if len(measured) != 4 or len(set(measured)) != 4:
        raise ValueError(
            "entity_frequency and surface_frequency must name two columns each, four in all: the "
            f"correction needs two measurements; got {measured}"
        )
    data = read_rows(
        frame,
        _RESULT,
        accuracy=accuracy,
        entity_frequency=entity_frequency[0],
        surface_frequency=surface_frequency[0],
        controls=(entity_frequency[1], surface_frequency[1]),
        is_canonical=is_canonical,
        by=by,
        cluster=cluster,
        high_frequency_above=high_frequency_above,
        missing=missing,
    )
    rows: list[dict[str, Any]] = []
    for labels, chosen, column in data.cells(keep_zeros=transform == "log1p"):
        known = chosen.positions[~np.isnan(data.accuracies[chosen.positions, column])]
        measured = known
        if labels["subset"] == "redirect_high_frequency":
            measured = known[data.controls[1][known] > high_frequency_above]
        counts = {
            "n": measured.size,
            "n_clusters": np.unique(data.clusters[measured]).size,
            "n_zero": chosen.n_zero,
            "n_below": chosen.n_below + known.size - measured.size,
            "n_missing": chosen.n_missing + chosen.positions.size - known.size,
        }
        statistics = _statistics(data, measured, column, transform, confidence_level)
        rows += [labels | row | counts for row in statistics]
    warn_missing(data, len(frame), stacklevel=2)
    undefined = [row for row in rows if np.isnan(row["estimate"])]
    if undefined:
        first = undefined[0]
        where = group_name(data.keys, tuple(first[key] for key in data.keys))
        warn_undefined(
            f"{len(undefined)} corrected correlations are undefined (NaN), such as "
            f"{first['statistic']} ({first['model']}, {first['subset']} {where})",
            stacklevel=2,
        )
    return pd.DataFrame(rows, columns=data.columns)


def _statistics(
    data: FrequencyRows,
    complete: npt.NDArray[np.intp],
    column: int,
    transform: FrequencyTransform,
    level: float,
) -> list[dict[str, Any]]:
    """Return the statistics of one model in one subset."""
    logarithm = np.log1p if transform == "log1p" else np.log
    x: list[Floats] = [logarithm(values[complete]) for values in data.predictors("entity")]
    y = data.accuracies[complete, column]
    if complete.size < 4:
        nothing = dict.fromkeys(_RESULT[3:9], np.nan)
        return [{"statistic": name} | nothing for name in _STATISTICS]
    within, _ = data_correlations(x, [y], method="pearson")
    plain = np.mean([_plain(x[:2], y), _plain(x[2:], y)], axis=0)
    _, codes = np.unique(data.clusters[complete], return_inverse=True)
    centred = np.column_stack([*(values - values.mean() for values in x), y - y.mean()])
    moments = moments_of_clusters(centred, np.empty((complete.size, 0)), codes)
    totals = moments.sum(axis=0)
    estimates = _corrected(totals)
    sizes = moments[:, 0]
    left_out = _corrected(totals - moments) if sizes.size > 1 else np.empty((0, len(_STATISTICS)))
    limits = jackknife(estimates, left_out.T, scale="fisher-z", sizes=sizes)
    low, high = limits.bounds(level)
    columns = {
        "estimate": estimates,
        "estimate_low": low,
        "estimate_high": high,
        "p_value": limits.p_value(),
        "plain": plain,
        "reliability": np.tile(within[[0, 1], [2, 3]], 2),
    }
    return [
        {"statistic": name} | {column: float(values[k]) for column, values in columns.items()}
        for k, name in enumerate(_STATISTICS)
    ]


def _plain(x: list[Floats], y: Floats) -> Floats:
    """Return the four statistics of one measurement as it is."""
    within, across = data_correlations(x, [y], method="pearson")
    return np.concatenate([across, partial_of_correlations(within, across)])[:, 0]


def _corrected(totals: Floats) -> Floats:
    """Return the four statistics of moments `(..., k)` of two measurements and the accuracy."""
    size = 5
    means = totals / totals[..., :1]
    upper = np.triu_indices(size)
    covariances = np.empty((*means.shape[:-1], size, size))
    covariances[..., upper[0], upper[1]] = means[..., 1 + size :]
    covariances[..., upper[1], upper[0]] = means[..., 1 + size :]
    first = means[..., 1 : 1 + size]
    covariances -= first[..., :, None] * first[..., None, :]
    alone = [_partial(covariances, [k], [k + 2]) for k in (0, 1)]
    return np.concatenate([*alone, _partial(covariances, [0, 1], [2, 3])], axis=-1)


def _partial(covariances: Floats, first: list[int], second: list[int]) -> Floats:
    """Return the corrected correlations of some frequencies, given the others among them."""
    across = covariances[..., first, :][..., :, second]
    with_first, with_second = covariances[..., first, 4], covariances[..., second, 4]
    # The two measurements of a frequency must go together more than rounding does.
    determinant = np.linalg.det(across)
    spread = np.prod(np.diagonal(covariances, axis1=-2, axis2=-1)[..., first], axis=-1)
    usable = (determinant > _TINY * spread) & (covariances[..., 4, 4] > _TINY)
    inverse = np.linalg.inv(np.where(usable[..., None, None], across, np.eye(len(first))))
    by_second = np.einsum("...ji,...j->...i", inverse, with_second)
    by_first = np.einsum("...ij,...j->...i", inverse, with_first)
    slopes = (by_second + by_first) / 2.0
    left = covariances[..., 4, 4] - (with_first * by_second).sum(axis=-1)
    scale = np.diagonal(inverse, axis1=-2, axis2=-1)
    usable = usable & (left > 0.0) & (scale > 0.0).all(axis=-1)
    squares = slopes**2 + left[..., None] * scale
    partial = slopes / np.sqrt(np.where(usable[..., None], squares, np.nan))
    return np.asarray(partial)
