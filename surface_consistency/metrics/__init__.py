"""Metrics of factual consistency, from verdicts or arrays to numbers with intervals.

All metrics, results and constants can be imported from here; the types of options, such as
`McNemarMethod`, stay in the modules of the functions that take them. The folders hold one family
each: `paired`, `forms`, `uncertainty`, `alignment` (SLAQ), `forgetting` (the audit), `frequency`,
`judging`, `linking`, `popularity`, `mechanistic`. Needs numpy and scipy; functions over frames need
pandas, `predict_correctness` and `predict_alignment` scikit-learn, `frequency_regression`
statsmodels.
Importing this package loads numpy only.
"""

from surface_consistency.metrics._shared.groups import UNLABELLED
from surface_consistency.metrics.alignment.alignment import AlignmentResult, alignment_scores
from surface_consistency.metrics.alignment.momentum import momentum
from surface_consistency.metrics.alignment.momentum_curve import (
    MomentumCurve,
    MomentumPoint,
    MomentumResult,
)
from surface_consistency.metrics.alignment.position import (
    PositionPoint,
    PositionResult,
    position_curve,
)
from surface_consistency.metrics.alignment.slot_orders import by_question, by_slot, is_balanced
from surface_consistency.metrics.alignment.topic_alignment import (
    TopicAlignmentResult,
    topic_alignment,
)
from surface_consistency.metrics.alignment.topic_arrays import TopicArraysResult, topic_arrays
from surface_consistency.metrics.forgetting.answer_overlap import (
    AnswerOverlapResult,
    MeanOverlapResult,
    answer_overlap,
    answer_tokens,
    mean_overlap,
)
from surface_consistency.metrics.forgetting.contamination import (
    contamination_by,
    contamination_flags,
)
from surface_consistency.metrics.forgetting.contingency_recovery import (
    decomposition_residual,
    recover_table,
)
from surface_consistency.metrics.forgetting.forgetting import forgetting_counts
from surface_consistency.metrics.forgetting.forgetting_by import forgetting_by
from surface_consistency.metrics.forgetting.forgetting_counts import ForgettingCounts
from surface_consistency.metrics.forgetting.forgetting_rates import (
    DELETION_RATES,
    FULL_RATES,
    FULL_TRACE_RATES,
    TRACE_RATES,
)
from surface_consistency.metrics.forms.forms import FormConsistencyResult, form_consistency
from surface_consistency.metrics.forms.forms_grouped import forms_by
from surface_consistency.metrics.frequency.binned_curve import binned_curve
from surface_consistency.metrics.frequency.correlation import correlation
from surface_consistency.metrics.frequency.correlation_result import CorrelationResult
from surface_consistency.metrics.frequency.dependent_correlations import (
    DependentCorrelationsResult,
    compare_dependent_correlations,
)
from surface_consistency.metrics.frequency.frequency import frequency_analysis
from surface_consistency.metrics.frequency.frequency_curves import frequency_curves
from surface_consistency.metrics.frequency.frequency_regression import frequency_regression
from surface_consistency.metrics.frequency.log_frequency import LogFrequencyResult, log_frequency
from surface_consistency.metrics.frequency.moment_bootstrap import (
    CorrelationResamplesResult,
    correlation_bootstrap,
    resample_correlations,
)
from surface_consistency.metrics.frequency.partial_correlation import (
    partial_correlation,
    partial_correlation_from_matrix,
)
from surface_consistency.metrics.frequency.surface_accuracy import surface_accuracy
from surface_consistency.metrics.judging.corrected_alignment import (
    CorrectedAlignmentResult,
    corrected_alignment,
)
from surface_consistency.metrics.judging.judge_agreement import (
    JudgeAgreementResult,
    judge_agreement,
)
from surface_consistency.metrics.judging.judge_error import JudgeError, corrected_rate
from surface_consistency.metrics.linking.linking import (
    LINKING_KINDS,
    LINKING_RATES,
    LinkingTable,
    linking_table,
)
from surface_consistency.metrics.linking.linking_by import linking_by
from surface_consistency.metrics.mechanistic.alignment_prediction import (
    AlignmentPredictionResult,
    FeaturePrediction,
    predict_alignment,
)
from surface_consistency.metrics.mechanistic.assignment import (
    AssignmentResult,
    assignment_similarity,
)
from surface_consistency.metrics.mechanistic.component_importance import component_importance
from surface_consistency.metrics.mechanistic.component_overlap import (
    containment,
    intersection_over_union,
)
from surface_consistency.metrics.mechanistic.group_difference import (
    GroupDifferenceResult,
    group_difference,
)
from surface_consistency.metrics.mechanistic.minimal_components import (
    MinimalComponentsResult,
    component_masks,
    minimal_components,
)
from surface_consistency.metrics.mechanistic.token_similarity import token_similarity
from surface_consistency.metrics.mechanistic.transport import TransportResult, transport_similarity
from surface_consistency.metrics.paired.agreement import cohen_kappa, kappa_of_counts
from surface_consistency.metrics.paired.clustered_mcnemar import (
    ClusteredMcNemarResult,
    clustered_mcnemar,
)
from surface_consistency.metrics.paired.clusters import cluster_counts
from surface_consistency.metrics.paired.design_effect import design_effect
from surface_consistency.metrics.paired.frames import outcomes_frame
from surface_consistency.metrics.paired.grouped import paired_by
from surface_consistency.metrics.paired.mcnemar import EXACT_UP_TO, McNemarResult, mcnemar
from surface_consistency.metrics.paired.model_comparison import compare_models
from surface_consistency.metrics.paired.odds_ratio import (
    DISCORDANT_ODDS,
    DiscordantOddsResult,
    discordant_odds_ratio,
)
from surface_consistency.metrics.paired.power import minimum_detectable_difference, required_pairs
from surface_consistency.metrics.paired.rates import PAIRED_RATES, CountRatio
from surface_consistency.metrics.paired.table import PairedTable, paired_table
from surface_consistency.metrics.paired.verdict_cells import parse_verdict
from surface_consistency.metrics.popularity.extraction import (
    ExtractionResult,
    extraction_accuracy,
    extraction_log_likelihood,
)
from surface_consistency.metrics.popularity.membership import membership_loss, neighbourhood_score
from surface_consistency.metrics.popularity.perturbation import (
    PopularityShiftResult,
    popularity_shift,
    relative_change,
)
from surface_consistency.metrics.popularity.popularity import (
    PopularityScale,
    fit_popularity_scale,
    instance_popularity,
    relative_difference,
)
from surface_consistency.metrics.popularity.predictability import (
    PredictabilityResult,
    majority_macro_f1,
    predict_correctness,
)
from surface_consistency.metrics.popularity.split_accuracy import (
    SplitAccuracyResult,
    median_split,
    split_accuracy,
)
from surface_consistency.metrics.uncertainty.bootstrap import (
    BootstrapResult,
    cluster_bootstrap,
    resample_counts,
)
from surface_consistency.metrics.uncertainty.interval import (
    Interval,
    percentile_interval,
    wilson_interval,
)
from surface_consistency.metrics.uncertainty.multiplicity import (
    adjust_p_values,
    with_adjusted_p_values,
)

