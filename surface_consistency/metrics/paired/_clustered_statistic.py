"""The statistics of McNemar's test for clustered pairs, over counts that are checked."""

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["CLUSTERED_METHODS", "ClusteredMcNemarMethod", "clustered_statistic"]

ClusteredMcNemarMethod = Literal["obuchowski", "durkalski"]
"""Form of the test: differences weighted by pair, or each cluster's mean difference alike."""

CLUSTERED_METHODS: tuple[ClusteredMcNemarMethod, ...] = ("obuchowski", "durkalski")
"""Names of the forms."""


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
