"""Metrics of factual consistency, from verdicts or arrays to numbers with intervals.

All metrics, results and constants can be imported from here; the types of options, such as
`McNemarMethod`, stay in the modules of the functions that take them. `paired_*`, `mcnemar_tests`
and `effect_sizes` are about two conditions, `form*` about more, `alignment`, `positions` and
`momentum_curves` about SLAQ, `forgetting*` and `audit_checks` about the audit. Needs numpy, scipy
and, for functions over frames, pandas; `predict_correctness` and `predict_alignment` need
scikit-learn, `frequency_regression` statsmodels.

Options have one name everywhere: `rng` is a seed, a generator or None for fresh entropy,
`confidence_level` the nominal coverage of intervals, `missing` what to do without a value. A result
holds the interval of a field x in `x_interval`, with `low` and `high`; a frame in `x_low` and
`x_high`. Importing this package loads none of these libraries: its names are loaded on first use.
"""

from typing import TYPE_CHECKING

from surface_consistency._lazy import attach

if TYPE_CHECKING:
    from surface_consistency.metrics._groups import UNLABELLED
    from surface_consistency.metrics.alignment import (
        AlignmentResult,
        TopicAlignmentResult,
        alignment_scores,
        topic_alignment,
    )
    from surface_consistency.metrics.answer_similarity import (
        AssignmentResult,
        TransportResult,
        assignment_similarity,
        token_similarity,
        transport_similarity,
    )
    from surface_consistency.metrics.audit_checks import (
        contamination_by,
        contamination_flags,
        decomposition_residual,
        recover_table,
    )
    from surface_consistency.metrics.binned_curves import binned_curve, frequency_curves
    from surface_consistency.metrics.bootstrap import (
        BootstrapResult,
        cluster_bootstrap,
        resample_counts,
    )
    from surface_consistency.metrics.components import (
        MinimalComponentsResult,
        component_importance,
        component_masks,
        containment,
        intersection_over_union,
        minimal_components,
    )
    from surface_consistency.metrics.correlation_resamples import (
        CorrelationResamplesResult,
        correlation_bootstrap,
        resample_correlations,
    )
    from surface_consistency.metrics.correlations import (
        CorrelationResult,
        correlation,
        partial_correlation,
        partial_correlation_from_matrix,
    )
    from surface_consistency.metrics.dependent_correlations import (
        DependentCorrelationsResult,
        compare_dependent_correlations,
    )
    from surface_consistency.metrics.effect_sizes import (
        DISCORDANT_ODDS,
        DiscordantOddsResult,
        cohen_kappa,
        discordant_odds_ratio,
        kappa_of_counts,
    )
    from surface_consistency.metrics.forgetting import ForgettingCounts, forgetting_counts
    from surface_consistency.metrics.forgetting_groups import (
        DELETION_RATES,
        FULL_RATES,
        FULL_TRACE_RATES,
        TRACE_RATES,
        forgetting_by,
    )
    from surface_consistency.metrics.form_groups import forms_by
    from surface_consistency.metrics.forms import FormConsistencyResult, form_consistency
    from surface_consistency.metrics.frequency import frequency_analysis
    from surface_consistency.metrics.frequency_rows import (
        LogFrequencyResult,
        log_frequency,
        surface_accuracy,
    )
    from surface_consistency.metrics.group_tests import GroupDifferenceResult, group_difference
    from surface_consistency.metrics.intervals import Interval, percentile_interval, wilson_interval
    from surface_consistency.metrics.judge_correction import (
        CorrectedAlignmentResult,
        corrected_alignment,
    )
    from surface_consistency.metrics.judging import (
        JudgeAgreementResult,
        JudgeError,
        corrected_rate,
        judge_agreement,
    )
    from surface_consistency.metrics.linking import (
        LINKING_KINDS,
        LINKING_RATES,
        LinkingTable,
        linking_by,
        linking_table,
    )
    from surface_consistency.metrics.mcnemar_tests import (
        MCNEMAR_EXACT_MAX_DISCORDANT,
        ClusteredMcNemarResult,
        McNemarResult,
        clustered_mcnemar,
        mcnemar,
    )
    from surface_consistency.metrics.memorization import (
        ExtractionResult,
        extraction_accuracy,
        extraction_log_likelihood,
        membership_loss,
        neighbourhood_score,
    )
    from surface_consistency.metrics.model_comparison import compare_models
    from surface_consistency.metrics.momentum_curves import (
        MomentumCurve,
        MomentumPoint,
        MomentumResult,
        momentum,
    )
    from surface_consistency.metrics.multiplicity import adjust_p_values, with_adjusted_p_values
    from surface_consistency.metrics.outcome_frames import outcomes_frame, to_verdict
    from surface_consistency.metrics.paired_groups import paired_by
    from surface_consistency.metrics.paired_tables import (
        PAIRED_RATES,
        CountRatio,
        PairedTable,
        cluster_counts,
        paired_table,
    )
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
    from surface_consistency.metrics.positions import PositionPoint, PositionResult, position_curve
    from surface_consistency.metrics.power import (
        design_effect,
        minimum_detectable_difference,
        required_pairs,
    )
    from surface_consistency.metrics.prediction import (
        AlignmentPredictionResult,
        FeaturePrediction,
        PredictabilityResult,
        majority_macro_f1,
        predict_alignment,
        predict_correctness,
    )
    from surface_consistency.metrics.regression import frequency_regression
    from surface_consistency.metrics.score_split import (
        SplitAccuracyResult,
        median_split,
        split_accuracy,
    )
    from surface_consistency.metrics.token_overlap import (
        AnswerOverlapResult,
        MeanOverlapResult,
        answer_overlap,
        answer_tokens,
        mean_overlap,
    )
    from surface_consistency.metrics.topic_layout import (
        TopicArraysResult,
        is_balanced,
        reorder_to_questions,
        reorder_to_slots,
        topic_arrays,
    )

