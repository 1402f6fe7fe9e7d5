from .comparison.comparisons import compare_models as compare_models
from .components.answer_similarity import (
    assignment_similarity as assignment_similarity,
    token_similarity as token_similarity,
    transport_similarity as transport_similarity,
)
from .components.components import (
    component_importance as component_importance,
    containment as containment,
    intersection_over_union as intersection_over_union,
    minimal_components as minimal_components,
)
from .correlation._correlations import correlation_interval as correlation_interval
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
    predict_alignment as predict_alignment,
    predict_correctness as predict_correctness,
)
from .correlation.roc import clustered_auc as clustered_auc
from .forgetting.forgetting import (
    artifact_rate as artifact_rate,
    interference as interference,
    leakage as leakage,
    retrieval_mediated as retrieval_mediated,
)
from .forgetting.forgetting_groups import forgetting_by as forgetting_by
from .forgetting.unlearning import (
    unlearning_by as unlearning_by,
    unlearning_verdict as unlearning_verdict,
)
from .forms.form_answers import form_answers_by as form_answers_by, rank_agreement as rank_agreement
from .forms.form_contrasts import form_contrasts as form_contrasts
from .forms.form_groups import forms_by as forms_by
from .forms.form_spread import form_spread_by as form_spread_by
from .forms.variance_shares import variance_shares_by as variance_shares_by
from .frequency.binned_curves import frequency_curves as frequency_curves
from .frequency.frequency import frequency_analysis as frequency_analysis
from .frequency.frequency_rows import surface_accuracy as surface_accuracy
from .judging.judge_correction import corrected_alignment as corrected_alignment
from .judging.judging import JudgeError as JudgeError, judge_agreement as judge_agreement
from .linking.linking import linking_by as linking_by
from .paired.contrasts import contrast as contrast, contrasts_by as contrasts_by
from .paired.effect_sizes import (
    cohen_kappa as cohen_kappa,
    discordant_odds_ratio as discordant_odds_ratio,
)
from .paired.group_tests import group_difference_by as group_difference_by
from .paired.mcnemar_tests import clustered_mcnemar as clustered_mcnemar, mcnemar as mcnemar
from .paired.multiplicity import (
    adjust_p_values as adjust_p_values,
    with_adjusted_p_values as with_adjusted_p_values,
)
from .paired.paired_groups import paired_by as paired_by
from .paired.paired_tables import (
    PAIRED_RATES as PAIRED_RATES,
    CountRatio as CountRatio,
    PairedTable as PairedTable,
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
    extraction_accuracy as extraction_accuracy,
    membership_loss as membership_loss,
    min_k_plus_plus as min_k_plus_plus,
    min_k_probability as min_k_probability,
    neighbourhood_score as neighbourhood_score,
)
from .popularity.perturbation import popularity_shift as popularity_shift
from .popularity.popularity import (
    PopularityScale as PopularityScale,
    fit_popularity_scale as fit_popularity_scale,
    instance_popularity as instance_popularity,
    relative_difference as relative_difference,
)
from .popularity.score_split import split_accuracy as split_accuracy
from .positions.alignment import (
    alignment as alignment,
    alignment_by as alignment_by,
    signed_alignment as signed_alignment,
)
from .positions.momentum_curves import momentum as momentum
from .positions.positions import position_curve as position_curve
from .uncertainty.bootstrap import cluster_bootstrap as cluster_bootstrap
from .uncertainty.intervals import Intervals as Intervals, wilson_interval as wilson_interval
from .uncertainty.means import mean_by as mean_by
