from ._groups import (
    UNLABELLED as UNLABELLED,
)
from .comparison.comparisons import (
    ModelComparisonResult as ModelComparisonResult,
    compare_models as compare_models,
)
from .comparison.equality import (
    EqualityResult as EqualityResult,
    equality_test as equality_test,
)
from .comparison.ranks import (
    RankIntervalsResult as RankIntervalsResult,
    rank_intervals as rank_intervals,
)
from .components.answer_similarity import (
    AssignmentResult as AssignmentResult,
    TokenMetric as TokenMetric,
    TransportResult as TransportResult,
    assignment_similarity as assignment_similarity,
    token_similarity as token_similarity,
    transport_similarity as transport_similarity,
)
from .components.components import (
    MinimalComponentsResult as MinimalComponentsResult,
    component_importance as component_importance,
    component_masks as component_masks,
    containment as containment,
    intersection_over_union as intersection_over_union,
    minimal_components as minimal_components,
)
from .correlation._correlations import (
    correlation_interval as correlation_interval,
)
from .correlation.correlations import (
    correlation as correlation,
    correlation_by as correlation_by,
    partial_correlation as partial_correlation,
    partial_correlation_from_matrix as partial_correlation_from_matrix,
)
from .correlation.dependent_correlations import (
    steiger_test as steiger_test,
    zou_interval as zou_interval,
)
from .correlation.prediction import (
    AlignmentPredictionResult as AlignmentPredictionResult,
    FeaturePrediction as FeaturePrediction,
    PredictabilityResult as PredictabilityResult,
    majority_macro_f1 as majority_macro_f1,
    predict_alignment as predict_alignment,
    predict_correctness as predict_correctness,
)
from .correlation.roc import (
    AreaUnderCurveResult as AreaUnderCurveResult,
    clustered_auc as clustered_auc,
)
from .forgetting.audit_checks import (
    contamination_by as contamination_by,
    contamination_flags as contamination_flags,
    decomposition_residual as decomposition_residual,
    recover_table as recover_table,
)
from .forgetting.forgetting import (
    artifact_rate as artifact_rate,
    interference as interference,
    leakage as leakage,
    retrieval_mediated as retrieval_mediated,
)
from .forgetting.forgetting_groups import (
    DELETION_RATES as DELETION_RATES,
    forgetting_by as forgetting_by,
)
from .forgetting.token_overlap import (
    AnswerOverlapResult as AnswerOverlapResult,
    MeanOverlapResult as MeanOverlapResult,
    answer_overlap as answer_overlap,
    answer_tokens as answer_tokens,
    mean_overlap as mean_overlap,
)
from .forgetting.unlearning import (
    UNLEARNING_RATES as UNLEARNING_RATES,
    UnlearningVerdictResult as UnlearningVerdictResult,
    unlearning_by as unlearning_by,
    unlearning_verdict as unlearning_verdict,
)
from .forgetting.unlearning_scores import (
    ForgetQualityResult as ForgetQualityResult,
    forget_quality as forget_quality,
    model_utility as model_utility,
    privleak as privleak,
    truth_ratio as truth_ratio,
    truth_ratio_score as truth_ratio_score,
)
from .forms.form_answers import (
    form_answers_by as form_answers_by,
    rank_agreement as rank_agreement,
)
from .forms.form_contrasts import (
    form_contrasts as form_contrasts,
)
from .forms.form_groups import (
    forms_by as forms_by,
)
from .forms.form_spread import (
    form_spread_by as form_spread_by,
    right_counts_by as right_counts_by,
)
from .forms.variance_shares import (
    variance_shares_by as variance_shares_by,
)
from .frequency.binned_curves import (
    binned_curve as binned_curve,
    frequency_curves as frequency_curves,
)
from .frequency.frequency import (
    frequency_analysis as frequency_analysis,
)
from .frequency.frequency_rows import (
    LogFrequencyResult as LogFrequencyResult,
    log_frequency as log_frequency,
    surface_accuracy as surface_accuracy,
)
from .frequency.regression import (
    correctness_regression as correctness_regression,
    frequency_regression as frequency_regression,
)
from .judging.judge_correction import (
    CorrectedAlignmentResult as CorrectedAlignmentResult,
    corrected_alignment as corrected_alignment,
)
from .judging.judging import (
    JudgeAgreementResult as JudgeAgreementResult,
    JudgeError as JudgeError,
    corrected_rate as corrected_rate,
    judge_agreement as judge_agreement,
)
from .linking.linking import (
    LINKING_KINDS as LINKING_KINDS,
    LINKING_RATES as LINKING_RATES,
    linking_by as linking_by,
)
from .outcome_frames import (
    outcomes_frame as outcomes_frame,
    to_verdict as to_verdict,
)
from .paired.contrasts import (
    contrast as contrast,
    contrasts_by as contrasts_by,
)
from .paired.effect_sizes import (
    DISCORDANT_ODDS as DISCORDANT_ODDS,
    cohen_kappa as cohen_kappa,
    discordant_odds_ratio as discordant_odds_ratio,
    kappa_of_counts as kappa_of_counts,
)
from .paired.group_tests import (
    group_difference_by as group_difference_by,
)
from .paired.mcnemar_tests import (
    clustered_mcnemar as clustered_mcnemar,
    mcnemar as mcnemar,
)
from .paired.multiplicity import (
    adjust_p_values as adjust_p_values,
    with_adjusted_p_values as with_adjusted_p_values,
)
from .paired.paired_groups import (
    paired_by as paired_by,
)
from .paired.paired_tables import (
    PAIRED_RATES as PAIRED_RATES,
    CountRatio as CountRatio,
    PairedTable as PairedTable,
    cluster_counts as cluster_counts,
    consistency as consistency,
    consistency_given as consistency_given,
    flip_rate as flip_rate,
    paired_table as paired_table,
)
from .paired.power import (
    design_effect as design_effect,
    minimum_detectable_difference as minimum_detectable_difference,
    required_pairs as required_pairs,
)
from .popularity.memorization import (
    ExtractionResult as ExtractionResult,
    extraction_accuracy as extraction_accuracy,
    extraction_log_likelihood as extraction_log_likelihood,
    membership_loss as membership_loss,
    min_k_plus_plus as min_k_plus_plus,
    min_k_probability as min_k_probability,
    neighbourhood_score as neighbourhood_score,
)
from .popularity.perturbation import (
    PopularityShiftResult as PopularityShiftResult,
    popularity_shift as popularity_shift,
    relative_change as relative_change,
)
from .popularity.popularity import (
    PopularityScale as PopularityScale,
    fit_popularity_scale as fit_popularity_scale,
    instance_popularity as instance_popularity,
    relative_difference as relative_difference,
)
from .popularity.score_split import (
    SplitAccuracyResult as SplitAccuracyResult,
    median_split as median_split,
    split_accuracy as split_accuracy,
)
from .positions.alignment import (
    AlignmentResult as AlignmentResult,
    TopicAlignmentResult as TopicAlignmentResult,
    alignment_scores as alignment_scores,
    topic_alignment as topic_alignment,
)
from .positions.momentum_curves import (
    MomentumCurve as MomentumCurve,
    MomentumPoint as MomentumPoint,
    MomentumResult as MomentumResult,
    momentum as momentum,
)
from .positions.positions import (
    PositionPoint as PositionPoint,
    PositionResult as PositionResult,
    position_curve as position_curve,
)
from .positions.topic_layout import (
    TopicArraysResult as TopicArraysResult,
    is_balanced as is_balanced,
    reorder_to_questions as reorder_to_questions,
    reorder_to_slots as reorder_to_slots,
    topic_arrays as topic_arrays,
)
from .uncertainty.bootstrap import (
    BootstrapResult as BootstrapResult,
    cluster_bootstrap as cluster_bootstrap,
    resample_counts as resample_counts,
)
from .uncertainty.intervals import (
    DEFAULT_INTERVALS as DEFAULT_INTERVALS,
    FEW_CLUSTERS as FEW_CLUSTERS,
    Interval as Interval,
    Intervals as Intervals,
    percentile_interval as percentile_interval,
    wilson_interval as wilson_interval,
)
