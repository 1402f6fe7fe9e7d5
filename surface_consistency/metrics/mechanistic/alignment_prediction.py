"""Prediction of whether two answers align, from how alike the model's internals are."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from surface_consistency.metrics._shared.cross_validation import (
    area_under_curve,
    defined_mean,
    group_folds,
    scaled_classifier,
)
from surface_consistency.metrics._shared.labels import label_codes
from surface_consistency.metrics._shared.verdicts import MISSING, verdict_codes

__all__ = ["AlignmentPredictionResult", "FeaturePrediction", "predict_alignment"]

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]

_FEATURE = "predicting alignment"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeaturePrediction:
    """How well one feature predicts on its own, and its weight among all."""

    name: str
    """Name of the feature."""
    accuracy: float
    """Accuracy with this feature alone, mean over test folds, in [0, 1]."""
    auc: float
    """Area under the ROC curve with this feature alone, mean over test folds, in [0, 1]."""
    coefficient: float
    """Weight of the standardised feature in the model of all features, fitted on all rows:
    positive where more of it speaks for alignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentPredictionResult:
    """Result of `predict_alignment`; means are over test folds."""

    accuracy: float
    """Accuracy with all features, in [0, 1]; higher is more predictable."""
    auc: float
    """Area under the ROC curve with all features, in [0, 1]; 0.5 is chance."""
    baseline_accuracy: float
    """Accuracy of always predicting the more frequent class of the training folds, in [0, 1]."""
    features: tuple[FeaturePrediction, ...]
    """Each feature, in the order of the columns."""
    fold_accuracy: tuple[float, ...]
    """Accuracy of each test fold with all features."""
    fold_auc: tuple[float, ...]
    """Area under the curve of each test fold; NaN where it holds one class only."""
    n: int
    """Rows."""
    n_aligned: int
    """Rows that align."""
    n_groups: int
    """Groups that folds keep together."""


def predict_alignment(
    features: npt.ArrayLike,
    aligned: npt.ArrayLike,
    *,
    groups: Iterable[Hashable],
    names: Sequence[str] | None = None,
    n_folds: int = 5,
    seed: int = 0,
) -> AlignmentPredictionResult:
    """Predict alignment by logistic regression, on rows that the model has not seen.

    Args:
        features: Similarities of each short-long fact pair, shape `(n_pairs, n_features)`, such as
            containment, intersection over union, and the correlations of attention and of MLP
            importances.
        aligned: Whether both answers of the pair are right, rather than one: True or False, 1 or 0.
        groups: The topic of each pair. Pairs of one topic, and the same fact in several models, are
            never split between training and test.
        names: Names of the features; None for "feature 0" and so on.
        n_folds: Number of folds, stratified by alignment.
        seed: Seed of the folds.

    Returns:
        Accuracy and area under the curve with all features and with each alone, the coefficients,
        and the majority baseline.

    Raises:
        MissingDependencyError: When scikit-learn, of the extra `analysis`, is not installed.
        TypeError: When `n_folds` is no integer.
        ValueError: When lengths differ, a feature is not finite, a label is missing, all pairs
            belong to one class, or the folds are more than the groups or the pairs of a class.

    Notes:
        Features are standardised on the training folds. A test fold with one class has no area
        under the curve: NaN there, with an `UndefinedMetricWarning`, and left out of the mean. A
        constant feature predicts the majority. The paper folds pairs, not topics; where pairs of a
        topic resemble each other, that overstates how well a new topic is predicted.

    References:
        SLAQ, arXiv 2510.11218, section 5.3 and figure 5.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> aligned = np.arange(360) % 2 == 0
        >>> similarity = rng.normal(0.26, 0.05, (360, 2)) + 0.08 * np.outer(aligned, [1.0, 0.0])
        >>> result = predict_alignment(similarity, aligned, groups=np.arange(360) // 6)
        >>> result.auc > 0.8, [feature.auc > 0.7 for feature in result.features]
        (True, [True, False])
    """
    matrix, labels = _checked(features, aligned)
    owners = label_codes(groups, labels.size, "groups", row="pair")
    titles = _titles(names, matrix.shape[1])
    folds = group_folds(labels, owners, n_folds, seed, feature=_FEATURE)
    accuracy, auc = _validated(matrix, labels, folds)
    alone = [_validated(matrix[:, [column]], labels, folds) for column in range(len(titles))]
    weights = scaled_classifier("logistic", feature=_FEATURE).fit(matrix, labels)[-1].coef_[0]
    baseline = [
        np.mean(labels[folds == fold] == (labels[folds != fold].mean() >= 0.5))
        for fold in range(n_folds)
    ]
    return AlignmentPredictionResult(
        accuracy=float(accuracy.mean()),
        auc=defined_mean(auc, stacklevel=2),
        baseline_accuracy=float(np.mean(baseline)),
        features=tuple(
            FeaturePrediction(
                name=title,
                accuracy=float(of_feature[0].mean()),
                auc=defined_mean(of_feature[1]),
                coefficient=float(weight),
            )
            for title, of_feature, weight in zip(titles, alone, weights, strict=True)
        ),
        fold_accuracy=tuple(accuracy.tolist()),
        fold_auc=tuple(auc.tolist()),
        n=labels.size,
        n_aligned=int(labels.sum()),
        n_groups=int(owners.max()) + 1,
    )


def _checked(features: npt.ArrayLike, aligned: npt.ArrayLike) -> tuple[_Floats, _Integers]:
    """Return the matrix of features, and the labels as 0 and 1."""
    matrix, labels = np.asarray(features, dtype=np.float64), verdict_codes(aligned, "aligned")
    if matrix.ndim != 2 or matrix.shape[1] == 0 or len(matrix) != labels.size:
        raise ValueError(
            "features must have one row a pair, shape (n_pairs, n_features); got "
            f"{matrix.shape} for {labels.size} labels"
        )
    if not np.isfinite(matrix).all():
        row, column = (int(index) for index in np.argwhere(~np.isfinite(matrix))[0])
        raise ValueError(f"features[{row}, {column}] is not finite: leave the pair out")
    if (labels == MISSING).any():
        raise ValueError(
            f"aligned[{int(np.argmax(labels == MISSING))}] is missing: leave the pair out"
        )
    if not 0 < labels.sum() < labels.size:
        raise ValueError("aligned must hold both classes: there is nothing to tell apart")
    return matrix, labels.astype(np.int64)


def _titles(names: Sequence[str] | None, n_features: int) -> list[str]:
    """Return a name for each feature."""
    titles = [f"feature {column}" for column in range(n_features)] if names is None else list(names)
    if len(titles) != n_features:
        raise ValueError(f"names must name {n_features} features; got {len(titles)}")
    return titles


def _validated(matrix: _Floats, labels: _Integers, folds: _Integers) -> tuple[_Floats, _Floats]:
    """Return accuracy and area under the curve of each test fold."""
    accuracies, areas = [], []
    for fold in range(int(folds.max()) + 1):
        train, test = folds != fold, folds == fold
        model = scaled_classifier("logistic", feature=_FEATURE).fit(matrix[train], labels[train])
        accuracies.append(float(np.mean(model.predict(matrix[test]) == labels[test])))
        areas.append(area_under_curve(labels[test], model.decision_function(matrix[test])))
    return np.asarray(accuracies), np.asarray(areas)
