from ._groups import UNLABELLED as UNLABELLED
from .alignment import (
    AlignmentResult as AlignmentResult,
)
from .alignment import (
    TopicAlignmentResult as TopicAlignmentResult,
)
from .alignment import (
    alignment_scores as alignment_scores,
)
from .alignment import (
    topic_alignment as topic_alignment,
)
from .answer_similarity import (
    AssignmentResult as AssignmentResult,
)
from .answer_similarity import (
    TransportResult as TransportResult,
)
from .answer_similarity import (
    assignment_similarity as assignment_similarity,
)
from .answer_similarity import (
    token_similarity as token_similarity,
)
from .answer_similarity import (
    transport_similarity as transport_similarity,
)
from .audit_checks import (
    contamination_by as contamination_by,
)
from .audit_checks import (
    contamination_flags as contamination_flags,
)
from .audit_checks import (
    decomposition_residual as decomposition_residual,
)
from .audit_checks import (
    recover_table as recover_table,
)
from .binned_curves import binned_curve as binned_curve
from .binned_curves import frequency_curves as frequency_curves
from .bootstrap import (
    BootstrapResult as BootstrapResult,
)
from .bootstrap import (
    cluster_bootstrap as cluster_bootstrap,
)
from .bootstrap import (
    resample_counts as resample_counts,
)
from .components import (
    MinimalComponentsResult as MinimalComponentsResult,
)
from .components import (
    component_importance as component_importance,
)
from .components import (
    component_masks as component_masks,
)
from .components import (
    containment as containment,
)
from .components import (
    intersection_over_union as intersection_over_union,
)
from .components import (
    minimal_components as minimal_components,
)
from .correlation_resamples import (
    CorrelationResamplesResult as CorrelationResamplesResult,
)
from .correlation_resamples import (
    correlation_bootstrap as correlation_bootstrap,
)
from .correlation_resamples import (
    resample_correlations as resample_correlations,
)
from .correlations import (
    CorrelationResult as CorrelationResult,
)
from .correlations import (
    correlation as correlation,
)
from .correlations import (
    partial_correlation as partial_correlation,
)
from .correlations import (
    partial_correlation_from_matrix as partial_correlation_from_matrix,
)
from .dependent_correlations import (
    DependentCorrelationsResult as DependentCorrelationsResult,
)
from .dependent_correlations import (
    compare_dependent_correlations as compare_dependent_correlations,
)
from .effect_sizes import (
    DISCORDANT_ODDS as DISCORDANT_ODDS,
)
from .effect_sizes import (
    DiscordantOddsResult as DiscordantOddsResult,
)
from .effect_sizes import (
    cohen_kappa as cohen_kappa,
)
from .effect_sizes import (
    discordant_odds_ratio as discordant_odds_ratio,
)
from .effect_sizes import (
    kappa_of_counts as kappa_of_counts,
)
from .forgetting import ForgettingCounts as ForgettingCounts
from .forgetting import forgetting_counts as forgetting_counts
from .forgetting_groups import (
    DELETION_RATES as DELETION_RATES,
)
from .forgetting_groups import (
    FULL_RATES as FULL_RATES,
)
from .forgetting_groups import (
    FULL_TRACE_RATES as FULL_TRACE_RATES,
)
from .forgetting_groups import (
    TRACE_RATES as TRACE_RATES,
)
from .forgetting_groups import (
    forgetting_by as forgetting_by,
)
from .form_groups import forms_by as forms_by
from .forms import (
    FormConsistencyResult as FormConsistencyResult,
)
from .forms import (
    form_consistency as form_consistency,
)
from .frequency import frequency_analysis as frequency_analysis
from .frequency_rows import (
    LogFrequencyResult as LogFrequencyResult,
)
from .frequency_rows import (
    log_frequency as log_frequency,
)
from .frequency_rows import (
    surface_accuracy as surface_accuracy,
)
from .group_tests import (
    GroupDifferenceResult as GroupDifferenceResult,
)
from .group_tests import (
    group_difference as group_difference,
)
from .intervals import (
    Interval as Interval,
)
from .intervals import (
    percentile_interval as percentile_interval,
)
from .intervals import (
    wilson_interval as wilson_interval,
)
from .judge_correction import (
    CorrectedAlignmentResult as CorrectedAlignmentResult,
)
from .judge_correction import (
    corrected_alignment as corrected_alignment,
)
from .judging import (
    JudgeAgreementResult as JudgeAgreementResult,
)
from .judging import (
    JudgeError as JudgeError,
)
from .judging import (
    corrected_rate as corrected_rate,
)
from .judging import (
    judge_agreement as judge_agreement,
)
from .linking import (
    LINKING_KINDS as LINKING_KINDS,
)
from .linking import (
    LINKING_RATES as LINKING_RATES,
)
from .linking import (
    LinkingTable as LinkingTable,
)
from .linking import (
    linking_by as linking_by,
)
from .linking import (
    linking_table as linking_table,
)
from .mcnemar_tests import (
    MCNEMAR_EXACT_MAX_DISCORDANT as MCNEMAR_EXACT_MAX_DISCORDANT,
)
from .mcnemar_tests import (
    ClusteredMcNemarResult as ClusteredMcNemarResult,
)
from .mcnemar_tests import (
    McNemarResult as McNemarResult,
)
from .mcnemar_tests import (
    clustered_mcnemar as clustered_mcnemar,
)
from .mcnemar_tests import (
    mcnemar as mcnemar,
)
from .memorization import (
    ExtractionResult as ExtractionResult,
)
from .memorization import (
    extraction_accuracy as extraction_accuracy,
)
from .memorization import (
    extraction_log_likelihood as extraction_log_likelihood,
)
from .memorization import (
    membership_loss as membership_loss,
)
from .memorization import (
    neighbourhood_score as neighbourhood_score,
)
from .model_comparison import compare_models as compare_models
from .momentum_curves import (
    MomentumCurve as MomentumCurve,
)
from .momentum_curves import (
    MomentumPoint as MomentumPoint,
)
from .momentum_curves import (
    MomentumResult as MomentumResult,
)
from .momentum_curves import (
    momentum as momentum,
)
from .multiplicity import (
    adjust_p_values as adjust_p_values,
)
from .multiplicity import (
    with_adjusted_p_values as with_adjusted_p_values,
)
from .outcome_frames import outcomes_frame as outcomes_frame
from .outcome_frames import to_verdict as to_verdict
from .paired_groups import paired_by as paired_by
from .paired_tables import (
    PAIRED_RATES as PAIRED_RATES,
)
from .paired_tables import (
    CountRatio as CountRatio,
)
from .paired_tables import (
    PairedTable as PairedTable,
)
from .paired_tables import (
    cluster_counts as cluster_counts,
)
from .paired_tables import (
    paired_table as paired_table,
)
from .perturbation import (
    PopularityShiftResult as PopularityShiftResult,
)
from .perturbation import (
    popularity_shift as popularity_shift,
)
from .perturbation import (
    relative_change as relative_change,
)
from .popularity import (
    PopularityScale as PopularityScale,
)
from .popularity import (
    fit_popularity_scale as fit_popularity_scale,
)
from .popularity import (
    instance_popularity as instance_popularity,
)
from .popularity import (
    relative_difference as relative_difference,
)
from .positions import (
    PositionPoint as PositionPoint,
)
from .positions import (
    PositionResult as PositionResult,
)
from .positions import (
    position_curve as position_curve,
)
from .power import (
    design_effect as design_effect,
)
from .power import (
    minimum_detectable_difference as minimum_detectable_difference,
)
from .power import (
    required_pairs as required_pairs,
)
from .prediction import (
    AlignmentPredictionResult as AlignmentPredictionResult,
)
from .prediction import (
    FeaturePrediction as FeaturePrediction,
)
from .prediction import (
    PredictabilityResult as PredictabilityResult,
)
from .prediction import (
    majority_macro_f1 as majority_macro_f1,
)
from .prediction import (
    predict_alignment as predict_alignment,
)
from .prediction import (
    predict_correctness as predict_correctness,
)
from .regression import frequency_regression as frequency_regression
from .score_split import (
    SplitAccuracyResult as SplitAccuracyResult,
)
from .score_split import (
    median_split as median_split,
)
from .score_split import (
    split_accuracy as split_accuracy,
)
from .token_overlap import (
    AnswerOverlapResult as AnswerOverlapResult,
)
from .token_overlap import (
    MeanOverlapResult as MeanOverlapResult,
)
from .token_overlap import (
    answer_overlap as answer_overlap,
)
from .token_overlap import (
    answer_tokens as answer_tokens,
)
from .token_overlap import (
    mean_overlap as mean_overlap,
)
from .topic_layout import (
    TopicArraysResult as TopicArraysResult,
)
from .topic_layout import (
    is_balanced as is_balanced,
)
from .topic_layout import (
    reorder_to_questions as reorder_to_questions,
)
from .topic_layout import (
    reorder_to_slots as reorder_to_slots,
)
from .topic_layout import (
    topic_arrays as topic_arrays,
)
