"""Agreement beyond chance: how much more often do verdicts agree than accuracies alone imply?"""

import warnings

import numpy as np
import numpy.typing as npt

from surface_consistency.errors import UndefinedMetricWarning
from surface_consistency.metrics.paired._table_check import check_table
from surface_consistency.metrics.paired.table import PairedTable

__all__ = ["cohen_kappa", "kappa_of_counts"]


def cohen_kappa(table: PairedTable) -> float:
    """Return Cohen's kappa of the verdicts under two conditions.

    With p_o = (a + d) / n and p_e the agreement of two independent conditions of the same
    accuracies, kappa = (p_o - p_e) / (1 - p_e). A model that is nearly always wrong is consistent
    by that alone; kappa takes that part away.

    Args:
        table: The paired verdicts.

    Returns:
        Kappa, in [-1, 1]: 1 where the verdicts always agree, 0 where they agree as often as
        independent ones would, negative below that; higher is more consistent.

    Raises:
        TypeError: When `table` is no `PairedTable`.

    Notes:
        NaN, with an `UndefinedMetricWarning`, where all verdicts are right, all are wrong, or there
        is no pair. Swapping the conditions, or right and wrong, changes nothing. Kappa depends on
        the accuracies: read it beside them. For an interval pass `kappa_of_counts` to
        `cluster_bootstrap`.

    References:
        J. Cohen, Educational and Psychological Measurement 20, 1960.

    Examples:
        >>> table = PairedTable(both=4285, first_only=2821, second_only=608, neither=6775)
        >>> round(cohen_kappa(table), 3)
        0.524
    """
    value = float(kappa_of_counts(check_table(table).counts))
    if value != value:
        warnings.warn(
            f"kappa is undefined (NaN): the verdicts in {table} do not vary",
            UndefinedMetricWarning,
            stacklevel=2,
        )
    return value


def kappa_of_counts(counts: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return Cohen's kappa of each row of counts; a statistic for `cluster_bootstrap`.

    Args:
        counts: Counts both, first only, second only, neither along the last axis, shape `(..., 4)`.

    Returns:
        Kappa of each, in [-1, 1], shape `(...)`; NaN where the verdicts do not vary.

    Raises:
        ValueError: When the last axis does not hold four counts.

    Notes:
        Does not warn, so that it serves thousands of resamples at once.

    References:
        J. Cohen, Educational and Psychological Measurement 20, 1960.

    Examples:
        >>> kappa_of_counts([[20, 5, 10, 15], [1, 0, 0, 1], [3, 0, 0, 0]]).round(3).tolist()
        [0.4, 1.0, nan]
    """
    cells = np.asarray(counts, dtype=np.float64)
    if cells.ndim == 0 or cells.shape[-1] != 4:
        raise ValueError(f"counts must hold four cells along the last axis; got {cells.shape}")
    both, first_only, second_only, neither = np.moveaxis(cells, -1, 0)
    # (p_o - p_e) / (1 - p_e), both sides multiplied by n^2 so that counts stay whole.
    above = 2.0 * (both * neither - first_only * second_only)
    below = (both + first_only) * (first_only + neither) + (both + second_only) * (
        second_only + neither
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.divide(above, below))