__all__ = [
    "DELETION_RATES",
    "DISCORDANT_ODDS",
    "EXACT_UP_TO",
    "FULL_RATES",
    "FULL_TRACE_RATES",
    "LINKING_KINDS",
    "LINKING_RATES",
    "PAIRED_RATES",
    "TRACE_RATES",
    "UNLABELLED",
    "AlignmentPredictionResult",
    "AlignmentResult",
    "AnswerOverlapResult",
    "AssignmentResult",
    "BootstrapResult",
    "ClusteredMcNemarResult",
    "CorrectedAlignmentResult",
    "CorrelationResamplesResult",
    "CorrelationResult",
    "CountRatio",
    "DependentCorrelationsResult",
    "DiscordantOddsResult",
    "ExtractionResult",
    "FeaturePrediction",
    "ForgettingCounts",
    "FormConsistencyResult",
    "GroupDifferenceResult",
    "Interval",
    "JudgeAgreementResult",
    "JudgeError",
    "LinkingTable",
    "LogFrequencyResult",
    "McNemarResult",
    "MeanOverlapResult",
    "MinimalComponentsResult",
    "MomentumCurve",
    "MomentumPoint",
    "MomentumResult",
    "PairedTable",
    "PopularityScale",
    "PopularityShiftResult",
    "PositionPoint",
    "PositionResult",
    "PredictabilityResult",
    "SplitAccuracyResult",
    "TopicAlignmentResult",
    "TopicArraysResult",
    "TransportResult",
    "adjust_p_values",
    "alignment_scores",
    "answer_overlap",
    "answer_tokens",
    "assignment_similarity",
    "binned_curve",
    "by_question",
    "by_slot",
    "cluster_bootstrap",
    "cluster_counts",
    "clustered_mcnemar",
    "cohen_kappa",
    "compare_dependent_correlations",
    "compare_models",
    "component_importance",
    "component_masks",
    "containment",
    "contamination_by",
    "contamination_flags",
    "corrected_alignment",
    "corrected_rate",
    "correlation",
    "correlation_bootstrap",
    "decomposition_residual",
    "design_effect",
    "discordant_odds_ratio",
    "extraction_accuracy",
    "extraction_log_likelihood",
    "fit_popularity_scale",
    "forgetting_by",
    "forgetting_counts",
    "form_consistency",
    "forms_by",
    "frequency_analysis",
    "frequency_curves",
    "frequency_regression",
    "group_difference",
    "instance_popularity",
    "intersection_over_union",
    "is_balanced",
    "judge_agreement",
    "kappa_of_counts",
    "linking_by",
    "linking_table",
    "log_frequency",
    "majority_macro_f1",
    "mcnemar",
    "mean_overlap",
    "median_split",
    "membership_loss",
    "minimal_components",
    "minimum_detectable_difference",
    "momentum",
    "neighbourhood_score",
    "outcomes_frame",
    "paired_by",
    "paired_table",
    "parse_verdict",
    "partial_correlation",
    "partial_correlation_from_matrix",
    "percentile_interval",
    "popularity_shift",
    "position_curve",
    "predict_alignment",
    "predict_correctness",
    "recover_table",
    "relative_change",
    "relative_difference",
    "required_pairs",
    "resample_correlations",
    "resample_counts",
    "split_accuracy",
    "surface_accuracy",
    "token_similarity",
    "topic_alignment",
    "topic_arrays",
    "transport_similarity",
    "wilson_interval",
    "with_adjusted_p_values",
]
