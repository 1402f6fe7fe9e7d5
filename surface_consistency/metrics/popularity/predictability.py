"""Predictability of correctness: do memorization scores tell right answers from wrong ones?"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.cross_validation import (
    Classifier,
    area_under_curve,
    defined_mean,
    group_folds,
    scaled_classifier,
)
from surface_consistency.metrics._shared.labels import label_codes
from surface_consistency.metrics._shared.verdicts import MISSING, verdict_codes

__all__ = ["PredictabilityResult", "majority_macro_f1", "predict_correctness"]

_Floats = npt.NDArray[np.float64]
_Codes = npt.NDArray[np.int64]

_FEATURE = "predicting correctness from scores"


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictabilityResult:
    """Result of `predict_correctness`; each number is a mean over test folds."""

    macro_f1: float
    """Mean of the F1 of right and of wrong answers, in [0, 1]; higher is more predictable."""
    auc: float
    """Area under the ROC curve, in [0, 1]; 0.5 is chance. NaN where no fold holds both classes."""
    baseline_macro_f1: float
    """Macro-F1 of always predicting the more frequent class of the training folds, in [0, 1]."""
    fold_macro_f1: tuple[float, ...]
    """Macro-F1 of each test fold."""
    fold_auc: tuple[float, ...]
    """Area under the curve of each test fold; NaN where it holds one class only."""
    n: int
    """Instances."""
    n_correct: int
    """Instances that are right."""
    n_groups: int
    """Groups that folds keep together; `n` when none are given."""

    @property
    def gain(self) -> float:
        """Macro-F1 less that of the baseline, in [-1, 1]; near 0: the scores predict nothing."""
        return self.macro_f1 - self.baseline_macro_f1


def majority_macro_f1(accuracy: float) -> float:
    """Return the macro-F1 of always predicting the more frequent class.

    Args:
        accuracy: Share of instances of one class, in [0, 1].

    Returns:
        p / (1 + p), p being the share of the more frequent class; in [1/3, 1/2].

    Raises:
        ValueError: When `accuracy` is not in [0, 1].

    Notes:
        The F1 of the class that is never predicted counts as 0.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, tables E to J, rows "baseline".

    Examples:
        >>> round(100 * majority_macro_f1(0.7075), 2)
        41.43
    """
    if not 0.0 <= accuracy <= 1.0:
        raise ValueError(f"accuracy must lie in [0, 1]; got {accuracy!r}")
    share = max(accuracy, 1.0 - accuracy)
    return share / (1.0 + share)


def predict_correctness(
    scores: npt.ArrayLike,
    correct: npt.ArrayLike,
    *,
    groups: Iterable[Hashable] | None = None,
    classifier: Classifier = "logistic",
    n_folds: int = 5,
    seed: int = 0,
) -> PredictabilityResult:
    """Predict from scores whether a model is right, on instances that the predictor has not seen.

    Args:
        scores: Scores of each instance, shape `(n_instances, n_scores)` or `(n_instances,)`, such
            as the loss of the correct and of the wrong option. They are standardised on the
            training folds.
        correct: Verdicts of the same instances, none missing.
        groups: What must not be torn between training and test, such as the fact; None lets every
            instance go where it will.
        classifier: "logistic" regression, or "svm" with a polynomial kernel of degree 3.
        n_folds: Number of folds, stratified by verdict.
        seed: Seed of the folds.

    Returns:
        Macro-F1 and area under the curve, each as mean over folds and by fold, with the majority
        baseline on the same folds.

    Raises:
        MissingDependencyError: When scikit-learn, of the extra `analysis`, is not installed.
        TypeError: When `n_folds` is no integer.
        ValueError: When lengths differ, a score is not finite, a verdict is missing or not binary,
            a group has no label, all verdicts are equal, even without one fold, or a class or the
            groups are fewer than the folds.

    Notes:
        A test fold with one class has no area under the curve; it is NaN there, with an
        `UndefinedMetricWarning`, and left out of the mean. The order of the instances matters
        through the folds. The paper does not say how its scores were validated.

    References:
        Ruzzetti, Zanzotto and Caselli, Lexical Popularity, section 6 and tables E to J.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> loss = rng.normal(size=400)
        >>> result = predict_correctness(loss, loss + rng.normal(size=400) < 0.5)
        >>> result.auc > 0.8, result.gain > 0.2
        (True, True)
    """
    features, labels = _checked(scores, correct)
    if classifier not in ("logistic", "svm"):
        raise ValueError(f"classifier must be 'logistic' or 'svm'; got {classifier!r}")
    owners = label_codes(groups, labels.size, "groups", row="instance")
    folds = group_folds(labels, owners, n_folds, seed, feature=_FEATURE)
    macro_f1, auc, baseline = [], [], []
    for fold in range(n_folds):
        train, test = folds != fold, folds == fold
        model = scaled_classifier(classifier, feature=_FEATURE)
        model.fit(features[train], labels[train])
        macro_f1.append(_macro_f1(labels[test], np.asarray(model.predict(features[test]))))
        auc.append(area_under_curve(labels[test], model.decision_function(features[test])))
        majority = int(labels[train].mean() >= 0.5)
        baseline.append(_macro_f1(labels[test], np.full(int(test.sum()), majority)))
    return PredictabilityResult(
        macro_f1=float(np.mean(macro_f1)),
        auc=defined_mean(np.asarray(auc), stacklevel=2),
        baseline_macro_f1=float(np.mean(baseline)),
        fold_macro_f1=tuple(macro_f1),
        fold_auc=tuple(auc),
        n=labels.size,
        n_correct=int(labels.sum()),
        n_groups=int(owners.max()) + 1,
    )


def _checked(scores: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[_Floats, _Codes]:
    """Return a matrix of scores and the verdicts as 0 and 1."""
    features = np.asarray(scores, dtype=np.float64)
    features = features[:, None] if features.ndim == 1 else features
    codes = verdict_codes(correct, "correct")
    if features.ndim != 2 or features.shape[1] == 0 or len(features) != codes.size:
        raise ValueError(
            "scores must have one row a verdict, shape (n_instances, n_scores); got "
            f"{features.shape} for {codes.size} verdicts"
        )
    if not np.isfinite(features).all():
        row = int(np.argmin(np.isfinite(features).all(axis=1)))
        raise ValueError(f"scores[{row}] is not finite: leave the instance out first")
    if (codes == MISSING).any():
        raise ValueError(
            f"correct[{int(np.argmax(codes == MISSING))}] has no verdict: leave the instance out"
        )
    if codes.size == 0 or (codes == codes[0]).all():
        raise ValueError("correct must hold both right and wrong answers")
    return features, codes.astype(np.int64)


def _macro_f1(truth: _Codes, predicted: npt.NDArray[Any]) -> float:
    """Return the mean F1 of the two classes; 0 for one that is never predicted nor there."""
    scores = []
    for label in (0, 1):
        hits = np.count_nonzero((truth == label) & (predicted == label))
        total = np.count_nonzero(truth == label) + np.count_nonzero(predicted == label)
        scores.append(2.0 * hits / total if total else 0.0)
    return float(np.mean(scores))
