"""Accuracy over entity and over surface frequency, for each subset and model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.checks import (
    check_confidence,
    check_count,
    check_n_resamples,
)
from surface_consistency.metrics._shared.frames import (
    check_frame,
    checked_seed,
    column_names,
    grouping_columns,
)
from surface_consistency.metrics._shared.groups import group_positions
from surface_consistency.metrics._shared.vectors import check_missing
from surface_consistency.metrics._shared.verdicts import MissingPolicy
from surface_consistency.metrics.frequency._frequency_rows import (
    SUBSETS,
    FrequencyRows,
    read_rows,
    take_subset,
    warn_missing,
)
from surface_consistency.metrics.frequency._number_columns import distinct_names
from surface_consistency.metrics.frequency.binned_curve import binned_curve

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["frequency_curves"]

_RESULT = (
    *("model", "subset", "frequency", "bin", "frequency_low", "frequency_high", "n"),
    *("n_clusters", "accuracy", "low", "high"),
)
_COLUMN_OPTIONS = "accuracy, entity_frequency, surface_frequency, is_canonical, by or cluster"


def frequency_curves(
    frame: "pd.DataFrame",
    *,
    accuracy: str | Sequence[str] = "accuracy",
    entity_frequency: str = "entity_frequency",
    surface_frequency: str = "surface_frequency",
    is_canonical: str = "is_canonical",
    by: str | Sequence[str] = (),
    cluster: str | None = "fact_id",
    n_bins: int = 20,
    high_frequency_above: float = 10.0,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
    missing: MissingPolicy = "drop",
) -> "pd.DataFrame":
    """Bin accuracy by entity and by surface frequency, on the rows of `frequency_analysis`.

    Args:
        frame: One row a surface instance, with the columns named below.
        accuracy: Column of accuracies in [0, 1], or several of them, one a model.
        entity_frequency: Column of how often the entity is mentioned under any surface.
        surface_frequency: Column of how often it is mentioned under this surface.
        is_canonical: Column that tells canonical surfaces (True) from redirects (False).
        by: Columns whose groups are binned apart.
        cluster: Column of what is resampled as a whole; None takes rows for independent.
        n_bins: Number of bins of about equally many rows.
        high_frequency_above: Surface frequency that the rows of "redirect_high_frequency" exceed.
        confidence: Nominal coverage of the intervals, in (0, 1).
        n_resamples: Number of resamples of each bin.
        seed: Seed of the resampling, at least 0.
        missing: "drop" leaves out rows that lack a frequency or an accuracy, with an
            `UnscoredWarning`; "raise" refuses them.

    Returns:
        One row a bin of each group, model, subset and frequency ("entity" or "surface"): the
        columns `by`; model (where `accuracy` names several); subset, frequency; and those of
        `binned_curve`.

    Raises:
        ColumnNotFoundError: When a named column is not in the frame.
        TypeError: When `frame` is no DataFrame, a value no number, or a count option no integer.
        ValueError: For what `frequency_analysis` refuses, or when `n_bins` is less than 1.

    Notes:
        Rows with a zero frequency are left out of both curves. A subset without rows has no bins,
        and where none has any the result is empty.
        Bounds are NaN in a bin with one cluster.

    References:
        Figure 3 of arXiv 2604.21882.

    Examples:
        >>> import pandas as pd
        >>> rows = np.arange(200)
        >>> frame = pd.DataFrame(
        ...     {"fact_id": rows // 2, "is_canonical": rows % 2 == 0, "entity_frequency": rows + 1,
        ...      "surface_frequency": rows // 2 + 1, "accuracy": rows / 199})
        >>> curves = frequency_curves(frame, n_bins=4, n_resamples=200)
        >>> curves.groupby(["subset", "frequency"], sort=False)["n"].sum().tolist()
        [200, 200, 100, 100, 100, 100, 90, 90]
    """
    import pandas as pd

    check_confidence(confidence)
    check_missing(missing)
    n_bins, n_resamples = check_count(n_bins, "n_bins"), check_n_resamples(n_resamples)
    models = distinct_names(column_names(accuracy), "accuracy")
    taken = _RESULT[1:] if isinstance(accuracy, str) else _RESULT
    keys = grouping_columns(by, taken)
    if not high_frequency_above >= 0.0:
        raise ValueError(f"high_frequency_above must be at least 0; got {high_frequency_above!r}")
    needed = [*keys, *models, entity_frequency, surface_frequency, is_canonical]
    needed += [cluster] if cluster is not None else []
    check_frame(frame, needed, options=_COLUMN_OPTIONS, row="surface instance")
    data = read_rows(
        frame,
        accuracies=models,
        entity_frequency=entity_frequency,
        surface_frequency=surface_frequency,
        is_canonical=is_canonical,
        cluster=cluster,
        missing=missing,
    )
    options = {
        "n_bins": n_bins,
        "confidence": confidence,
        "n_resamples": n_resamples,
        "seed": checked_seed(seed),
    }
    parts = []
    for key, positions in group_positions(frame, keys).items():
        for column, model in enumerate(models):
            labels = {"model": model, **dict(zip(keys, key, strict=True))}
            for subset in SUBSETS:
                kept = take_subset(data, positions, subset, high_frequency_above).positions
                kept = kept[~np.isnan(data.accuracies[kept, column])]
                parts += _two_curves(data, kept, column, {**labels, "subset": subset}, options)
    warn_missing(data, len(frame), stacklevel=2)
    columns = [*keys, *taken]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def _two_curves(
    data: FrequencyRows,
    kept: npt.NDArray[np.intp],
    column: int,
    labels: dict[str, Any],
    options: dict[str, Any],
) -> "list[pd.DataFrame]":
    """Return the curves over entity and over surface frequency; none without rows."""
    if kept.size == 0:
        return []
    accuracy, clusters = data.accuracies[kept, column], data.clusters[kept]
    return [
        binned_curve(values[kept], accuracy, clusters=clusters.tolist(), **options).assign(
            **labels, frequency=name
        )
        for name, values in (("entity", data.entity), ("surface", data.surface))
    ]
