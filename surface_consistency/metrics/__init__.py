"""Paired metrics of factual consistency, from verdicts or arrays to numbers with intervals.

Needs numpy, and scipy for the exact tests; `paired_by` alone needs pandas. Importing this package
loads numpy only.
"""

from surface_consistency.metrics._groups import UNLABELLED
from surface_consistency.metrics.bootstrap import (
    BootstrapResult,
    cluster_bootstrap,
    resample_counts,
)
from surface_consistency.metrics.clusters import cluster_counts
from surface_consistency.metrics.grouped import paired_by
from surface_consistency.metrics.interval import Interval, percentile_interval, wilson_interval
from surface_consistency.metrics.mcnemar import McNemarResult, mcnemar
from surface_consistency.metrics.rates import PAIRED_RATES, CountRatio
from surface_consistency.metrics.table import PairedTable, paired_table

__all__ = [
    "PAIRED_RATES",
    "UNLABELLED",
    "BootstrapResult",
    "CountRatio",
    "Interval",
    "McNemarResult",
    "PairedTable",
    "cluster_bootstrap",
    "cluster_counts",
    "mcnemar",
    "paired_by",
    "paired_table",
    "percentile_interval",
    "resample_counts",
    "wilson_interval",
]
