"""The tests of a group of clusters: McNemar's, and its forms for clustered pairs."""

import math
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics.paired.mcnemar import McNemarMethod, mcnemar
from surface_consistency.metrics.paired.table import PairedTable

__all__ = [
    "CLUSTERED_METHODS",
    "TESTS",
    "TEST_COLUMNS",
    "ClusteredMcNemarMethod",
    "PairedTest",
    "check_test",
    "clustered_statistic",
    "run_test",
]

ClusteredMcNemarMethod = Literal["obuchowski", "durkalski"]
"""Form of the test: differences weighted by pair, or each cluster's mean difference alike."""

CLUSTERED_METHODS: tuple[ClusteredMcNemarMethod, ...] = ("obuchowski", "durkalski")
"""Names of the forms."""

PairedTest: TypeAlias = McNemarMethod | Literal["obuchowski", "durkalski"]
"""Form of the test of a group: one of `mcnemar`, or one of `clustered_mcnemar`."""

TESTS: tuple[PairedTest, ...] = (
    *("auto", "exact", "corrected", "uncorrected", "mid-p"),
    *CLUSTERED_METHODS,
)
"""Names of the tests of a group."""

TEST_COLUMNS = ("mcnemar_statistic", "mcnemar_p_value", "mcnemar_method")
"""Columns of what `run_test` returns, in tables of groups."""


def check_test(test: str) -> None:
    """Refuse the name of no test."""
    if test not in TESTS:
        raise ValueError(f"test must be one of {', '.join(TESTS)}; got {test!r}")


def run_test(counts: npt.NDArray[np.float64], test: PairedTest) -> tuple[float, float, str]:
    """Return statistic, p-value and form of the test; no pair is no test, and NaN."""
    cells = [int(count) for count in counts.sum(axis=0)]
    if sum(cells) == 0:
        return math.nan, math.nan, "exact" if test == "auto" else test
    if test == "obuchowski" or test == "durkalski":
        return *clustered_statistic(counts, test), test
    both, first_only, second_only, neither = cells
    table = PairedTable(both=both, first_only=first_only, second_only=second_only, neither=neither)
    result = mcnemar(table, method=test)
    return result.statistic, result.p_value, result.method


def clustered_statistic(
    cells: npt.NDArray[np.float64], method: ClusteredMcNemarMethod
) -> tuple[float, float]:
    """Return statistic and p-value from counts that are checked and hold no empty cluster."""
    n_clusters = len(cells)
    if n_clusters < 2:
        return math.nan, math.nan
    difference = cells[:, 1] - cells[:, 2]
    scale = 1.0
    if method == "durkalski":
        difference = difference / cells.sum(axis=1)
    else:
        scale = (n_clusters - 1) / n_clusters
    spread = float(difference @ difference)
    if spread == 0.0:
        return 0.0, 1.0
    statistic = scale * float(difference.sum()) ** 2 / spread
    return statistic, math.erfc(math.sqrt(statistic / 2.0))