__all__ = [
    "DELETION_RATES",
    "DISCORDANT_ODDS",
    "FULL_RATES",
    "FULL_TRACE_RATES",
    "LINKING_KINDS",
    "LINKING_RATES",
    "MCNEMAR_EXACT_MAX_DISCORDANT",
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
    "reorder_to_questions",
    "reorder_to_slots",
    "required_pairs",
    "resample_correlations",
    "resample_counts",
    "split_accuracy",
    "surface_accuracy",
    "to_verdict",
    "token_similarity",
    "topic_alignment",
    "topic_arrays",
    "transport_similarity",
    "wilson_interval",
    "with_adjusted_p_values",
]

_MODULES = {
    "_groups": "UNLABELLED",
    "alignment": "AlignmentResult TopicAlignmentResult alignment_scores topic_alignment",
    "answer_similarity": "AssignmentResult TransportResult assignment_similarity token_similarity "
    "transport_similarity",
    "audit_checks": "contamination_by contamination_flags decomposition_residual recover_table",
    "binned_curves": "binned_curve frequency_curves",
    "bootstrap": "BootstrapResult cluster_bootstrap resample_counts",
    "components": "MinimalComponentsResult component_importance component_masks containment "
    "intersection_over_union minimal_components",
    "correlation_resamples": "CorrelationResamplesResult correlation_bootstrap "
    "resample_correlations",
    "correlations": "CorrelationResult correlation partial_correlation "
    "partial_correlation_from_matrix",
    "dependent_correlations": "DependentCorrelationsResult compare_dependent_correlations",
    "effect_sizes": "DISCORDANT_ODDS DiscordantOddsResult cohen_kappa discordant_odds_ratio "
    "kappa_of_counts",
    "forgetting": "ForgettingCounts forgetting_counts",
    "forgetting_groups": "DELETION_RATES FULL_RATES FULL_TRACE_RATES TRACE_RATES forgetting_by",
    "form_groups": "forms_by",
    "forms": "FormConsistencyResult form_consistency",
    "frequency": "frequency_analysis",
    "frequency_rows": "LogFrequencyResult log_frequency surface_accuracy",
    "group_tests": "GroupDifferenceResult group_difference",
    "intervals": "Interval percentile_interval wilson_interval",
    "judge_correction": "CorrectedAlignmentResult corrected_alignment",
    "judging": "JudgeAgreementResult JudgeError corrected_rate judge_agreement",
    "linking": "LINKING_KINDS LINKING_RATES LinkingTable linking_by linking_table",
    "mcnemar_tests": "MCNEMAR_EXACT_MAX_DISCORDANT ClusteredMcNemarResult McNemarResult "
    "clustered_mcnemar mcnemar",
    "memorization": "ExtractionResult extraction_accuracy extraction_log_likelihood "
    "membership_loss neighbourhood_score",
    "model_comparison": "compare_models",
    "momentum_curves": "MomentumCurve MomentumPoint MomentumResult momentum",
    "multiplicity": "adjust_p_values with_adjusted_p_values",
    "outcome_frames": "outcomes_frame to_verdict",
    "paired_groups": "paired_by",
    "paired_tables": "PAIRED_RATES CountRatio PairedTable cluster_counts paired_table",
    "perturbation": "PopularityShiftResult popularity_shift relative_change",
    "popularity": "PopularityScale fit_popularity_scale instance_popularity relative_difference",
    "positions": "PositionPoint PositionResult position_curve",
    "power": "design_effect minimum_detectable_difference required_pairs",
    "prediction": "AlignmentPredictionResult FeaturePrediction PredictabilityResult "
    "majority_macro_f1 predict_alignment predict_correctness",
    "regression": "frequency_regression",
    "score_split": "SplitAccuracyResult median_split split_accuracy",
    "token_overlap": "AnswerOverlapResult MeanOverlapResult answer_overlap answer_tokens "
    "mean_overlap",
    "topic_layout": "TopicArraysResult is_balanced reorder_to_questions reorder_to_slots "
    "topic_arrays",
}

__getattr__, __dir__ = attach(
    __name__, {name: module for module, names in _MODULES.items() for name in names.split()}
)
