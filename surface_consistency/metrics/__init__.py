"""Paired metrics of factual consistency, from verdicts or arrays to numbers with intervals.

Needs numpy and scipy; functions over frames need pandas, and `predict_correctness` scikit-learn.
Importing this package loads numpy only.
"""

from surface_consistency.metrics._groups import UNLABELLED
from surface_consistency.metrics.agreement import cohen_kappa, kappa_of_counts
from surface_consistency.metrics.bootstrap import (
    BootstrapResult,
    cluster_bootstrap,
    resample_counts,
)
from surface_consistency.metrics.clustered_mcnemar import ClusteredMcNemarResult, clustered_mcnemar
from surface_consistency.metrics.clusters import cluster_counts
from surface_consistency.metrics.design_effect import design_effect
from surface_consistency.metrics.extraction import (
    ExtractionResult,
    extraction_accuracy,
    extraction_log_likelihood,
)
from surface_consistency.metrics.forms import FormConsistencyResult, form_consistency
from surface_consistency.metrics.forms_grouped import forms_by
from surface_consistency.metrics.frames import outcomes_frame
from surface_consistency.metrics.grouped import paired_by
from surface_consistency.metrics.interval import Interval, percentile_interval, wilson_interval
from surface_consistency.metrics.mcnemar import McNemarResult, mcnemar
from surface_consistency.metrics.membership import membership_loss, neighbourhood_score
from surface_consistency.metrics.model_comparison import compare_models
from surface_consistency.metrics.multiplicity import adjust_p_values, with_adjusted_p_values
from surface_consistency.metrics.odds_ratio import DiscordantOddsResult, discordant_odds_ratio
from surface_consistency.metrics.perturbation import (
    PopularityShiftResult,
    popularity_shift,
    relative_change,
)
from surface_consistency.metrics.popularity import (
    PopularityScale,
    fit_popularity_scale,
    instance_popularity,
    relative_difference,
)
from surface_consistency.metrics.power import minimum_detectable_difference, required_pairs
from surface_consistency.metrics.predictability import (
    PredictabilityResult,
    majority_macro_f1,
    predict_correctness,
)
from surface_consistency.metrics.rates import PAIRED_RATES, CountRatio
from surface_consistency.metrics.split_accuracy import (
    SplitAccuracyResult,
    median_split,
    split_accuracy,
)
from surface_consistency.metrics.table import PairedTable, paired_table
from surface_consistency.metrics.verdict_cells import parse_verdict

__all__ = [
    "PAIRED_RATES",
    "UNLABELLED",
    "BootstrapResult",
    "ClusteredMcNemarResult",
    "CountRatio",
    "DiscordantOddsResult",
    "ExtractionResult",
    "FormConsistencyResult",
    "Interval",
    "McNemarResult",
    "PairedTable",
    "PopularityScale",
    "PopularityShiftResult",
    "PredictabilityResult",
    "SplitAccuracyResult",
    "adjust_p_values",
    "cluster_bootstrap",
    "cluster_counts",
    "clustered_mcnemar",
    "cohen_kappa",
    "compare_models",
    "design_effect",
    "discordant_odds_ratio",
    "extraction_accuracy",
    "extraction_log_likelihood",
    "fit_popularity_scale",
    "form_consistency",
    "forms_by",
    "instance_popularity",
    "kappa_of_counts",
    "majority_macro_f1",
    "mcnemar",
    "median_split",
    "membership_loss",
    "minimum_detectable_difference",
    "neighbourhood_score",
    "outcomes_frame",
    "paired_by",
    "paired_table",
    "parse_verdict",
    "percentile_interval",
    "popularity_shift",
    "predict_correctness",
    "relative_change",
    "relative_difference",
    "required_pairs",
    "resample_counts",
    "split_accuracy",
    "wilson_interval",
    "with_adjusted_p_values",
]
